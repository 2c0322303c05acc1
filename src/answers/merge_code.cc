/// Merging what was executed: instructions, lines, branches, edges, blocks, loops, and code of images.
#include "merge_rows.h"

namespace waymark::answers {
namespace {

/// An instruction without costs has its execution count as cost in the first metric.
void add_costs(Instruction& to, const Instruction& x) {
    if (to.costs.empty() && x.costs.empty()) return;
    if (to.costs.empty()) to.costs = {to.times};
    add(to.costs, x.costs.empty() ? Costs{x.times} : x.costs);
}

/// Difference between an image's load address in one input and in the result.
std::uint64_t shift_of_function(const Answers& a, const RowMover::Maps& maps, const Answers& out, Index function) {
    return function < a.functions.size() ? shift_of_image(a, maps, out, a.functions[function].image) : 0;
}

}  // namespace

void merge_code(std::span<const Answers* const> all, const std::vector<RowMover::Maps>& maps, Answers& out) {
    MergedRows<std::tuple<std::uint64_t, isa::Isa, Index>, Instruction> instructions;
    MergedRows<std::pair<Index, std::uint32_t>, Line> lines;
    MergedRows<std::tuple<std::uint64_t, std::uint64_t, Index>, Branch> branches;
    MergedRows<std::tuple<std::uint64_t, std::uint64_t, Branch::Kind, Index, Index>, Edge> edges;
    MergedRows<std::tuple<std::uint64_t, std::uint32_t, Index>, Block> blocks;
    MergedRows<std::tuple<std::uint64_t, bool, Index>, Loop> loops;
    MergedRows<std::tuple<Index, std::uint64_t, std::uint64_t, isa::Isa>, ImageRange> ranges;
    MergedRows<std::tuple<Index, std::uint64_t, Index, std::uint64_t, Branch::Kind>, ImageBranch> jumps;
    for (std::size_t n = 0; n < all.size(); ++n) {
        RowMover mover(maps[n]);
        // `by`: difference between the function's address in this input and in the result.
        const auto each = [&](const auto& rows, auto function, auto&& use) {
            for (const auto& row : rows) {
                auto moved = row;
                const std::uint64_t by = shift_of_function(*all[n], maps[n], out, row.*function);
                schema::fields(mover, moved);
                use(std::move(moved), by);
            }
        };
        each(all[n]->instructions, &Instruction::function, [&](Instruction i, std::uint64_t by) {
            i.address += by;
            // Without costs, `times` is the cost in the first metric of the input, not of the result.
            if (i.costs.empty() && !maps[n].metric.empty() && maps[n].metric.front() != 0) {
                i.costs.resize(out.metrics.size());
                i.costs[maps[n].metric.front()] = i.times;
            }
            instructions.add({i.address, i.isa, i.function}, i, [](Instruction& to, const Instruction& x) {
                take_most(to.bytes, x.bytes);
                to.seen = seen_in_either(to.seen, x.seen);
                const auto line = [](const Instruction& y) {
                    return std::tuple(y.line, rank(y.source), rank(y.inlined), y.discriminator);
                };
                if (line(to) < line(x))
                    std::tie(to.line, to.source, to.inlined, to.discriminator) =
                        std::tie(x.line, x.source, x.inlined, x.discriminator);
                add_costs(to, x);
                take_sum(to.times, x.times);
                take_text(to.text, x.text);
            });
        });
        each(all[n]->lines, &Line::function, [&](Line l, std::uint64_t) {
            lines.add({l.source, l.line}, l, [](Line& to, const Line& x) {
                to.function = std::min(to.function, x.function);
                to.seen = seen_in_either(to.seen, x.seen);
                take_sum(to.times, x.times);
                add(to.costs, x.costs);
            });
        });
        each(all[n]->branches, &Branch::function, [&](Branch b, std::uint64_t by) {
            b.address += by;
            if (b.target != 0) b.target += by;
            branches.add({b.address, b.target, b.function}, b, [](Branch& to, const Branch& x) {
                take_most(to.kind, x.kind);
                take_place(to.source, to.line, x.source, x.line);
                take_sum(to.taken, x.taken);
                take_sum(to.not_taken, x.not_taken);
                to.seen_taken = seen_in_either(to.seen_taken, x.seen_taken);
                to.seen_not_taken = seen_in_either(to.seen_not_taken, x.seen_not_taken);
                if (x.mispredicted) to.mispredicted = saturating(to.mispredicted.value_or(0), *x.mispredicted);
            });
        });
        for (const Edge& edge : all[n]->edges) {
            Edge e = edge;
            e.from += shift_of_function(*all[n], maps[n], out, edge.from_function);
            e.to += shift_of_function(*all[n], maps[n], out, edge.to_function);
            schema::fields(mover, e);
            edges.add({e.from, e.to, e.kind, e.from_function, e.to_function}, e, [](Edge& to, const Edge& x) {
                take_sum(to.times, x.times);
                add(to.inclusive, x.inclusive);
            });
        }
        each(all[n]->blocks, &Block::function, [&](Block b, std::uint64_t by) {
            b.address += by;
            blocks.add({b.address, b.bytes, b.function}, b, [](Block& to, const Block& x) {
                take_most(to.instructions, x.instructions);
                take_sum(to.times, x.times);
            });
        });
        each(all[n]->loops, &Loop::function, [&](Loop l, std::uint64_t by) {
            l.head += by;
            l.tail += by;
            if (l.outer) *l.outer += by;
            loops.add({l.head, !l.irreducible, l.function}, l, [](Loop& to, const Loop& x) {
                take_most(to.tail, x.tail);
                take_place(to.source, to.line, x.source, x.line);
                if (std::tie(to.depth, to.outer) < std::tie(x.depth, x.outer))
                    std::tie(to.depth, to.outer) = std::tie(x.depth, x.outer);
                take_sum(to.entries, x.entries);
                take_sum(to.iterations, x.iterations);
                add(to.costs, x.costs);
            });
        });
        for (ImageRange r : all[n]->ranges) {
            schema::fields(mover, r);
            ranges.add({r.image, r.first, r.last, r.isa}, r, [](ImageRange& to, const ImageRange& x) {
                take_most(to.instructions, x.instructions);
                take_sum(to.times, x.times);
                take_sum(to.taken, x.taken);
                take_sum(to.not_taken, x.not_taken);
            });
        }
        for (ImageBranch b : all[n]->jumps) {
            schema::fields(mover, b);
            jumps.add({b.image, b.from, b.to_image, b.to, b.kind}, b,
                      [](ImageBranch& to, const ImageBranch& x) { take_sum(to.times, x.times); });
        }
    }
    out.instructions = instructions.take();
    out.lines = lines.take();
    out.branches = branches.take();
    out.edges = edges.take();
    out.blocks = blocks.take();
    out.loops = loops.take();
    out.ranges = ranges.take();
    out.jumps = jumps.take();
}

}  // namespace waymark::answers
