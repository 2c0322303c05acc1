#include "waymark/record/earlier_code.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace waymark::record {

void EarlierCode::ran(std::uint32_t thread, const Code& code, CompletedPart part) {
    if (const auto open = open_.find(thread); open != open_.end()) {
        const Branch& branch = open->second;
        Ways& ways = ways_[branch.address.value];
        const bool next = code.address == branch.next, target = !branch.direct || code.address == branch.target;
        // If both directions lead to one place, or neither leads here, the direction is not known. An indirect branch
        // may also lead to the next instruction.
        ways.passed |= next || !target;
        ways.taken |= !branch.direct || branch.target == branch.next || !next;
        open_.erase(open);
    }
    if (part.end <= part.first) return;
    const CodeInstruction& last = code.instructions[part.end - 1];
    instructions_ += part.end - part.first;
    std::uint64_t& end = ends_[code.address.value + code.instructions[part.first].offset];
    end = std::max(end, code.address.value + last.offset + last.bytes);
    if (part.stopped || part.end != code.instructions.size() || code.waypoints.empty()) return;
    const CodeWaypoint& way = code.waypoints.back();
    const isa::Waypoint kind = way.instruction.waypoint;
    if (way.index + 1 == part.end && (kind == isa::Waypoint::direct || kind == isa::Waypoint::indirect))
        open_[thread] = {way.address, way.instruction.target, code.end(), kind == isa::Waypoint::direct};
}

void EarlierCode::interrupted(std::uint32_t thread) {
    const auto open = open_.find(thread);
    if (open == open_.end()) return;
    ways_[open->second.address.value] = {true, true};
    open_.erase(open);
}

capture::RanBefore EarlierCode::found() const {
    capture::RanBefore out;
    out.instructions = instructions_;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> stretches(ends_.begin(), ends_.end());
    std::sort(stretches.begin(), stretches.end());
    for (const auto& [first, end] : stretches) {
        if (!out.code.empty() && first <= out.code.back().first.value + out.code.back().bytes) {
            capture::RanBefore::Stretch& before = out.code.back();
            before.bytes = std::max(before.bytes, end - before.first.value);
        } else {
            out.code.push_back({{first}, end - first});
        }
    }
    std::unordered_map<std::uint64_t, Ways> ways = ways_;
    for (const auto& [thread, branch] : open_) ways[branch.address.value] = {true, true};
    for (const auto& [branch, way] : ways)
        if (way.passed) out.branches.push_back({{branch}, way.taken});
    std::sort(out.branches.begin(), out.branches.end(),
              [](const auto& a, const auto& b) { return a.branch < b.branch; });
    return out;
}

}  // namespace waymark::record
