/// Indices of answers → what they name. None of these trusts an index.
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
/// As in the symbol table, where it is from one.
[[nodiscard]] inline std::string_view linkage_name(const answers::Answers& a, answers::Index i) {
    const answers::Function* f = function_at(a, i);
    return f == nullptr || f->linkage_name.empty() ? function_name(a, i) : std::string_view(f->linkage_name);
}
using answers::image_name;
using answers::path_text;

using answers::cost_of;
using answers::parent_of;

/// `usage`: there is no such metric.
[[nodiscard]] Status check_metric(const answers::Answers& a, std::size_t metric);

/// The row at an address: that of a function, else one of the same image; null: there is none. Addresses of samples are
/// those in their files, so instructions of several files may have the same.
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

/// The paths to the nodes of a call tree, for formats that repeat the whole path to each: of a longer one the outermost
/// and the innermost frames, so that a deep recursion does not grow with its square.
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
    /// Calls `each(node)` for the nodes from `node` outwards, and once `left_out(number)` where frames are.
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
    /// How many paths were cut, as a sentence; empty: none.
    [[nodiscard]] std::string note() const;

private:
    static constexpr std::size_t outermost = most_frames / 2;
    const answers::Answers& answers_;
    std::vector<std::size_t> depth_;
    std::vector<answers::Index> outer_;  // the node on the path that is the innermost of the outermost ones
    std::size_t cut_ = 0;
};

/// How a node of the call tree is called.
[[nodiscard]] std::string_view node_name(const answers::Answers& a, const answers::CallNode& node);

/// Whether an edge enters a function: by a call, or by a jump from another function to its first instruction.
[[nodiscard]] bool enters(const answers::Answers& a, const answers::Edge& edge);

/// Whether an edge is of a branch that was taken. Samples have edges of those that were not, where control ran on.
[[nodiscard]] inline bool is_taken(const answers::Answers& a, const answers::Edge& edge) {
    if (edge.times == 0 || edge.kind != answers::Branch::Kind::conditional) return edge.times != 0;
    const answers::Instruction* const branch = instruction_at(a, edge.from, edge.from_function);
    return branch == nullptr || edge.to != edge.from + branch->bytes;
}

/// How often each function was entered: from the call tree, or else how often its first instruction ran.
[[nodiscard]] std::vector<std::uint64_t> function_entries(const answers::Answers& a);
/// How many samples are of a branch that entered each function.
[[nodiscard]] std::vector<std::uint64_t> sampled_entries(const answers::Answers& a);

/// Lines in words: `3, 7-9`. `lines` ascend.
[[nodiscard]] std::string line_list(const std::vector<std::uint32_t>& lines);

/// What a capture like this one lacks, as the beginning of a sentence: `this SPE capture contains no …`.
[[nodiscard]] std::string lacks(const answers::Answers& a, std::string_view what);
/// That source lines are missing, and what to do where something can be done.
[[nodiscard]] std::string lacks_lines(const answers::Answers& a);

}  // namespace waymark::exports
