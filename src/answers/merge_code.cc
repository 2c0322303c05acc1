#include "merge_code.h"

#include <string_view>
#include <utility>

#include "waymark/answers/parts.h"

namespace waymark::answers {

namespace {

/// Calls `use(row, by)` for each row, with the indices of the sum. `by`: distance by which the code of the row's
/// function has to be moved.
template <class Row, class Use>
void each_moved(std::vector<Row>& rows, const Answers& a, const MergedNames& names, const RowMover::Maps& maps,
                Index Row::*function, Use&& use) {
    RowMover mover(maps);
    for (Row& row : rows) {
        const std::uint64_t by = names.shift_of_function(a, maps, row.*function);
        schema::fields(mover, row);
        use(std::move(row), by);
    }
}

}  // namespace

void MergedCode::add(Answers& a, const RowMover::Maps& maps) {
    unlisted_.add(a, maps.table(IndexedTable::images));
    add_instructions(a, maps);
    add_branches(a, maps);
    add_loops(a, maps);
    add_image_code(a, maps);
    add_calls(a, maps);
}

/// An instruction without costs gets its execution count as cost in the first metric.
void MergedCode::add_costs(Instruction& to, const Instruction& x) const {
    if (to.costs.empty() && x.costs.empty()) return;
    const auto costs = [&](const Instruction& i) {
        if (!i.costs.empty()) return i.costs;
        Costs out(names_.first_metric() + 1);
        out[names_.first_metric()] = i.times;
        return out;
    };
    if (to.costs.empty()) to.costs = costs(to);
    waymark::answers::add(to.costs, x.costs.empty() ? costs(x) : x.costs);
}

void MergedCode::another_metric_is_first(std::size_t before) {
    for (Instruction& i : instructions_.rows()) {
        if (!i.costs.empty()) continue;
        i.costs.resize(before + 1);
        i.costs[before] = i.times;
    }
}

/// Images without a build ID are one by their name alone. Operands may differ within a build, by the names that were
/// known.
void MergedCode::compare_code(const Instruction& a, const Instruction& b) {
    const auto operation = [](const Instruction& i) {
        return std::string_view(i.text).substr(0, i.text.find_first_of(" \t"));
    };
    const bool comparable = !a.text.empty() && !b.text.empty();
    if (a.bytes == b.bytes && (!comparable || operation(a) == operation(b))) return;
    const Index image = names_.image_of(a.function);
    if (image == none || !names_.image(image).build_id.empty()) return;
    changed_images_.insert(names_.image(image).name);
}

void MergedCode::add_instructions(Answers& a, const RowMover::Maps& maps) {
    each_moved(a.instructions, a, names_, maps, &Instruction::function, [&](Instruction&& i, std::uint64_t by) {
        i.address += by;
        // Without costs, `times` is the cost in the first metric of the input, not of the sum.
        if (i.costs.empty() && !maps.metric.empty() && maps.metric.front() != names_.first_metric()) {
            i.costs.resize(maps.metrics);
            i.costs[maps.metric.front()] = i.times;
        }
        const Index function = i.function;
        const Index row = instructions_.add(std::move(i), [&](Instruction& to, const Instruction& x) {
            compare_code(to, x);
            take_most(to.bytes, x.bytes);
            to.seen = seen_in_either(to.seen, x.seen);
            const auto later = [&] {
                if (to.line != x.line) return to.line < x.line;
                if (to.source != x.source) return names_.source_before(to.source, x.source);
                if (to.inlined != x.inlined) return names_.inlined_before(to.inlined, x.inlined);
                return to.discriminator < x.discriminator;
            };
            if (later())
                std::tie(to.line, to.source, to.inlined, to.discriminator) =
                    std::tie(x.line, x.source, x.inlined, x.discriminator);
            add_costs(to, x);
            take_sum(to.times, x.times);
            take_text(to.text, x.text);
        });
        if (unlisted_.hides(function)) listed_instructions_.note(row, unlisted_.input());
    });
    each_moved(a.statements, a, names_, maps, &Statement::function, [&](Statement&& s, std::uint64_t by) {
        s.address += by;
        statements_.add(std::move(s), [](Statement&, const Statement&) {});
    });
    each_moved(a.lines, a, names_, maps, &Line::function, [&](Line&& l, std::uint64_t) {
        lines_.add(std::move(l), [&](Line& to, const Line& x) {
            if (names_.function_before(x.function, to.function)) to.function = x.function;
            to.seen = seen_in_either(to.seen, x.seen);
            take_sum(to.times, x.times);
            waymark::answers::add(to.costs, x.costs);
        });
    });
    each_moved(a.blocks, a, names_, maps, &Block::function, [&](Block&& b, std::uint64_t by) {
        b.address += by;
        blocks_.add(std::move(b), [](Block& to, const Block& x) {
            take_most(to.instructions, x.instructions);
            take_sum(to.times, x.times);
        });
    });
}

void MergedCode::add_branches(Answers& a, const RowMover::Maps& maps) {
    each_moved(a.branches, a, names_, maps, &Branch::function, [&](Branch&& b, std::uint64_t by) {
        b.address += by;
        if (b.target != 0) b.target += by;
        const Index function = b.function;
        const Index row = branches_.add(std::move(b), [&](Branch& to, const Branch& x) {
            take_most(to.kind, x.kind);
            names_.take_place(to.source, to.line, x.source, x.line);
            take_sum(to.taken, x.taken);
            take_sum(to.not_taken, x.not_taken);
            to.seen_taken = seen_in_either(to.seen_taken, x.seen_taken);
            to.seen_not_taken = seen_in_either(to.seen_not_taken, x.seen_not_taken);
            if (x.mispredicted) to.mispredicted = saturating(to.mispredicted.value_or(0), *x.mispredicted);
        });
        if (unlisted_.hides(function)) listed_branches_.note(row, unlisted_.input());
    });
    RowMover mover(maps);
    for (Edge& e : a.edges) {
        e.from += names_.shift_of_function(a, maps, e.from_function);
        e.to += names_.shift_of_function(a, maps, e.to_function);
        schema::fields(mover, e);
        edges_.add(std::move(e), [](Edge& to, const Edge& x) {
            take_sum(to.times, x.times);
            waymark::answers::add(to.inclusive, x.inclusive);
        });
    }
}

void MergedCode::add_loops(Answers& a, const RowMover::Maps& maps) {
    each_moved(a.loops, a, names_, maps, &Loop::function, [&](Loop&& l, std::uint64_t by) {
        l.head += by;
        l.tail += by;
        if (l.outer) *l.outer += by;
        loops_.add(std::move(l), [&](Loop& to, const Loop& x) {
            take_most(to.tail, x.tail);
            names_.take_place(to.source, to.line, x.source, x.line);
            if (std::tie(to.depth, to.outer) < std::tie(x.depth, x.outer))
                std::tie(to.depth, to.outer) = std::tie(x.depth, x.outer);
            take_sum(to.entries, x.entries);
            take_sum(to.iterations, x.iterations);
            waymark::answers::add(to.costs, x.costs);
        });
    });
}

void MergedCode::add_image_code(Answers& a, const RowMover::Maps& maps) {
    RowMover mover(maps);
    for (ImageRange& r : a.ranges) {
        schema::fields(mover, r);
        ranges_.add(std::move(r), [](ImageRange& to, const ImageRange& x) {
            take_most(to.instructions, x.instructions);
            take_sum(to.times, x.times);
            take_sum(to.taken, x.taken);
            take_sum(to.not_taken, x.not_taken);
        });
    }
    for (ImageBranch& b : a.jumps) {
        schema::fields(mover, b);
        jumps_.add(std::move(b), [](ImageBranch& to, const ImageBranch& x) { take_sum(to.times, x.times); });
    }
}

void MergedCode::add_calls(Answers& a, const RowMover::Maps& maps) {
    // Answers from ranges alone have no functions, and state this. For any other input without a call tree, the tree is
    // unknown, so it is unknown for the sum.
    if (has_only_ranges(a)) return;
    calls_known_ &= !a.calls.empty();
    if (!calls_known_) return calls_.clear();
    RowMover mover(maps);
    IndexMap places;
    places.reserve(a.calls.size());
    for (CallNode& node : a.calls) {
        const bool is_root = places.empty();
        const Index parent = is_root ? none : places[node.parent < places.size() ? node.parent : 0];
        if (is_root) {
            node.function = none;
            node.kind = CallNode::Kind::root;
        }
        schema::fields(mover, node);
        node.parent = parent;
        const auto key = [](const CallNode& n) { return std::tuple(n.parent, n.kind, n.function); };
        const auto [at, fresh] = call_places_.of(hash_of(key(node)), calls_.size(),
                                                 [&](Index place) { return key(calls_[place]) == key(node); });
        places.push_back(at);
        if (fresh) {
            calls_.push_back(std::move(node));
            continue;
        }
        take_sum(calls_[at].calls, node.calls);
        waymark::answers::add(calls_[at].self, node.self);
    }
}

/// Code that did not run where it is listed may have run in inputs that hide what they do not list. What that means for
/// lines is derived from the result (seen_of_lines).
void MergedCode::finish_seen() {
    const auto doubt = [](Seen& seen) {
        if (seen == Seen::not_executed) seen = Seen::not_observed;
    };
    for (Index row = 0; row < instructions_.rows().size(); ++row) {
        Instruction& i = instructions_.rows()[row];
        if (listed_instructions_.inputs(row) < unlisted_.hiding(i.function)) doubt(i.seen);
    }
    for (Index row = 0; row < branches_.rows().size(); ++row) {
        Branch& b = branches_.rows()[row];
        if (listed_branches_.inputs(row) >= unlisted_.hiding(b.function)) continue;
        doubt(b.seen_taken);
        doubt(b.seen_not_taken);
    }
}

void MergedCode::finish(Answers& out, const RowMover::Maps& maps) {
    unlisted_.finish(out, maps.table(IndexedTable::images));
    RowMover mover(maps);
    const auto shift = [&](const auto& row) { return names_.shift_to_result(row.function); };
    out.instructions = instructions_.take([&](Instruction& i) {
        i.address += shift(i);
        schema::fields(mover, i);
    });
    out.statements = statements_.take([&](Statement& s) {
        s.address += shift(s);
        schema::fields(mover, s);
    });
    out.lines = lines_.take([&](Line& l) { schema::fields(mover, l); });
    out.branches = branches_.take([&](Branch& b) {
        b.address += shift(b);
        if (b.target != 0) b.target += shift(b);
        schema::fields(mover, b);
    });
    out.edges = edges_.take([&](Edge& e) {
        e.from += names_.shift_to_result(e.from_function);
        e.to += names_.shift_to_result(e.to_function);
        schema::fields(mover, e);
    });
    out.blocks = blocks_.take([&](Block& b) {
        b.address += shift(b);
        schema::fields(mover, b);
    });
    out.loops = loops_.take([&](Loop& l) {
        l.head += shift(l);
        l.tail += shift(l);
        if (l.outer) *l.outer += shift(l);
        schema::fields(mover, l);
    });
    out.ranges = ranges_.take([&](ImageRange& r) { schema::fields(mover, r); });
    out.jumps = jumps_.take([&](ImageBranch& b) { schema::fields(mover, b); });
    call_places_ = {};
    std::vector<Index> parents;
    parents.reserve(calls_.size());
    for (CallNode& node : calls_) {
        parents.push_back(node.parent);
        schema::fields(mover, node);
    }
    const std::vector<Index> order = tree_order(parents, [&](Index x, Index y) {
        return std::tie(calls_[x].kind, calls_[x].function) < std::tie(calls_[y].kind, calls_[y].function);
    });
    const IndexMap places = places_in(order);
    out.calls.reserve(order.size());
    for (const Index at : order) {
        out.calls.push_back(std::move(calls_[at]));
        out.calls.back().parent = mapped(places, parents[at]);
    }
    calls_.clear();
}

}  // namespace waymark::answers
