#include "waymark/follow/walk.h"

#include "waymark/isa/it_block.h"

namespace waymark::follow {

using isa::Isa;
using isa::Waypoint;

namespace {

/// Performs both walks. `limited`: up to the instruction at `to`, and without waypoint instructions.
template <bool limited>
Walk walk_on(const isa::CodeReader& code, const isa::Space& space, const Place& from, Address to, Stop stop,
             const WalkRules& rules) {
    Walk w;
    w.start = from;
    w.last = from.address;
    const auto ended = [&](WalkEnd end, Address after) {
        w.after = after;
        w.end = end;
    };
    const auto stopped = [&](Address after) {
        ended((stop == Stop::before ? after : w.last) == to ? WalkEnd::arrived : WalkEnd::passed, after);
    };
    isa::ItBlock it;
    isa::Fetcher fetch(code, space);
    for (Address at = from.address;;) {
        if constexpr (limited)
            // The second condition detects that addresses have wrapped.
            if (!(stop == Stop::before ? at < to : at <= to) || at < from.address) {
                stopped(at);
                break;
            }
        if (w.bytes >= rules.most_bytes) {
            ended(WalkEnd::runaway, at);
            break;
        }
        const isa::Fetched fetched = fetch(at, from.isa);
        if (fetched.bytes == 0) {
            ended(WalkEnd::no_memory, at);
            break;
        }
        w.instruction = isa::decode_instr(at, from.isa, fetched.opcode, fetched.bytes == 4, rules.decode);
        const isa::Instruction& instruction = w.instruction;
        const bool may_be_passed = it.next(fetched, from.isa);
        // With Stop::after, the instruction at `to` is known to have raised its exception.
        if (instruction.undefined && !may_be_passed && !(limited && stop == Stop::after && at == to)) {
            ended(WalkEnd::undefined, at);
            break;
        }
        if (w.instructions == 0) w.section = fetched.section;
        w.last = at;
        const bool waypoint = instruction.waypoint != Waypoint::none || (!limited && rules.each_instruction);
        if (limited && waypoint) {
            stopped(at);
            break;
        }
        ++w.instructions;
        w.bytes += instruction.bytes;
        w.last_bytes = instruction.bytes;
        at = advance(at, instruction.bytes, from.isa);
        if (waypoint) {
            if (instruction.waypoint == Waypoint::none) {
                w.instruction.target = at;
                w.instruction.target_isa = from.isa;
            }
            ended(WalkEnd::waypoint, at);
            break;
        }
    }
    return w;
}

}  // namespace

Walk walk(const isa::CodeReader& code, const isa::Space& space, const Place& from, const WalkRules& rules) {
    return walk_on<false>(code, space, from, {}, {}, rules);
}

bool always_taken(const Walk& walk, const isa::CodeReader& code, const isa::Space& space) {
    const isa::Instruction& i = walk.instruction;
    if (i.conditional || (i.waypoint != Waypoint::direct && i.waypoint != Waypoint::indirect)) return false;
    if (i.waypoint == Waypoint::direct && i.target == walk.after && i.target_isa == walk.start.isa) return false;
    if (walk.start.isa == Isa::a32 || walk.start.isa == Isa::a64) return true;
    // Recorders cannot see from the target whether an IT instruction covers an indirect branch: a branch to the next
    // instruction may have been recorded as not taken.
    if (i.waypoint == Waypoint::indirect) return false;
    for (unsigned before = 2; before <= isa::longest_it_block; before += 2) {
        if (walk.last.value < before) return false;
        const isa::Code there = code.at({walk.last.value - before}, space);
        if (there.bytes.size() < 2 || there.section != walk.section) return false;
        const auto halfword = static_cast<std::uint32_t>(there.bytes[0] | there.bytes[1] << 8);
        if (isa::it_block_bytes(halfword) >= before) return false;
    }
    return true;
}

Walk walk_to(const isa::CodeReader& code, const isa::Space& space, const Place& from, Address to, Stop stop,
             const WalkRules& rules) {
    return walk_on<true>(code, space, from, to, stop, rules);
}

}  // namespace waymark::follow
