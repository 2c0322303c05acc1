#include "loops.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <utility>

namespace waymark::analysis {

namespace {

constexpr std::uint32_t no_node = ~std::uint32_t{0};

/// Lists of numbers, one for each key below a count. The numbers of one key are adjacent.
class Grouped {
public:
    template <typename Each>  // calls the function with all keys and numbers, in the same order each time
    Grouped(std::size_t keys, const Each& each) : begin_(keys + 1) {
        each([&](std::uint32_t key, std::uint32_t) { ++begin_[key + 1]; });
        std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
        numbers_.resize(begin_.back());
        std::vector<std::size_t> next(begin_.begin(), begin_.end() - 1);
        each([&](std::uint32_t key, std::uint32_t number) { numbers_[next[key]++] = number; });
    }
    [[nodiscard]] std::span<const std::uint32_t> operator[](std::uint32_t key) const {
        return {numbers_.data() + begin_[key], begin_[key + 1] - begin_[key]};
    }

private:
    std::vector<std::size_t> begin_;
    std::vector<std::uint32_t> numbers_;
};

/// The instructions of a function as nodes, with a root node that leads to the instructions where control begins.
class Graph {
public:
    Graph(const LoopCode& code, const std::vector<std::uint32_t>& begins)
        : nodes(code.instructions + 1),
          root(code.instructions),
          next(nodes,
               [&](const auto& put) {
                   for (const CodeFlow& f : code.flows) put(f.from, f.to);
                   for (const std::uint32_t n : begins) put(root, n);
               }),
          prev(nodes, [&](const auto& put) {
              for (const CodeFlow& f : code.flows) put(f.to, f.from);
              for (const std::uint32_t n : begins) put(n, root);
          }) {}

    std::uint32_t nodes, root;
    Grouped next, prev;
};

/// Strongly connected components of the nodes reachable from `use`, after Tarjan, without recursion. A component comes
/// after all components that it leads to.
template <typename Use, typename Follow>
class Components {
public:
    Components(const Graph& graph, const Use& use, const Follow& follow)
        : of(graph.nodes, no_node), graph_(graph), follow_(follow), order_(graph.nodes, no_node), low_(graph.nodes) {
        for (std::uint32_t n = 0; n < graph.nodes; ++n)
            if (use(n) && order_[n] == no_node) search(n, use);
    }

    std::vector<std::vector<std::uint32_t>> all;
    std::vector<std::uint32_t> of;  ///< by node: number of its component

private:
    void search(std::uint32_t from, const Use& use) {
        std::vector<std::pair<std::uint32_t, std::size_t>> path;
        const auto enter = [&](std::uint32_t n) {
            order_[n] = low_[n] = number_++;
            open_.push_back(n);
            path.emplace_back(n, 0);
        };
        enter(from);
        while (!path.empty()) {
            auto& [n, tried] = path.back();
            if (tried < graph_.next[n].size()) {
                const std::uint32_t at = n, to = graph_.next[n][tried++];
                if (!use(to) || !follow_(at, to)) continue;
                if (order_[to] == no_node)
                    enter(to);
                else if (of[to] == no_node)
                    low_[at] = std::min(low_[at], order_[to]);
                continue;
            }
            const std::uint32_t done = n;
            path.pop_back();
            if (!path.empty()) low_[path.back().first] = std::min(low_[path.back().first], low_[done]);
            if (low_[done] != order_[done]) continue;
            std::vector<std::uint32_t>& made = all.emplace_back();
            do {
                made.push_back(open_.back());
                of[open_.back()] = static_cast<std::uint32_t>(all.size() - 1);
                open_.pop_back();
            } while (made.back() != done);
        }
    }

    const Graph& graph_;
    const Follow& follow_;
    std::vector<std::uint32_t> order_, low_, open_;
    std::uint32_t number_ = 0;
};

/// Nodes where control begins. Code that none of `begins` leads to, as when the trace began within a loop, begins at
/// the lowest address of the repeating code that is entered from nowhere else.
std::vector<std::uint32_t> roots(const LoopCode& code) {
    std::vector<std::uint32_t> out = code.begins;
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    const Graph graph(code, out);
    std::vector<bool> reached(graph.nodes), ran(graph.nodes);
    reached[graph.root] = true;
    std::vector<std::uint32_t> waiting{graph.root};
    while (!waiting.empty()) {
        const std::uint32_t n = waiting.back();
        waiting.pop_back();
        for (const std::uint32_t to : graph.next[n])
            if (!reached[to]) {
                reached[to] = true;
                waiting.push_back(to);
            }
    }
    for (const std::uint32_t n : code.resumes) ran[n] = true;
    for (const CodeFlow& f : code.flows) ran[f.from] = ran[f.to] = true;
    const auto left = [&](std::uint32_t n) { return ran[n] && !reached[n]; };
    const auto any = [](std::uint32_t, std::uint32_t) { return true; };
    const Components parts(graph, left, any);
    std::vector<bool> led_to(parts.all.size());
    for (const CodeFlow& f : code.flows)
        if (left(f.from) && left(f.to) && parts.of[f.from] != parts.of[f.to]) led_to[parts.of[f.to]] = true;
    for (std::size_t i = 0; i < parts.all.size(); ++i)
        if (!led_to[i]) out.push_back(*std::min_element(parts.all[i].begin(), parts.all[i].end()));
    return out;
}

/// The tree of dominators: for each node, its immediate dominator. After Lengauer and Tarjan.
class Dominators {
public:
    explicit Dominators(const Graph& graph)
        : graph_(graph),
          order_(graph.nodes, no_node),
          parent_(graph.nodes, no_node),
          semi_(graph.nodes),
          best_(graph.nodes),
          above_(graph.nodes, no_node) {
        search();
    }

    std::vector<std::uint32_t> find() {
        std::vector<std::uint32_t> out(graph_.nodes, no_node);
        std::vector<std::vector<std::uint32_t>> bucket(graph_.nodes);
        for (std::size_t i = found_.size(); i-- > 1;) {
            const std::uint32_t n = found_[i], parent = parent_[n];
            for (const std::uint32_t from : graph_.prev[n])
                if (order_[from] != no_node) semi_[n] = std::min(semi_[n], semi_[lowest(from)]);
            bucket[found_[semi_[n]]].push_back(n);
            above_[n] = parent;
            for (const std::uint32_t of : bucket[parent]) {
                const std::uint32_t low = lowest(of);
                out[of] = semi_[low] < semi_[of] ? low : parent;
            }
            bucket[parent].clear();
        }
        for (std::size_t i = 1; i < found_.size(); ++i)
            if (const std::uint32_t n = found_[i]; out[n] != found_[semi_[n]]) out[n] = out[out[n]];
        return out;
    }

private:
    /// The search can be as deep as the code is long, so it does not recurse.
    void search() {
        std::vector<std::pair<std::uint32_t, std::size_t>> path;
        const auto enter = [&](std::uint32_t n) {
            order_[n] = semi_[n] = static_cast<std::uint32_t>(found_.size());
            best_[n] = n;
            found_.push_back(n);
            path.emplace_back(n, 0);
        };
        enter(graph_.root);
        while (!path.empty()) {
            auto& [n, tried] = path.back();
            if (tried == graph_.next[n].size()) {
                path.pop_back();
                continue;
            }
            const std::uint32_t from = n, to = graph_.next[n][tried++];
            if (order_[to] != no_node) continue;
            parent_[to] = from;
            enter(to);
        }
    }
    /// The node with the lowest semidominator on the path to the root of the linked part.
    std::uint32_t lowest(std::uint32_t n) {
        if (above_[n] == no_node) return n;
        way_.clear();
        for (std::uint32_t at = n; above_[above_[at]] != no_node; at = above_[at]) way_.push_back(at);
        while (!way_.empty()) {
            const std::uint32_t at = way_.back(), up = above_[at];
            way_.pop_back();
            if (semi_[best_[up]] < semi_[best_[at]]) best_[at] = best_[up];
            above_[at] = above_[up];
        }
        return best_[n];
    }

    const Graph& graph_;
    std::vector<std::uint32_t> order_, parent_, semi_, best_, above_, found_, way_;
};

/// Whether one node dominates another.
class Dominance {
public:
    Dominance(const Graph& graph, const std::vector<std::uint32_t>& above)
        : before_(graph.nodes, no_node), after_(graph.nodes) {
        const Grouped below(graph.nodes, [&](const auto& put) {
            for (std::uint32_t n = 0; n < graph.nodes; ++n)
                if (above[n] != no_node) put(above[n], n);
        });
        std::uint32_t number = 0;
        std::vector<std::pair<std::uint32_t, std::size_t>> path{{graph.root, 0}};
        before_[graph.root] = number++;
        while (!path.empty()) {
            auto& [n, tried] = path.back();
            if (tried == below[n].size()) {
                after_[n] = number;
                path.pop_back();
                continue;
            }
            const std::uint32_t to = below[n][tried++];
            before_[to] = number++;
            path.emplace_back(to, 0);
        }
    }
    /// Dominators come before what they dominate.
    [[nodiscard]] std::uint32_t order(std::uint32_t n) const { return before_[n]; }
    [[nodiscard]] bool reached(std::uint32_t n) const { return before_[n] != no_node; }
    [[nodiscard]] bool dominates(std::uint32_t n, std::uint32_t other) const {
        return reached(other) && before_[n] <= before_[other] && before_[other] < after_[n];
    }

private:
    std::vector<std::uint32_t> before_, after_;
};

/// Builds loops from the innermost outwards. A finished loop becomes a unit, identified by its first node.
class Nest {
public:
    Nest(const LoopCode& code, const Graph& graph, const Dominance& dominance)
        : code_(code), graph_(graph), dominance_(dominance), unit_(graph.nodes), loop_of_(graph.nodes, no_loop) {
        std::iota(unit_.begin(), unit_.end(), 0U);
        out_.innermost.assign(code.instructions, no_loop);
    }

    CodeLoops find() {
        const auto is_back = [&](std::uint32_t from, std::uint32_t to) { return dominance_.dominates(to, from); };
        const auto use = [&](std::uint32_t n) { return n != graph_.root && dominance_.reached(n); };
        const auto follow = [&](std::uint32_t from, std::uint32_t to) { return !is_back(from, to); };
        const Components parts(graph_, use, follow);
        // A natural loop comes after the loops that its header dominates, and a region after the loops of headers in
        // it.
        struct Due {
            std::uint32_t order, header;
            const std::vector<std::uint32_t>* region;
        };
        std::vector<Due> due;
        std::vector<bool> heads(graph_.nodes);
        for (const CodeFlow& f : code_.flows)
            if (dominance_.reached(f.from) && is_back(f.from, f.to) && !heads[f.to]) {
                heads[f.to] = true;
                due.push_back({dominance_.order(f.to), f.to, nullptr});
            }
        for (const std::vector<std::uint32_t>& part : parts.all) {
            if (part.size() == 1) continue;
            std::uint32_t first = no_node;
            for (const std::uint32_t n : part) first = std::min(first, dominance_.order(n));
            due.push_back({first, no_node, &part});
        }
        std::sort(due.begin(), due.end(), [](const Due& x, const Due& y) {
            return std::pair(y.order, x.region != nullptr) < std::pair(x.order, y.region != nullptr);
        });
        for (const Due& d : due) d.region == nullptr ? natural(d.header) : region(*d.region);
        measure(heads);
        number();
        return std::move(out_);
    }

private:
    std::uint32_t unit(std::uint32_t n) {
        while (unit_[n] != n) n = unit_[n] = unit_[unit_[n]];
        return n;
    }
    /// The flows that enter a unit.
    [[nodiscard]] std::span<const std::uint32_t> ways_in(const std::uint32_t& of) const {
        if (loop_of_[of] == no_loop) return {&of, 1};
        return out_.loops[loop_of_[of]].entries;
    }
    void absorb(std::uint32_t of, std::uint32_t loop) {
        if (loop_of_[of] != no_loop)
            out_.loops[loop_of_[of]].outer = loop;
        else
            out_.innermost[of] = loop;
    }

    void natural(std::uint32_t header) {
        const auto loop = static_cast<std::uint32_t>(out_.loops.size());
        std::vector<std::uint32_t> waiting, inside;
        const auto take = [&](std::uint32_t n) {
            const std::uint32_t of = unit(n);
            if (of == header) return;
            // The node is added to the header's unit at once, so that it is visited once.
            unit_[of] = header;
            inside.push_back(of);
            waiting.push_back(of);
        };
        for (const std::uint32_t from : graph_.prev[header])
            if (from != graph_.root && dominance_.dominates(header, from)) take(from);
        while (!waiting.empty()) {
            const std::uint32_t of = waiting.back();
            waiting.pop_back();
            for (const std::uint32_t n : ways_in(of))
                for (const std::uint32_t from : graph_.prev[n])
                    if (from != graph_.root && dominance_.reached(from)) take(from);
        }
        out_.loops.push_back({.head = header, .entries = {header}});
        for (const std::uint32_t of : inside) absorb(of, loop);
        absorb(header, loop);
        loop_of_[header] = loop;
    }

    void region(const std::vector<std::uint32_t>& nodes) {
        const auto loop = static_cast<std::uint32_t>(out_.loops.size());
        out_.loops.push_back({.irreducible = true});
        // Some of the nodes may lie in natural loops whose headers are in the region.
        std::vector<std::uint32_t> units;
        for (const std::uint32_t n : nodes) units.push_back(unit(n));
        std::sort(units.begin(), units.end());
        units.erase(std::unique(units.begin(), units.end()), units.end());
        const std::uint32_t first = units.front();
        for (const std::uint32_t of : units) absorb(of, loop);
        for (const std::uint32_t of : units) unit_[of] = first;
        loop_of_[first] = loop;
        std::vector<std::uint32_t>& entries = out_.loops[loop].entries;
        for (const std::uint32_t n : nodes)
            for (const std::uint32_t from : graph_.prev[n])
                if (from == graph_.root || (dominance_.reached(from) && unit(from) != first)) {
                    entries.push_back(n);
                    break;
                }
        std::sort(entries.begin(), entries.end());
    }

    /// Counts the flows from each loop to its entries.
    void measure(const std::vector<bool>& heads) {
        number();
        // A node is an entry of at most one natural loop, and of at most one region.
        std::vector<std::uint32_t> natural_at(graph_.nodes, no_loop), region_at(graph_.nodes, no_loop);
        for (std::uint32_t i = 0; i < out_.loops.size(); ++i)
            for (const std::uint32_t n : out_.loops[i].entries)
                (out_.loops[i].irreducible ? region_at : natural_at)[n] = i;
        std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> again;  // by region and entry
        std::vector<std::uint32_t> tails(graph_.nodes, 0);                       // by entry: tail of its region
        for (const CodeFlow& f : code_.flows) {
            if (heads[f.to] && out_.contains(natural_at[f.to], f.from)) {
                CodeLoop& loop = out_.loops[natural_at[f.to]];
                loop.inside += f.times;
                loop.tail = std::max(loop.tail, f.from);
            }
            if (const std::uint32_t i = region_at[f.to]; i != no_loop && out_.contains(i, f.from)) {
                out_.loops[i].inside += f.times;
                again[{i, f.to}] += f.times;
                tails[f.to] = std::max(tails[f.to], f.from);
            }
        }
        std::vector<std::uint64_t> most(out_.loops.size());
        for (const auto& [at, times] : again) {
            CodeLoop& loop = out_.loops[at.first];
            if (times <= most[at.first]) continue;
            most[at.first] = times;
            loop.head = at.second;
            loop.tail = tails[at.second];
        }
    }

    /// Assigns depths and pre-order numbers, for containment tests.
    void number() {
        const std::size_t count = out_.loops.size();
        out_.first.assign(count, 0);
        out_.last.assign(count, 0);
        std::vector<std::uint32_t> size(count, 1);
        for (std::uint32_t i = 0; i < count; ++i)
            if (const std::uint32_t outer = out_.loops[i].outer; outer != no_loop) size[outer] += size[i];
        std::vector<std::uint32_t> next(count);
        std::uint32_t top = 0;
        for (std::size_t i = count; i-- > 0;) {
            CodeLoop& loop = out_.loops[i];
            std::uint32_t& place = loop.outer == no_loop ? top : next[loop.outer];
            out_.first[i] = place;
            out_.last[i] = place += size[i];
            next[i] = out_.first[i] + 1;
            loop.depth = loop.outer == no_loop ? 1 : out_.loops[loop.outer].depth + 1;
        }
    }

    const LoopCode& code_;
    const Graph& graph_;
    const Dominance& dominance_;
    std::vector<std::uint32_t> unit_;
    std::vector<std::uint32_t> loop_of_;  // loop of a unit, by the unit's first node
    CodeLoops out_;
};

}  // namespace

bool CodeLoops::contains(std::uint32_t loop, std::uint32_t instruction) const {
    const std::uint32_t at = innermost[instruction];
    return at != no_loop && first[at] >= first[loop] && first[at] < last[loop];
}

CodeLoops find_loops(const LoopCode& code) {
    const Graph graph(code, roots(code));
    const Dominance dominance(graph, Dominators(graph).find());
    return Nest(code, graph, dominance).find();
}

}  // namespace waymark::analysis
