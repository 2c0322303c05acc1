/// The walk: fetches and decodes instructions from a place up to the next one whose outcome is in the trace. All
/// decoders of program flow use these functions.
#pragma once

#include <cstdint>

#include "waymark/flow/flow.h"
#include "waymark/follow/place.h"
#include "waymark/isa/decode_instr.h"

namespace waymark::follow {

/// Limits of a walk.
struct WalkRules {
    isa::DecodeOptions decode{};
    /// A walk over this number of bytes without a waypoint instruction means that the image is wrong. Less than 2^32.
    std::uint32_t most_bytes = 512 * 1024;
    /// Only for a walk: the trace has an outcome for every instruction, so each instruction ends a walk, like a
    /// waypoint instruction.
    bool each_instruction = false;
};

enum class WalkEnd : std::uint8_t {
    waypoint,   ///< walk only: after a waypoint instruction
    arrived,    ///< walk_to only: at its destination
    passed,     ///< walk_to only: after its destination, or at a waypoint instruction before it
    no_memory,  ///< the code at `after` is not known
    undefined,  ///< a permanently undefined instruction is at `after`, and no IT instruction makes it conditional
    runaway     ///< after WalkRules::most_bytes
};

[[nodiscard]] inline flow::End block_end(isa::Waypoint waypoint) {
    switch (waypoint) {
        case isa::Waypoint::direct: return flow::End::direct;
        case isa::Waypoint::indirect: return flow::End::indirect;
        case isa::Waypoint::barrier: return flow::End::barrier;
        case isa::Waypoint::none: break;
    }
    return flow::End::not_a_waypoint;
}
/// The flags of flow::Block for a block's last instruction.
[[nodiscard]] inline std::uint8_t block_flags(const isa::Instruction& i) {
    using flow::Block;
    return static_cast<std::uint8_t>((i.link ? Block::link : 0) | (i.conditional ? Block::conditional : 0) |
                                     (i.function_return ? Block::function_return : 0) |
                                     (i.exception_return ? Block::exception_return : 0) |
                                     (i.undefined ? Block::undefined : 0) | (i.wait ? Block::wait : 0) |
                                     (i.transaction_start ? Block::transaction_start : 0));
}

/// Consecutive instructions in [start, after).
struct Walk {
    Place start{};
    Address after{};                 ///< address of the first instruction that is not included
    Address last{};                  ///< address of the last instruction decoded
    std::uint32_t bytes{};           ///< included
    std::uint32_t instructions{};    ///< included
    std::uint32_t section{};         ///< of the first instruction
    isa::Instruction instruction{};  ///< the last one decoded
    std::uint8_t last_bytes{};       ///< size of the last instruction included
    WalkEnd end{};

    /// The row of the block table for the instructions included. Precondition: instructions != 0.
    [[nodiscard]] flow::Block block() const {
        flow::Block block{.start = start.address.value,
                          .bytes = bytes,
                          .instructions = instructions,
                          .section = section,
                          .isa = start.isa,
                          .last_bytes = last_bytes};
        if (end == WalkEnd::waypoint) {
            block.target = instruction.target.value;
            block.end = block_end(instruction.waypoint);
            block.flags = block_flags(instruction);
            if (instruction.waypoint == isa::Waypoint::none) block.flags |= flow::Block::own_outcome;
        }
        return block;
    }
};

/// Walks up to and including the next waypoint instruction.
[[nodiscard]] Walk walk(const isa::CodeReader& code, const isa::Space& space, const Place& from,
                        const WalkRules& rules);

/// Whether the waypoint instruction that ends this walk is a branch that is always taken and leads elsewhere. False
/// also for indirect branches of T32, if an earlier IT instruction may make it conditional, or if the code before it is
/// not known. Precondition: the walk ends with a waypoint instruction.
[[nodiscard]] bool always_taken(const Walk& walk, const isa::CodeReader& code, const isa::Space& space);

/// Where `walk_to` stops.
enum class Stop : std::uint8_t {
    before,  ///< before the instruction at the address
    after    ///< after it: the instruction has executed; it may be undefined and have raised its exception
};

/// Walks up to the instruction at `to`; a waypoint instruction is never included, because it has its own outcome.
/// Precondition: to >= from.address.
[[nodiscard]] Walk walk_to(const isa::CodeReader& code, const isa::Space& space, const Place& from, Address to,
                           Stop stop, const WalkRules& rules);

}  // namespace waymark::follow
