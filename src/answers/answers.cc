#include "waymark/answers/answers.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "waymark/answers/costs.h"

namespace waymark::answers {

std::vector<std::pair<Index, std::uint32_t>> lines_of(const Answers& answers, const Instruction& code) {
    std::vector<std::pair<Index, std::uint32_t>> out;
    if (code.source != none && code.line != 0) out.emplace_back(code.source, code.line);
    const auto before = [](const Statement& s, const auto& key) { return std::tuple(s.address, s.function) < key; };
    for (auto at = std::lower_bound(answers.statements.begin(), answers.statements.end(),
                                    std::tuple(code.address, code.function), before);
         at != answers.statements.end() && at->address == code.address && at->function == code.function; ++at)
        if (at->source != none && at->line != 0) out.emplace_back(at->source, at->line);
    return out;
}

namespace {

/// By node of the call tree: whether the node is a call of a function, and none of its callers is a call of the same
/// function. O(n), however deep the tree is.
std::vector<bool> outermost_calls(const std::vector<CallNode>& calls, std::size_t functions) {
    std::vector<Index> child(calls.size(), none), sibling(calls.size(), none);  // the first, and the next
    Index root = none;
    for (auto i = static_cast<Index>(calls.size()); i-- > 0;)
        sibling[i] = std::exchange(calls[i].parent != none ? child[calls[i].parent] : root, i);
    std::vector<bool> out(calls.size());
    std::vector<std::uint32_t> open(functions);  // nodes of each function, from the root to the current one
    const auto is_call = [&](Index node) { return calls[node].function < functions; };
    for (Index node = root; node != none;) {
        if (is_call(node)) out[node] = open[calls[node].function]++ == 0;
        if (child[node] != none) {
            node = child[node];
            continue;
        }
        Index next = none;
        for (; node != none && next == none; node = calls[node].parent) {
            if (is_call(node)) --open[calls[node].function];
            next = sibling[node];
        }
        node = next;
    }
    return out;
}

}  // namespace

std::vector<FunctionCosts> function_costs(const Answers& answers, bool interrupts) {
    std::vector<FunctionCosts> result(answers.functions.size());
    for (FunctionCosts& f : result) f.self.resize(answers.metrics.size());
    if (answers.calls.empty()) {
        for (const Instruction& i : answers.instructions)
            if (i.function < result.size()) add(result[i.function].self, i.costs.empty() ? Costs{i.times} : i.costs);
        return result;
    }
    for (FunctionCosts& f : result) f.inclusive.resize(answers.metrics.size());
    // Parents precede their children. From the last node to the first, every node's sum is complete before it is added
    // to its parent's sum.
    std::vector<Costs> sums(answers.calls.size());
    const std::vector<bool> outermost = outermost_calls(answers.calls, result.size());
    for (std::size_t i = answers.calls.size(); i-- > 0;) {
        const CallNode& node = answers.calls[i];
        add(sums[i], node.self);
        const bool interrupts_it = node.kind == CallNode::Kind::interrupt || node.kind == CallNode::Kind::signal;
        if (node.parent != none && (interrupts || !interrupts_it)) add(sums[node.parent], sums[i]);
        if (node.function >= result.size()) continue;
        FunctionCosts& f = result[node.function];
        f.calls = saturating(f.calls, node.calls);
        add(f.self, node.self);
        if (outermost[i]) add(f.inclusive, sums[i]);
    }
    return result;
}

bool ran(const FunctionCosts& costs) {
    const auto any = [](const Costs& all) {
        return std::any_of(all.begin(), all.end(), [](std::uint64_t n) { return n != 0; });
    };
    return costs.calls != 0 || any(costs.self) || any(costs.inclusive);
}

std::string_view without_suffix(std::string_view name) {
    constexpr std::array<std::string_view, 6> suffixes{".constprop.", ".isra.",     ".part.",
                                                       ".cold",       ".lto_priv.", ".llvm."};
    std::size_t end = name.size();
    for (const std::string_view suffix : suffixes)
        if (const std::size_t at = name.find(suffix); at != 0 && at != name.npos) end = std::min(end, at);
    // Names as the demangler writes them: `f() [clone .part.0]`.
    if (const std::size_t at = name.find(" [clone ."); at != 0 && at != name.npos) end = std::min(end, at);
    return name.substr(0, end);
}

std::vector<InlineFrame> inline_frames(const Answers& answers, const Instruction& instruction) {
    std::vector<InlineFrame> out;
    Index source = instruction.source;
    std::uint32_t line = instruction.line;
    for (Index at = instruction.inlined; at < answers.inlined.size();) {
        const InlinedCall& call = answers.inlined[at];
        out.push_back({call.name, call.linkage_name.empty() ? call.name : call.linkage_name, source, line});
        source = call.source;
        line = call.line;
        at = call.parent < at ? call.parent : none;
    }
    InlineFrame outermost{{}, {}, source, line};
    if (instruction.function < answers.functions.size()) {
        const Function& f = answers.functions[instruction.function];
        outermost.function = f.name;
        outermost.linkage_name = f.linkage_name.empty() ? f.name : f.linkage_name;
    }
    out.push_back(outermost);
    return out;
}

std::vector<InlinedCosts> inlined_costs(const Answers& answers) {
    const std::size_t functions = answers.functions.size(), metrics = answers.metrics.size();
    // Costs by inlined call. By function: costs of its own code, and of code inlined into it.
    std::vector<Costs> of_call(answers.inlined.size()), own(functions, Costs(metrics)),
        within(functions, Costs(metrics));
    for (const Instruction& i : answers.instructions) {
        const Costs costs = i.costs.empty() ? Costs{i.times} : i.costs;
        if (i.inlined < of_call.size()) add(of_call[i.inlined], costs);
        if (i.function < functions) add((i.inlined < of_call.size() ? within : own)[i.function], costs);
    }
    std::vector<InlinedCosts> out(functions);
    const auto image = [&](Index function) { return function < functions ? answers.functions[function].image : none; };
    std::map<std::pair<Index, std::string_view>, std::size_t> known;
    const std::vector<FunctionCosts> all = function_costs(answers);
    std::vector<bool> by_tree(metrics, true);
    for (std::size_t i = 0; i < functions; ++i)
        for (std::size_t m = 0; m < metrics; ++m)
            if (all[i].self[m] < within[i][m]) by_tree[m] = false;
    for (std::size_t i = 0; i < functions; ++i) {
        const Function& f = answers.functions[i];
        out[i] = {f.name, static_cast<Index>(i), f.image, 0, all[i].self, Costs(metrics)};
        // If the call tree was full, its costs went to callers; cycles of blocks and of calls may also differ. Then the
        // costs of instructions are used for all.
        for (std::size_t m = 0; m < metrics; ++m)
            out[i].self[m] = by_tree[m] ? all[i].self[m] - within[i][m] : own[i][m];
        if (!f.synthetic) known.try_emplace({f.image, f.linkage_name.empty() ? f.name : f.linkage_name}, i);
    }
    for (std::size_t i = 0; i < answers.inlined.size(); ++i) {
        if (std::all_of(of_call[i].begin(), of_call[i].end(), [](std::uint64_t n) { return n == 0; })) continue;
        const InlinedCall& call = answers.inlined[i];
        const std::string_view name = call.linkage_name.empty() ? call.name : call.linkage_name;
        const auto [at, fresh] = known.try_emplace({image(call.function), name}, out.size());
        if (fresh) out.push_back({call.name, none, image(call.function), 0, Costs(metrics), Costs(metrics)});
        InlinedCosts& costs = out[at->second];
        ++costs.places;
        add(costs.self, of_call[i]);
        add(costs.inlined, of_call[i]);
    }
    return out;
}

}  // namespace waymark::answers
