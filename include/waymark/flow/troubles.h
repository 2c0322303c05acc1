/// Counts everything that makes program flow uncertain, with the place of the first occurrence of each kind.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>

#include "waymark/core/gap.h"
#include "waymark/flow/flow.h"
#include "waymark/flow/summary.h"

namespace waymark::flow {

/// A kind of problem, and its first occurrence.
struct Trouble {
    std::uint64_t times{}, bytes{};
    std::uint64_t offset{};  ///< offset of the first, in the capture's buffer
    std::uint64_t address{}, expected{};
    std::uint64_t amount{};  ///< number of waypoints, instructions or P0 elements that are unknown, if that applies
    friend bool operator==(const Trouble&, const Trouble&) = default;
};

/// Counts of cycles that came apart from ranges.
struct CycleCounts {
    std::uint64_t counts{};     ///< all
    std::uint64_t unknown{};    ///< number of those with an unknown value
    std::uint64_t spread{};     ///< number of counts that were spread over several ranges (CycleSpread)
    std::uint64_t off{};        ///< number of counts that include cycles in which tracing was off
    std::uint64_t apart{};      ///< cycles of unknown flow
    std::uint32_t threshold{};  ///< the unit's threshold; the largest one
    CycleCounts& operator+=(const CycleCounts& later);
    friend bool operator==(const CycleCounts&, const CycleCounts&) = default;
};

/// Maps an offset in the stream to one in the capture's buffer.
using MapOffset = std::function<std::uint64_t(Offset)>;

/// The troubles of one stream.
struct Troubles {
    std::array<Trouble, gap_reasons> gaps{};
    std::array<Trouble, conflicts> contradictions{};
    Trouble no_memory, overflows;
    Trouble unplaced;  ///< waypoints without an address, although there are images; `amount`: waypoints
    Trouble untraced;  ///< stretches whose path the trace omits; `amount`: instructions, as far as the trace gives the
                       ///< number. Code between the last waypoint and a reset is such a stretch (pft.md, 4.7)
    Trouble uncommitted;  ///< ends of flow with P0 elements that may or may not have run; `amount`: their number
    std::uint64_t untraced_unsized{};  ///< the part of `untraced` with an unknown number of instructions
    Trouble long_walks;  ///< no branch within 64 KiB, followed by unknown code: the walked bytes are not code
    CycleCounts cycles;
    std::uint64_t without_code{};  ///< outcomes of branches with unknown code: each ends a range that is not decoded
    std::uint64_t contexts{}, timestamps{}, triggers{};
    /// How often trace began again after it had ended by the unit's programming: at an exception whose handler it
    /// excluded; and elsewhere.
    std::uint64_t handlers_left_out{}, resumptions{};
    std::optional<std::uint64_t> first_timestamp, last_timestamp;

    /// Adds the troubles of a batch.
    void consume(const Batch& batch, const MapOffset& offset);
    /// Adds the counts of a later part of the stream.
    Troubles& operator+=(const Troubles& later);
    /// Code ran, or may have run, that is in no range: unplaced, untraced or uncommitted.
    [[nodiscard]] bool hides_code() const;
    /// All contradictions together, with the place of the first; and its kind. Precondition of the kind: there is at
    /// least one.
    [[nodiscard]] Trouble contradicted() const;
    [[nodiscard]] Inconsistency first_contradiction() const;
    friend bool operator==(const Troubles&, const Troubles&) = default;

private:
    void note(const Event& event, const MapOffset& offset);
    void began_again(bool ran);
    std::optional<Block> last_;                             // that ran
    bool ran_ = false;                                      // something ran: a block, or code that had an exception
    bool without_image_ = false;                            // execution is in unknown code
    std::optional<bool> after_exception_;                   // nothing ran since an exception; nullopt: nothing came yet
    std::uint64_t early_handlers_{}, early_resumptions_{};  // these count only if something ran in an earlier part
    Trouble early_resets_;                                  // and these
    bool early_on_ = false;                                 // trace began as the very first event
};

}  // namespace waymark::flow
