/// What was executed, of a sum: instructions, lines, branches, edges, blocks, loops, code of images, and the tree of
/// calls.
#pragma once

#include <tuple>
#include <vector>

#include "merge_names.h"
#include "merge_rows.h"

namespace waymark::answers {

class MergedCode {
public:
    explicit MergedCode(const MergedNames& names) : names_(names) {}

    /// Takes these tables of `a`, of which `maps` says where the rows of others are in the sum.
    void add(Answers& a, const RowMover::Maps& maps);
    /// The metric of this place is no longer the first.
    void another_metric_is_first(std::size_t before);
    /// Moves the tables into the result; `maps`: where rows of the sum are in it.
    void finish(Answers& out, const RowMover::Maps& maps);

private:
    void add_instructions(Answers& a, const RowMover::Maps& maps);
    void add_branches(Answers& a, const RowMover::Maps& maps);
    void add_loops(Answers& a, const RowMover::Maps& maps);
    void add_image_code(Answers& a, const RowMover::Maps& maps);
    void add_calls(Answers& a, const RowMover::Maps& maps);
    void add_costs(Instruction& to, const Instruction& x) const;

    static constexpr auto of_instruction = [](const Instruction& i) {
        return std::tuple(i.address, i.isa, i.function);
    };
    static constexpr auto of_line = [](const Line& l) { return std::tuple(l.source, l.line); };
    static constexpr auto of_branch = [](const Branch& b) { return std::tuple(b.address, b.target, b.function); };
    static constexpr auto of_edge = [](const Edge& e) {
        return std::tuple(e.from, e.to, e.kind, e.from_function, e.to_function);
    };
    static constexpr auto of_block = [](const Block& b) { return std::tuple(b.address, b.bytes, b.function); };
    static constexpr auto of_loop = [](const Loop& l) { return std::tuple(l.head, !l.irreducible, l.function); };
    static constexpr auto of_range = [](const ImageRange& r) { return std::tuple(r.image, r.first, r.last, r.isa); };
    static constexpr auto of_jump = [](const ImageBranch& b) {
        return std::tuple(b.image, b.from, b.to_image, b.to, b.kind);
    };

    const MergedNames& names_;
    MergedRows<Instruction, of_instruction> instructions_;
    MergedRows<Line, of_line> lines_;
    MergedRows<Branch, of_branch> branches_;
    MergedRows<Edge, of_edge> edges_;
    MergedRows<Block, of_block> blocks_;
    MergedRows<Loop, of_loop> loops_;
    MergedRows<ImageRange, of_range> ranges_;
    MergedRows<ImageBranch, of_jump> jumps_;
    bool calls_known_ = true;
    std::vector<CallNode> calls_;
    PlaceTable call_places_;
};

}  // namespace waymark::answers
