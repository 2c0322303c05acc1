/// Follows the outcomes of one packet along links without a branch for each: for inner loops.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "waymark/core/types.h"
#include "waymark/flow/flow.h"
#include "waymark/follow/block_cache.h"

namespace waymark::follow {

/// Up to five outcomes, from the oldest on: decoded once, in a table indexed by the bytes of packets.
struct alignas(8) FewOutcomes {
    static constexpr unsigned most = 5;
    std::array<std::uint8_t, most> e{};  ///< 1: executed or taken; 0 beyond `count`
    std::uint8_t count = 0;              ///< 0: not such a packet

    constexpr FewOutcomes() = default;
    /// Bit i of `bits` is the i-th outcome.
    constexpr FewOutcomes(std::uint32_t bits, unsigned outcomes) : count(static_cast<std::uint8_t>(outcomes)) {
        for (unsigned i = 0; i < outcomes; ++i) e[i] = static_cast<std::uint8_t>(bits >> i & 1U);
    }
    /// The outcomes as bits: bit i is the i-th.
    [[nodiscard]] constexpr std::uint32_t bits() const {
        std::uint32_t all = 0;
        for (unsigned i = 0; i < most; ++i) all |= std::uint32_t{e[i]} << i;
        return all;
    }
};

/// The links for this outcome, by position. Reading the next link then does not have to wait for an addition, which a
/// compiler would otherwise insert.
[[nodiscard]] WM_INLINE const Position* links_of(const Position* links, std::uint32_t outcome) {
    const Position* by_position = links + outcome;
    asm("" : "+r"(by_position));
    return by_position;
}

/// Passes the edges of FewOutcomes from `now` on to `use`. Passes all five, whether they exist or not, since testing
/// costs more.
template <class Use>
WM_INLINE auto edges_of(const Position* links, std::ptrdiff_t now, const FewOutcomes& outcomes, Use&& use) {
    const std::ptrdiff_t at_1 = links_of(links, outcomes.e[0])[now];
    const std::ptrdiff_t at_2 = links_of(links, outcomes.e[1])[at_1];
    const std::ptrdiff_t at_3 = links_of(links, outcomes.e[2])[at_2];
    const std::ptrdiff_t at_4 = links_of(links, outcomes.e[3])[at_3];
    const std::ptrdiff_t edge_0 = now + outcomes.e[0];
    const std::ptrdiff_t edge_1 = at_1 + outcomes.e[1];
    const std::ptrdiff_t edge_2 = at_2 + outcomes.e[2];
    const std::ptrdiff_t edge_3 = at_3 + outcomes.e[3];
    const std::ptrdiff_t edge_4 = at_4 + outcomes.e[4];
    return use(edge_0, edge_1, edge_2, edge_3, edge_4);
}

/// The result of following FewOutcomes.
struct FewFollowed {
    Position last;  ///< the edge of the last outcome; negative: a link before it is not known
    Position next;  ///< where that leads
};

/// Follows `outcomes` from `now` and writes their ranges to `run` (flow::BatchWriter::Run, or CountWriter's). If a link
/// is not known, the caller takes the ranges back with take_back_few. Precondition: outcomes.count != 0.
template <class Packet, class Run>
WM_INLINE FewFollowed follow_few(const Position* links, std::ptrdiff_t now, const FewOutcomes& outcomes, Packet packet,
                                 Run& run) {
    run.reserve(packet);
    const Position last = edges_of(links, now, outcomes, [&](auto... edges) {
        return run.put(packet, flow::no_cycles, outcomes.count, edges...);
    });
    return {last, links[last]};
}

/// follow_few for at most two outcomes, for streams in which packets rarely have more.
template <class Packet, class Run>
WM_INLINE FewFollowed follow_two(const Position* links, std::ptrdiff_t now, const FewOutcomes& outcomes, Packet packet,
                                 Run& run) {
    run.reserve(packet);
    const Position after_0 = links_of(links, outcomes.e[0])[now];
    const Position after_1 = links_of(links, outcomes.e[1])[after_0];
    const std::ptrdiff_t edge_0 = now + outcomes.e[0];
    const std::ptrdiff_t edge_1 = std::ptrdiff_t{after_0} + outcomes.e[1];
    (void)run.put(packet, flow::no_cycles, outcomes.count, edge_0, edge_1);
    return outcomes.count == 1 ? FewFollowed{static_cast<Position>(edge_0), after_0}
                               : FewFollowed{static_cast<Position>(edge_1), after_1};
}

/// Takes back what follow_few or follow_two last wrote with these arguments.
template <class Run>
WM_INLINE void take_back_few(const Position* links, std::ptrdiff_t now, const FewOutcomes& outcomes, Run& run) {
    edges_of(links, now, outcomes, [&](auto... edges) { run.take_back(flow::no_cycles, outcomes.count, edges...); });
}

/// The result of following outcomes one by one.
struct EachFollowed {
    unsigned count;  ///< number of outcomes that were followed, from the oldest on
    Position next;   ///< where they lead
    Position last;   ///< the edge of the last outcome that was followed
};

/// Follows outcomes (bit i of `e` is the i-th) from `now` while links are known, and writes their ranges to `run`. The
/// last one may lead to follow::indirect if `may_end`.
template <class Packet, class Run>
WM_INLINE EachFollowed follow_each(const Position* links, std::ptrdiff_t now, std::uint64_t e, unsigned count,
                                   bool may_end, Packet packet, Run& run) {
    auto next = static_cast<Position>(now);
    Position last = nowhere;
    for (unsigned i = 0; i < count; ++i) {
        const std::ptrdiff_t edge = next + static_cast<std::ptrdiff_t>(e >> i & 1U);
        const Position to = links[edge];
        if (to < 0 && (to != indirect || i + 1U != count || !may_end)) [[unlikely]]
            return {i, next, last};
        run.reserve(packet);
        run.put(packet, flow::no_cycles, 1, edge);
        next = to;
        last = static_cast<Position>(edge);
    }
    return {count, next, last};
}

/// follow_each for calls and returns. If a link does not show where execution continues, beyond(position, link, last)
/// returns the place if it can, otherwise the link. `last`: no outcome of this packet follows.
template <class Packet, class Run, class Beyond>
WM_INLINE EachFollowed follow_calls(const Position* links, std::ptrdiff_t now, std::uint64_t e, unsigned count,
                                    bool may_end, Packet packet, Run& run, Beyond&& beyond) {
    auto next = static_cast<Position>(now);
    Position last = nowhere;
    for (unsigned i = 0; i < count; ++i) {
        const std::ptrdiff_t edge = next + static_cast<std::ptrdiff_t>(e >> i & 1U);
        const Position link = links[edge];
        const Position to = link >= 0 ? link : beyond(next, link, i + 1U == count);
        if (to < 0 && (to != indirect || i + 1U != count || !may_end)) return {i, next, last};
        run.reserve(packet);
        run.goes_on_at(next);
        run.put(packet, flow::no_cycles, 1, edge);
        if (link == indirect) run.branched(static_cast<Position>(edge));
        next = to;
        last = static_cast<Position>(edge);
    }
    return {count, next, last};
}

/// FewOutcomes by their bits with a 1 above the newest one, as in follow::Waiting; count 0: none or more than five.
inline constexpr std::array<FewOutcomes, 2U << FewOutcomes::most> few_by_code = [] {
    std::array<FewOutcomes, 2U << FewOutcomes::most> all;
    for (unsigned count = 1; count <= FewOutcomes::most; ++count)
        for (unsigned e = 0; e < 1U << count; ++e) all[1U << count | e] = {e, count};
    return all;
}();

}  // namespace waymark::follow
