/// The program from the point of view of the search for a head: its waypoint instructions, and the code between them.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "positions.h"
#include "waymark/follow/head.h"
#include "waymark/follow/walk.h"

namespace waymark::follow::head {

/// Shared by all paths of a search; counts the search's steps.
class Program {
public:
    Program(const HeadRules& rules, const isa::CodeReader& code, std::span<const CodeExtent> extents,
            const RecoverLimits& limits)
        : rules_(rules), code_(code), extents_(extents), limits_(limits) {}

    /// Every possible waypoint instruction; empty if there are too many.
    [[nodiscard]] const std::vector<Place>& waypoints() {
        if (!std::exchange(known_, true)) find_waypoints();
        return waypoints_;
    }
    /// The waypoint instructions that follow a call.
    [[nodiscard]] const std::vector<Place>& after_calls() const { return after_calls_; }

    /// The walk to the next waypoint instruction.
    [[nodiscard]] const Walk& walk(Place place);
    /// The instruction at a place; nullopt if the code is not known.
    [[nodiscard]] std::optional<isa::Instruction> at(Place place) {
        ++steps;
        return isa::decode_at(code_, rules_.space, place.address, place.isa, rules_.decode);
    }

    /// Calls `go(place)` for every place in the program whose address has these low bits.
    template <class Go>
    void for_each_place(const SentPlace& sent, Go&& go) {
        for (const CodeExtent& extent : extents_)
            for (const Isa isa : rules_.isas) {
                if (!fits(sent, isa) || extent.bytes == 0) continue;
                const unsigned width = sent.width + shift_of(sent, isa);
                if (width >= 64) continue;
                const std::uint64_t every = std::uint64_t{1} << width;
                const std::uint64_t last = last_of(extent, isa);
                std::uint64_t at = (extent.first.value & ~(every - 1)) | sent.bits << shift_of(sent, isa);
                if (at < extent.first.value) at += every;
                for (; at >= extent.first.value && at <= last && !exhausted(); at += every) {
                    ++steps;
                    go(Place{{at}, isa});
                }
            }
    }
    /// Approximate number of these places; for an unknown address, the largest number.
    [[nodiscard]] std::uint64_t places_of(const SentPlace& sent) const;
    /// Whether this instruction set can have such an address.
    [[nodiscard]] bool fits(const SentPlace& sent, Isa isa) const;
    /// The lowest bit of an address that packets carry.
    [[nodiscard]] static unsigned shift_of(const SentPlace& sent, Isa isa) {
        if (sent.halfword) return 1;
        return isa == Isa::a32 || isa == Isa::a64 ? 2 : isa == Isa::jazelle ? 0 : 1;
    }

    [[nodiscard]] bool exhausted() const { return steps > limits_.steps; }
    [[nodiscard]] const RecoverLimits& limits() const { return limits_; }

    std::uint64_t steps = 0;  ///< of the limits

private:
    void find_waypoints();
    /// The last address of an extent at which code of this instruction set can begin. Precondition: the extent is not
    /// empty.
    [[nodiscard]] static std::uint64_t last_of(const CodeExtent& extent, Isa isa) {
        const std::uint64_t last = extent.first.value + (extent.bytes - 1);
        return isa == Isa::a64 ? last : std::min<std::uint64_t>(last, 0xffff'ffffU);
    }

    /// A longer walk is assumed to be endless.
    static constexpr std::uint32_t longest_walk_bytes = 64 * 1024 + 1;

    struct PlaceHash {
        std::size_t operator()(const Place& p) const {
            const std::uint64_t h = (p.address.value << 3 ^ static_cast<unsigned>(p.isa)) * 0x9e37'79b9'7f4a'7c15U;
            return static_cast<std::size_t>(h ^ h >> 29);
        }
    };

    const HeadRules& rules_;
    const isa::CodeReader& code_;
    const std::span<const CodeExtent> extents_;
    const RecoverLimits& limits_;
    bool known_ = false;
    std::vector<Place> waypoints_, after_calls_;
    std::deque<Walk> walks_;  // which does not move them
    Positions<Place, PlaceHash> walk_from_;
};

}  // namespace waymark::follow::head
