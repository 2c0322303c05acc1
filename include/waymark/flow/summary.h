/// Counts of everything a decoder delivers, and a hash of the ranges: two decodes with equal summaries delivered the
/// same story.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "waymark/flow/flow.h"

namespace waymark::flow {

inline constexpr unsigned trace_on_reasons = 5;
inline constexpr unsigned conflicts = 12;

/// What a reason or conflict is called in reports.
[[nodiscard]] std::string_view name(TraceOnReason reason);
[[nodiscard]] std::string_view name(Conflict conflict);
/// `S`, `NS`, `Root`, `Realm`.
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
    std::uint64_t cycles{};                ///< sum of all cycle counts that came
    std::uint64_t unknown_cycle_counts{};  ///< counts whose number the unit did not know: `cycles` lacks them
    std::uint64_t exceptions{}, exception_returns{}, contexts{}, timestamps{}, triggers{};
    std::uint64_t no_memory{};            ///< times the image had nothing at an executed address
    std::uint64_t unplaced{};             ///< waypoint instructions whose outcome is known, but not their address
    std::uint64_t reached{};              ///< addresses known only from waypoint updates
    std::uint64_t untraced{};             ///< stretches whose way the trace omits (Untraced)
    std::uint64_t unseen_instructions{};  ///< that ran there, besides `instructions`
    std::uint64_t uncommitted{};          ///< P0 elements of which nobody knows whether they ran
    std::uint64_t marks{};
    std::array<std::uint64_t, trace_on_reasons> trace_on{};
    std::array<std::uint64_t, conflicts> inconsistencies{};
    std::array<Count, gap_reasons> gaps{};  ///< stretches of the stream that gave nothing
    std::optional<std::uint64_t> first_timestamp, last_timestamp;
    /// h = 1469598103934665603; for each range in order h = (h xor start) * 1099511628211; h = (h xor end) *
    /// 1099511628211, modulo 2^64.
    std::uint64_t hash = 1469598103934665603U;

    /// Bytes of the stream that gave no packet.
    [[nodiscard]] std::uint64_t gap_bytes() const;
    /// Code ran, or may have run, that is in no range.
    [[nodiscard]] bool hides_code() const;
    /// Anything a strict user must know of: lost bytes, overflow, unreadable memory, contradictions, code that ran
    /// unseen. Padding is none.
    [[nodiscard]] bool has_gaps() const;
    /// Sums everything; the hash of a sum is that of the hashes, in the order added.
    Totals& operator+=(const Totals& other);
};

class Summary final : public Sink {
public:
    void consume(const Batch& batch) override;
    /// Takes in what another has counted of what came next; the hash is then none of the ranges.
    void add(const Totals& totals) { totals_ += totals; }
    [[nodiscard]] const Totals& totals() const { return totals_; }

private:
    void count(const Event& event);
    Totals totals_;
};

}  // namespace waymark::flow
