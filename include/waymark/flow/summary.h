/// Counts everything that a decoder delivers, and computes a hash of the ranges: two decodes with equal summaries
/// delivered the same flow.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "waymark/flow/flow.h"

namespace waymark::flow {

inline constexpr unsigned trace_on_reasons = 5;
inline constexpr unsigned conflicts = 12;

/// The name of a reason or conflict in reports.
[[nodiscard]] std::string_view name(TraceOnReason reason);
[[nodiscard]] std::string_view name(Conflict conflict);
/// Names such as `S`, `NS`, `Root`, `Realm`.
[[nodiscard]] std::string_view name(Security security);
/// How a block ends: `direct`, `indirect`, `barrier`, `wait`, `tstart` or `none`.
[[nodiscard]] std::string_view branch_name(const Block& block);

struct Count {
    std::uint64_t times{};
    std::uint64_t bytes{};
};

struct Totals {
    std::uint64_t ranges{};                ///< executions of blocks
    std::uint64_t instructions{};          ///< executed
    std::uint64_t cycles{};                ///< sum of all cycle counts
    std::uint64_t unknown_cycle_counts{};  ///< number of unknown cycle counts: `cycles` lacks them
    std::uint64_t exceptions{}, exception_returns{}, contexts{}, timestamps{}, triggers{};
    std::uint64_t no_memory{};            ///< how often the image had no code at an executed address
    std::uint64_t unplaced{};             ///< waypoint instructions with a known outcome but unknown address
    std::uint64_t reached{};              ///< addresses known only from waypoint updates
    std::uint64_t untraced{};             ///< stretches whose path the trace omits (Untraced)
    std::uint64_t unseen_instructions{};  ///< instructions in those stretches, besides `instructions`
    std::uint64_t uncommitted{};          ///< P0 elements that may or may not have run
    std::uint64_t marks{};
    std::array<std::uint64_t, trace_on_reasons> trace_on{};
    std::array<std::uint64_t, conflicts> inconsistencies{};
    std::array<Count, gap_reasons> gaps{};  ///< stretches of the stream that could not be decoded
    std::optional<std::uint64_t> first_timestamp, last_timestamp;
    /// A hash, modulo 2^64: h = 1469598103934665603; for each range in order h = (h xor start) * 1099511628211; h = (h
    /// xor end) * 1099511628211.
    std::uint64_t hash = 1469598103934665603U;

    /// Number of bytes of the stream that are in no packet.
    [[nodiscard]] std::uint64_t gap_bytes() const;
    /// Whether code that is in no range ran, or may have run.
    [[nodiscard]] bool hides_code() const;
    /// Whether anything occurred that matters with --strict: lost bytes, overflow, unreadable memory, contradictions,
    /// code that ran unseen. Padding does not matter.
    [[nodiscard]] bool has_gaps() const;
    /// Adds all members; the hash of a sum is computed from the hashes, in order of addition.
    Totals& operator+=(const Totals& other);
};

class Summary final : public Sink {
public:
    void consume(const Batch& batch) override;
    /// Adds the counts of a later part; the hash is then no longer that of the ranges.
    void add(const Totals& totals) { totals_ += totals; }
    [[nodiscard]] const Totals& totals() const { return totals_; }

private:
    void count(const Event& event);
    Totals totals_;
};

}  // namespace waymark::flow
