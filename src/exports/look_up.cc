#include "look_up.h"

#include <fmt/format.h>

#include <algorithm>

namespace waymark::exports {

using analysis::Answers;
using analysis::CallNode;
using analysis::Instruction;

Status check_metric(const Answers& a, std::size_t metric) {
    if (metric < a.metrics.size()) return Nothing{};
    return Error{Errc::usage, fmt::format("there is no metric {} of {}", metric, a.metrics.size())};
}

const Instruction* instruction_at(const Answers& a, std::uint64_t address) {
    const auto at = std::lower_bound(a.instructions.begin(), a.instructions.end(), address,
                                     [](const Instruction& i, std::uint64_t sought) { return i.address < sought; });
    return at != a.instructions.end() && at->address == address ? &*at : nullptr;
}

std::string_view node_name(const Answers& a, const CallNode& node) {
    if (function_at(a, node.function) != nullptr) return function_name(a, node.function);
    if (node.kind == CallNode::Kind::root) return "all";
    return node.kind == CallNode::Kind::unsynchronised ? "[caller not in the trace]" : "[unknown]";
}

std::vector<std::uint64_t> function_entries(const Answers& a) {
    std::vector<std::uint64_t> entries(a.functions.size());
    if (a.calls.empty()) {
        for (std::size_t i = 0; i < a.functions.size(); ++i)
            if (const Instruction* first = instruction_at(a, a.functions[i].address);
                first != nullptr && first->function == i)
                entries[i] = first->times;
        return entries;
    }
    for (const CallNode& node : a.calls)
        if (node.function < entries.size()) entries[node.function] += node.calls;
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
    return fmt::format("this {} capture tells no {}", a.unit.empty() ? "kind of" : a.unit, what);
}

std::string lacks_lines(const Answers& a) {
    const std::string what = lacks(a, "source lines");
    // Counters are of functions and ranges, whatever is known of the program.
    if (a.unit == "DPU") return what;
    return what + "; give the program with debug information (built with -g) with --symbols";
}

}  // namespace waymark::exports
