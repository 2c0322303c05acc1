#include "look_up.h"

#include <fmt/format.h>

#include <algorithm>

#include "waymark/core/numbers.h"
#include "waymark/core/saturating.h"

namespace waymark::exports {

using answers::Answers;
using answers::CallNode;
using answers::Instruction;

Status check_metric(const Answers& a, std::size_t metric) {
    if (metric < a.metrics.size()) return Nothing{};
    return Error{Errc::usage, fmt::format("there is no metric {} of {}", metric, a.metrics.size())};
}

std::string CutPaths::note() const {
    if (cut_ == 0) return {};
    return fmt::format("{} deeper than {} frames: the outermost {} and the innermost frames of each are written",
                       cut_ == 1 ? "a path is" : fmt::format("{} paths are", grouped(cut_)), most_frames, outermost);
}

std::string_view node_name(const Answers& a, const CallNode& node) {
    if (function_at(a, node.function) != nullptr) return function_name(a, node.function);
    if (node.kind == CallNode::Kind::root) return "all";
    return node.kind == CallNode::Kind::unsynchronised ? "[caller not in the trace]" : "[unknown]";
}

bool enters(const Answers& a, const answers::Edge& e) {
    using Kind = answers::Branch::Kind;
    const answers::Function* to = function_at(a, e.to_function);
    if (to == nullptr || to->synthetic || e.to != to->address || e.kind == Kind::function_return) return false;
    return e.kind == Kind::call || e.kind == Kind::indirect_call || e.from_function != e.to_function;
}

std::vector<std::uint64_t> sampled_entries(const Answers& a) {
    std::vector<std::uint64_t> entries(a.functions.size());
    for (const answers::Edge& e : a.edges)
        if (enters(a, e)) add_saturating(entries[e.to_function], e.times);
    return entries;
}

std::vector<std::uint64_t> function_entries(const Answers& a) {
    std::vector<std::uint64_t> entries(a.functions.size());
    if (a.calls.empty()) {
        for (std::size_t i = 0; i < a.functions.size(); ++i)
            if (const Instruction* first = instruction_at(a, a.functions[i].address, static_cast<answers::Index>(i));
                first != nullptr && first->function == i)
                entries[i] = first->times;
        return entries;
    }
    for (const CallNode& node : a.calls)
        if (node.function < entries.size()) add_saturating(entries[node.function], node.calls);
    return entries;
}

std::string line_list(const std::vector<std::uint32_t>& lines) {
    std::string out;
    for (std::size_t i = 0; i < lines.size();) {
        std::size_t last = i;
        while (last + 1 < lines.size() && lines[last + 1] <= lines[last] + 1) ++last;
        out += (out.empty() ? "" : ", ") + std::to_string(lines[i]);
        if (lines[last] != lines[i]) out += "-" + std::to_string(lines[last]);
        i = last + 1;
    }
    return out;
}

std::string lacks(const Answers& a, std::string_view what) {
    return fmt::format("this {} capture contains no {}", a.unit.empty() ? "kind of" : a.unit, what);
}

std::string lacks_lines(const Answers& a) {
    const std::string what = lacks(a, "source lines");
    // Counters belong to functions and ranges, even if nothing is known about the program.
    if (a.unit == "DPU") return what;
    return what + "; give the program with debug information (built with -g) with --symbols";
}

}  // namespace waymark::exports
