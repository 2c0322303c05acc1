/// What keeps program flow from being known, counted, with the place of the first of each kind.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>

#include "waymark/core/gap.h"
#include "waymark/flow/flow.h"
#include "waymark/flow/summary.h"

namespace waymark::flow {

/// Something wrong, and where it was met first.
struct Trouble {
    std::uint64_t times{}, bytes{};
    std::uint64_t offset{};  ///< of the first, in the capture's buffer
    std::uint64_t address{}, expected{};
    std::uint64_t amount{};  ///< waypoints, instructions or P0 elements, where that is what is unknown
    friend bool operator==(const Trouble&, const Trouble&) = default;
};

/// Counts of cycles that came apart from ranges.
struct CycleCounts {
    std::uint64_t counts{};     ///< all
    std::uint64_t unknown{};    ///< of these, whose number the unit did not know
    std::uint64_t spread{};     ///< of these, over several ranges each (CycleSpread)
    std::uint64_t off{};        ///< of these, that include cycles in which tracing was off
    std::uint64_t apart{};      ///< cycles of unknown flow
    std::uint32_t threshold{};  ///< the unit sends no smaller count; the largest of these
    CycleCounts& operator+=(const CycleCounts& later);
    friend bool operator==(const CycleCounts&, const CycleCounts&) = default;
};

/// From an offset in the stream to one in the capture's buffer.
using MapOffset = std::function<std::uint64_t(Offset)>;

/// Of one stream.
struct Troubles {
    std::array<Trouble, gap_reasons> gaps{};
    std::array<Trouble, conflicts> contradictions{};
    Trouble no_memory, overflows;
    Trouble unplaced;     ///< waypoints without an address, though images are there; `amount`: waypoints
    Trouble untraced;     ///< stretches whose way the trace omits; `amount`: instructions, as far as it says how many.
                          ///< What ran between the last waypoint and a reset is such a stretch (pft.md, 4.7)
    Trouble uncommitted;  ///< ends of flow with P0 elements of which nobody knows whether they ran; `amount`: of these
    std::uint64_t untraced_unsized{};  ///< the part of `untraced` with an unknown number of instructions
    Trouble long_walks;  ///< no branch in 64 KiB, and then no image: what was walked is no code; `address`: its start
    CycleCounts cycles;
    std::uint64_t
        without_code{};  ///< outcomes of branches whose code is not known: each ends a range that is not decoded
    std::uint64_t contexts{}, timestamps{}, triggers{};
    /// Times that trace began again after the unit's own choice had ended it: at an exception, whose handler it left
    /// out; and elsewhere.
    std::uint64_t handlers_left_out{}, resumptions{};
    std::optional<std::uint64_t> first_timestamp, last_timestamp;

    /// Counts the events of the next batch; `offset` is called for the first of each kind.
    void consume(const Batch& batch, const MapOffset& offset);
    /// Adds what was counted later in the stream.
    Troubles& operator+=(const Troubles& later);
    /// Code ran that is not in the ranges, so the ranges are not the whole run.
    [[nodiscard]] bool hides_code() const;
    /// All contradictions together, with the place of the first; and its kind. Precondition of the kind: there is one.
    [[nodiscard]] Trouble contradicted() const;
    [[nodiscard]] Inconsistency first_contradiction() const;
    friend bool operator==(const Troubles&, const Troubles&) = default;

private:
    void note(const Event& event, const MapOffset& offset);
    void began_again(bool ran);
    std::optional<Block> last_;            // that ran
    bool without_image_ = false;           // execution is where no image is known
    std::optional<bool> after_exception_;  // nothing ran since an exception; not known: nothing came yet
    std::uint64_t early_handlers_{}, early_resumptions_{};  // these count if something ran in an earlier part
    Trouble early_resets_;                                  // and these
    bool early_on_ = false;                                 // trace began as the first of all
};

}  // namespace waymark::flow
