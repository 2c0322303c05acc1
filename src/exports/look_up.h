/// Looks up the rows to which indices of answers refer. None of these functions trusts an index.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/answers/costs.h"
#include "waymark/answers/views.h"
#include "waymark/core/result.h"

namespace waymark::exports {

[[nodiscard]] inline const answers::Function* function_at(const answers::Answers& a, answers::Index i) {
    return i < a.functions.size() ? &a.functions[i] : nullptr;
}
using answers::function_name;
/// The name in the symbol table, if the function has one.
[[nodiscard]] inline std::string_view linkage_name(const answers::Answers& a, answers::Index i) {
    const answers::Function* f = function_at(a, i);
    return f == nullptr || f->linkage_name.empty() ? function_name(a, i) : std::string_view(f->linkage_name);
}
using answers::image_name;
using answers::path_text;

using answers::cost_of;
using answers::parent_of;

/// `usage`: there is no metric with this name.
[[nodiscard]] Status check_metric(const answers::Answers& a, std::size_t metric);

/// The row at an address: the function's row, otherwise one of the same image; null if there is none. Addresses of
/// samples are relative to their files, so instructions of several files may have the same address.
template <class Row>
[[nodiscard]] const Row* row_at(const answers::Answers& a, const std::vector<Row>& rows, std::uint64_t address,
                                answers::Index function) {
    const auto image = [&](answers::Index i) { return i < a.functions.size() ? a.functions[i].image : answers::none; };
    const Row* found = nullptr;
    for (auto at = std::lower_bound(rows.begin(), rows.end(), address,
                                    [](const Row&row, std::uint64_t sought) { return row.address < sought; });
         at != rows.end() && at->address == address; ++at) {
        if (at->function == function) return &*at;
        if (found == nullptr && image(at->function) == image(function)) found = &*at;
    }
    return found;
}
[[nodiscard]] inline const answers::Instruction* instruction_at(const answers::Answers& a, std::uint64_t address,
                                                                answers::Index function) {
    return row_at(a, a.instructions, address, function);
}

/// Paths to the nodes of a call tree, for formats that repeat the whole path for each node. A longer path keeps its
/// outermost and innermost frames, so that the output for a deep recursion does not grow with the square of its depth.
class CutPaths {
public:
    static constexpr std::size_t most_frames = 512;

    explicit CutPaths(const answers::Answers& a) : answers_(a), depth_(a.calls.size()), outer_(a.calls.size()) {
        for (answers::Index i = 0; i < a.calls.size(); ++i) {
            const answers::Index up = parent_of(a, i);
            depth_[i] = up == answers::none ? 0 : depth_[up] + 1;
            outer_[i] = depth_[i] < outermost ? i : outer_[up];
        }
    }
    /// Calls `each(node)` for the nodes from `node` outwards, and `left_out(number)` once where frames are omitted.
    template <class Each, class LeftOut>
    void walk(answers::Index node, Each&& each, LeftOut&& left_out) {
        const std::size_t frames = depth_[node] + std::size_t{1};
        std::size_t inner = frames <= most_frames ? frames : most_frames - outermost - 1;
        for (; inner != 0; --inner, node = parent_of(answers_, node)) each(node);
        if (frames <= most_frames) return;
        ++cut_;
        left_out(frames - (most_frames - 1));
        for (node = outer_[node]; node != answers::none; node = parent_of(answers_, node)) each(node);
    }
    /// A sentence with the number of shortened paths; empty if there are none.
    [[nodiscard]] std::string note() const;

private:
    static constexpr std::size_t outermost = most_frames / 2;
    const answers::Answers& answers_;
    std::vector<std::size_t> depth_;
    std::vector<answers::Index> outer_;  // by node: the innermost of the outermost nodes kept on its path
    std::size_t cut_ = 0;
};

/// The name of a node of the call tree.
[[nodiscard]] std::string_view node_name(const answers::Answers& a, const answers::CallNode& node);

/// Whether an edge enters a function: by a call, or by a jump from another function to its first instruction.
[[nodiscard]] bool enters(const answers::Answers& a, const answers::Edge& edge);

/// Whether an edge belongs to a taken branch. Samples also have edges of branches that were not taken, to the next
/// instruction.
[[nodiscard]] inline bool is_taken(const answers::Answers& a, const answers::Edge& edge) {
    if (edge.times == 0 || edge.kind != answers::Branch::Kind::conditional) return edge.times != 0;
    const answers::Instruction* const branch = instruction_at(a, edge.from, edge.from_function);
    return branch == nullptr || edge.to != edge.from + branch->bytes;
}

/// How often each function was entered: from the call tree, or otherwise the execution count of its first instruction.
[[nodiscard]] std::vector<std::uint64_t> function_entries(const answers::Answers& a);
/// Number of samples of branches that entered each function.
[[nodiscard]] std::vector<std::uint64_t> sampled_entries(const answers::Answers& a);

/// Lines as text: `3, 7-9`. `lines` are ascending.
[[nodiscard]] std::string line_list(const std::vector<std::uint32_t>& lines);

/// The beginning of a sentence about data that captures of this kind lack: `this SPE capture contains no …`.
[[nodiscard]] std::string lacks(const answers::Answers& a, std::string_view what);
/// A sentence: source lines are missing; with advice, if there is any.
[[nodiscard]] std::string lacks_lines(const answers::Answers& a);

}  // namespace waymark::exports
