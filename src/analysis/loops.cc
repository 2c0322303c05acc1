#include "loops.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <queue>
#include <set>

namespace waymark::analysis {

namespace {

constexpr std::uint32_t no_node = ~std::uint32_t{0};

/// Numbers by a key below a count: those of a key are together.
class Grouped {
public:
    template <typename Each>  // calls what it is given with keys and numbers, in the same order each time
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

/// Sums of what was added up to a place.
class PrefixSums {
public:
    explicit PrefixSums(std::size_t places) : sums_(places + 1) {}
    void add(std::size_t place, std::uint64_t value) {
        for (std::size_t i = place + 1; i < sums_.size(); i += i & (~i + 1)) sums_[i] += value;
    }
    [[nodiscard]] std::uint64_t up_to(std::size_t place) const {
        std::uint64_t out = 0;
        for (std::size_t i = place + 1; i != 0; i &= i - 1) out += sums_[i];
        return out;
    }

private:
    std::vector<std::uint64_t> sums_;  // a Fenwick tree; what is taken away again wraps
};

/// The instructions of a function as nodes, and one more before all, which leads to those that control came to by no
/// flow.
class Graph {
public:
    explicit Graph(const LoopCode& code)
        : nodes(code.instructions + 1),
          root(code.instructions),
          next(nodes,
               [&](const auto& put) {
                   for (const CodeFlow& f : code.flows) put(f.from, f.to);
                   for (const std::uint32_t n : code.begins) put(root, n);
               }),
          prev(nodes, [&](const auto& put) {
              for (const CodeFlow& f : code.flows) put(f.to, f.from);
              for (const std::uint32_t n : code.begins) put(n, root);
          }) {}

    std::uint32_t nodes, root;
    Grouped next, prev;
};

/// A tree of ways from the root: by node, the one before. On the way to a node lie no higher addresses than needed.
std::vector<std::uint32_t> low_ways(const Graph& graph) {
    std::vector<std::uint32_t> before(graph.nodes, no_node);
    std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> waiting;
    const auto leave = [&](std::uint32_t n) {
        for (const std::uint32_t to : graph.next[n])
            if (before[to] == no_node) {
                before[to] = n;
                waiting.push(to);
            }
    };
    leave(graph.root);
    while (!waiting.empty()) {
        const std::uint32_t n = waiting.top();
        waiting.pop();
        leave(n);
    }
    return before;
}

/// The tree of dominators: by node, the last one that all ways from the root to it pass. After Lengauer and Tarjan.
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
    /// In depth, as deep as the code may be long: no recursion.
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
    /// The one of the lowest semidominator on the way up to the root of the linked part.
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

/// Where a loop must reach, so that one of some instructions lies in it: down to `low`, or up to `high`.
struct Near {
    std::optional<std::uint32_t> low, high;
};
/// Of each flow: of those that lead to where it comes from in this tree, itself too, the nearest to where it goes.
std::vector<Near> nearest(const Graph& graph, const LoopCode& code, const std::vector<std::uint32_t>& before) {
    const Grouped below(graph.nodes, [&](const auto& put) {
        for (std::uint32_t n = 0; n < graph.root; ++n)
            if (before[n] != no_node) put(before[n], n);
    });
    const Grouped flows(graph.nodes, [&](const auto& put) {
        for (std::uint32_t i = 0; i < code.flows.size(); ++i) put(code.flows[i].from, i);
    });
    std::vector<Near> out(code.flows.size());
    std::set<std::uint32_t> leading;
    std::vector<std::pair<std::uint32_t, std::size_t>> path{{graph.root, 0}};
    while (!path.empty()) {
        auto& [n, tried] = path.back();
        if (tried < below[n].size()) {
            const std::uint32_t to = below[n][tried++];
            path.emplace_back(to, 0);
            leading.insert(to);
            for (const std::uint32_t i : flows[to]) {
                const auto high = leading.lower_bound(code.flows[i].to);
                if (high != leading.end()) out[i].high = *high;
                if (high != leading.end() && *high == code.flows[i].to)
                    out[i].low = *high;
                else if (high != leading.begin())
                    out[i].low = *std::prev(high);
            }
            continue;
        }
        if (n != graph.root) leading.erase(n);
        path.pop_back();
    }
    // What nothing leads to, only a loop can.
    for (std::uint32_t i = 0; i < out.size(); ++i)
        if (before[code.flows[i].from] == no_node) out[i].low = code.flows[i].to;
    return out;
}

/// Of each loop: times of flows into it that come from there, or, not to the head, from what something in it leads to.
std::vector<std::uint64_t> sums_within(const LoopCode& code, std::span<const LoopBounds> loops,
                                       const std::vector<Near>& near) {
    // A flow counts for loops whose head is one of a row, and whose tail is not before a place.
    struct Step {
        std::uint32_t head, tail;
        std::uint64_t times;
    };
    std::vector<Step> steps;
    const auto count = [&](std::uint32_t first, std::uint32_t end, std::uint32_t tail, std::uint64_t times) {
        if (first >= end) return;
        steps.push_back({first, tail, times});
        steps.push_back({end, tail, 0 - times});
    };
    for (std::size_t i = 0; i < code.flows.size(); ++i) {
        const CodeFlow& f = code.flows[i];
        const std::uint32_t low_end = near[i].low ? std::min(*near[i].low + 1, f.to) : 0;
        count(0, low_end, f.to, f.times);
        if (near[i].high) count(low_end, f.to, *near[i].high, f.times);
        if (f.from >= f.to) count(f.to, f.to + 1, f.from, f.times);
    }
    std::sort(steps.begin(), steps.end(), [](const Step& x, const Step& y) { return x.head < y.head; });
    std::vector<std::size_t> by_head(loops.size());
    std::iota(by_head.begin(), by_head.end(), std::size_t{0});
    std::sort(by_head.begin(), by_head.end(),
              [&](std::size_t x, std::size_t y) { return loops[x].head < loops[y].head; });
    std::vector<std::uint64_t> out(loops.size());
    PrefixSums sums(code.instructions);
    auto step = steps.begin();
    for (const std::size_t n : by_head) {
        for (; step != steps.end() && step->head <= loops[n].head; ++step) sums.add(step->tail, step->times);
        out[n] = sums.up_to(loops[n].tail);
    }
    return out;
}

/// The same of one loop, from all that control gets to without it.
class Exactly {
public:
    Exactly(const Graph& graph, const LoopCode& code) : graph_(graph), code_(code), seen_(graph.nodes) {}

    std::uint64_t within(const LoopBounds& loop) {
        ++turn_;
        const auto inside = [&](std::uint32_t n) { return n >= loop.head && n <= loop.tail; };
        waiting_.push_back(graph_.root);
        while (!waiting_.empty()) {
            const std::uint32_t n = waiting_.back();
            waiting_.pop_back();
            for (const std::uint32_t to : graph_.next[n]) {
                if (inside(to) || seen_[to] == turn_) continue;
                seen_[to] = turn_;
                waiting_.push_back(to);
            }
        }
        std::uint64_t out = 0;
        for (const CodeFlow& f : code_.flows)
            if (inside(f.to) && (inside(f.from) || (f.to != loop.head && seen_[f.from] != turn_))) out += f.times;
        return out;
    }

private:
    const Graph& graph_;
    const LoopCode& code_;
    std::vector<std::uint32_t> seen_, waiting_;
    std::uint32_t turn_ = 0;
};

}  // namespace

LoopFlows flows_within(const LoopCode& code, std::span<const LoopBounds> loops, std::uint64_t& work,
                       std::uint64_t most_work) {
    const Graph graph(code);
    // What one instruction of a loop dominates, only the loop leads to; where one way there is without the loop, others
    // lead there too. What lies between the two is looked at.
    LoopFlows out{sums_within(code, loops, nearest(graph, code, Dominators(graph).find())),
                  std::vector<bool>(loops.size())};
    const std::vector<std::uint64_t> most = sums_within(code, loops, nearest(graph, code, low_ways(graph)));
    Exactly exactly(graph, code);
    for (std::size_t i = 0; i < loops.size(); ++i) {
        if (out.inside[i] == most[i]) continue;
        work += graph.nodes + 2 * code.flows.size();
        if (work > most_work)
            out.at_least[i] = true;
        else
            out.inside[i] = exactly.within(loops[i]);
    }
    return out;
}

}  // namespace waymark::analysis
