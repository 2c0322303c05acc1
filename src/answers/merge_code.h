/// Merges executed code: instructions, lines, branches, edges, blocks, loops, code of images, and the tree of
/// calls.
#pragma once

#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "merge_names.h"
#include "merge_rows.h"
#include "merge_unlisted.h"

namespace waymark::answers {

inline auto merge_key(const Instruction& i) { return std::tuple(i.address, i.isa, i.function); }
inline auto merge_key(const Statement& s) { return std::tuple(s.address, s.function, s.source, s.line); }
inline auto merge_key(const Line& l) { return std::tuple(l.source, l.line); }
inline auto merge_key(const Branch& b) { return std::tuple(b.address, b.target, b.function); }
inline auto merge_key(const Edge& e) { return std::tuple(e.from, e.to, e.kind, e.from_function, e.to_function); }
inline auto merge_key(const Block& b) { return std::tuple(b.address, b.bytes, b.function); }
inline auto merge_key(const Loop& l) { return std::tuple(l.head, !l.irreducible, l.function); }
inline auto merge_key(const ImageRange& r) { return std::tuple(r.image, r.first, r.last, r.isa); }
inline auto merge_key(const ImageBranch& b) { return std::tuple(b.image, b.from, b.to_image, b.to, b.kind); }

class MergedCode {
public:
    explicit MergedCode(const MergedNames& names) : names_(names) {}

    /// Adds these tables of `a`. `maps` translates indices of `a` to indices of the sum.
    void add(Answers& a, const RowMover::Maps& maps);
    /// The metric with index `before` is no longer the first.
    void another_metric_is_first(std::size_t before);
    /// Decides which code may have run, while names have indices of the sum: before MergedNames::finish.
    void finish_seen();
    /// Moves the tables into the result. `maps` translates indices of the sum to the result.
    void finish(Answers& out, const RowMover::Maps& maps);
    /// Names of images without a build ID of which two inputs have different instructions at one address.
    [[nodiscard]] const std::set<std::string>& changed_images() const { return changed_images_; }

private:
    void compare_code(const Instruction& a, const Instruction& b);
    void add_instructions(Answers& a, const RowMover::Maps& maps);
    void add_branches(Answers& a, const RowMover::Maps& maps);
    void add_loops(Answers& a, const RowMover::Maps& maps);
    void add_image_code(Answers& a, const RowMover::Maps& maps);
    void add_calls(Answers& a, const RowMover::Maps& maps);
    void add_costs(Instruction& to, const Instruction& x) const;

    const MergedNames& names_;
    MergedRows<Instruction> instructions_;
    MergedRows<Statement> statements_;
    MergedRows<Line> lines_;
    MergedRows<Branch> branches_;
    MergedRows<Edge> edges_;
    MergedRows<Block> blocks_;
    MergedRows<Loop> loops_;
    MergedRows<ImageRange> ranges_;
    MergedRows<ImageBranch> jumps_;
    UnlistedCode unlisted_{names_};
    RowsListed listed_instructions_, listed_branches_;
    std::set<std::string> changed_images_;
    bool calls_known_ = true;
    std::vector<CallNode> calls_;
    PlaceTable call_places_;
};

}  // namespace waymark::answers
