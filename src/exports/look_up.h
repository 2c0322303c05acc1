/// Indices of answers → what they stand for. None of these trusts an index.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/analysis/answers.h"
#include "waymark/core/result.h"

namespace waymark::exports {

[[nodiscard]] inline const analysis::Function* function_at(const analysis::Answers& a, analysis::Index i) {
    return i < a.functions.size() ? &a.functions[i] : nullptr;
}
[[nodiscard]] inline std::string_view function_name(const analysis::Answers& a, analysis::Index i) {
    const analysis::Function* f = function_at(a, i);
    return f == nullptr || f->name.empty() ? std::string_view("[unknown]") : std::string_view(f->name);
}
/// As in the symbol table, where it is from one.
[[nodiscard]] inline std::string_view linkage_name(const analysis::Answers& a, analysis::Index i) {
    const analysis::Function* f = function_at(a, i);
    return f == nullptr || f->linkage_name.empty() ? function_name(a, i) : std::string_view(f->linkage_name);
}
/// Empty: not known.
[[nodiscard]] inline std::string_view source_path(const analysis::Answers& a, analysis::Index i) {
    return i < a.sources.size() ? std::string_view(a.sources[i].path) : std::string_view();
}
[[nodiscard]] inline std::string_view image_name(const analysis::Answers& a, analysis::Index i) {
    return i < a.images.size() ? std::string_view(a.images[i].name) : std::string_view();
}

[[nodiscard]] inline std::uint64_t cost_of(const analysis::Costs& costs, std::size_t metric) {
    return metric < costs.size() ? costs[metric] : 0;
}
/// An instruction without costs of its own cost the first metric its executions.
[[nodiscard]] inline std::uint64_t cost_of(const analysis::Instruction& i, std::size_t metric) {
    return !i.costs.empty() ? cost_of(i.costs, metric) : metric == 0 ? i.times : 0;
}

/// `usage`: there is no such metric.
[[nodiscard]] Status check_metric(const analysis::Answers& a, std::size_t metric);

/// The row at an address: that of a function, else one of the same image; null: there is none. Addresses of samples are
/// those in their files, so instructions of several files may have the same.
template <class Row>
[[nodiscard]] const Row* row_at(const analysis::Answers& a, const std::vector<Row>& rows, std::uint64_t address,
                                analysis::Index function) {
    const auto image = [&](analysis::Index i) {
        return i < a.functions.size() ? a.functions[i].image : analysis::none;
    };
    const Row* found = nullptr;
    for (auto at = std::lower_bound(rows.begin(), rows.end(), address,
                                    [](const Row&row, std::uint64_t sought) { return row.address < sought; });
         at != rows.end() && at->address == address; ++at) {
        if (at->function == function) return &*at;
        if (found == nullptr && image(at->function) == image(function)) found = &*at;
    }
    return found;
}
[[nodiscard]] inline const analysis::Instruction* instruction_at(const analysis::Answers& a, std::uint64_t address,
                                                                 analysis::Index function) {
    return row_at(a, a.instructions, address, function);
}

/// Of a node of the call tree; none: it has none, or one that does not stand before it.
[[nodiscard]] inline analysis::Index parent_of(const analysis::Answers& a, analysis::Index i) {
    const analysis::Index parent = a.calls[i].parent;
    return parent < i ? parent : analysis::none;
}
/// How a node of the call tree is called.
[[nodiscard]] std::string_view node_name(const analysis::Answers& a, const analysis::CallNode& node);

/// Whether an edge enters a function: by a call, or by a jump from another function to its first instruction.
[[nodiscard]] bool enters(const analysis::Answers& a, const analysis::Edge& edge);

/// How often each function was entered: from the call tree, or else how often its first instruction ran.
[[nodiscard]] std::vector<std::uint64_t> function_entries(const analysis::Answers& a);
/// How many samples are of a branch that entered each function.
[[nodiscard]] std::vector<std::uint64_t> sampled_entries(const analysis::Answers& a);

/// Lines in words: `3, 7-9`. `lines` ascend.
[[nodiscard]] std::string line_list(const std::vector<std::uint32_t>& lines);

/// What a capture like this one has not got, as the beginning of a sentence: `this SPE capture tells no …`.
[[nodiscard]] std::string lacks(const analysis::Answers& a, std::string_view what);
/// That source lines are missing, and what to do where something can be done.
[[nodiscard]] std::string lacks_lines(const analysis::Answers& a);

}  // namespace waymark::exports
