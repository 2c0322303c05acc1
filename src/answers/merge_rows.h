/// How rows of several answers become one: what becomes of their values, their indices and their order (merge.cc).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "waymark/answers/costs.h"
#include "waymark/answers/schema.h"

namespace waymark::answers {

/// `none` before all others.
inline Index rank(Index index) { return index + 1; }

template <class T>
void take_most(T& to, const T& other) {
    if (to < other) to = other;
}
/// The smallest non-empty text.
inline void take_text(std::string& to, const std::string& other) {
    if (to.empty() || (!other.empty() && other < to)) to = other;
}
inline void take_sum(std::uint64_t& to, std::uint64_t other) { to = saturating(to, other); }
inline Seen seen_in_either(Seen x, Seen y) {
    if (x == Seen::executed || y == Seen::executed) return Seen::executed;
    return x == Seen::not_observed || y == Seen::not_observed ? Seen::not_observed : Seen::not_executed;
}

/// The later place in a source.
inline void take_place(Index& source, std::uint32_t& line, Index other_source, std::uint32_t other_line) {
    if (std::tuple(line, rank(source)) < std::tuple(other_line, rank(other_source)))
        std::tie(source, line) = std::tie(other_source, other_line);
}

/// Index maps of one table: from each input to the result.
using IndexMap = std::vector<Index>;
inline Index mapped(const IndexMap& map, Index index) { return index < map.size() ? map[index] : none; }

/// Translates the indices and costs of a row to those of the result.
class RowMover {
public:
    struct Maps {
        std::array<IndexMap, place_count> of;
        std::vector<std::size_t> metric;  ///< result's index of each metric of the input
        std::size_t metrics = 0;          ///< of all
    };
    explicit RowMover(const Maps& maps) : maps_(maps) {}

    void index(std::string_view, Index& value, IndexedTable place, std::string_view) {
        value = mapped(maps_.of[static_cast<std::size_t>(place)], value);
    }
    void list(std::string_view, Costs& costs, std::string_view) {
        if (costs.empty()) return;
        Costs out(maps_.metrics);
        for (std::size_t i = 0; i < costs.size() && i < maps_.metric.size(); ++i)
            take_sum(out[maps_.metric[i]], costs[i]);
        costs = std::move(out);
    }
    template <class T>
    void list(std::string_view, std::vector<T>&, std::string_view) {}
    void number(auto&&...) {}
    void address(auto&&...) {}
    void text(auto&&...) {}
    void real(auto&&...) {}
    void choice(auto&&...) {}
    void maybe(auto&&...) {}

private:
    const Maps& maps_;
};

/// Rows by key.
template <class Key, class Row>
class MergedRows {
public:
    template <class Sum>
    void add(Key key, Row row, Sum&& sum) {
        const auto at = rows_.lower_bound(key);
        if (at != rows_.end() && at->first == key)
            sum(at->second, row);
        else
            rows_.emplace_hint(at, std::move(key), std::move(row));
    }
    [[nodiscard]] std::vector<Row> take() {
        std::vector<Row> out;
        out.reserve(rows_.size());
        for (auto& [key, row] : rows_) out.push_back(std::move(row));
        rows_.clear();
        return out;
    }

private:
    std::map<Key, Row> rows_;
};

/// Rows of a tree: each by its path from the root.
template <class Key, class Row>
class MergedTree {
public:
    struct Node {
        Key key{};
        Row row;
        std::map<Key, std::size_t> children{};
    };
    static constexpr std::size_t top = 0;
    MergedTree() { nodes.push_back({}); }
    /// The place of a child, and whether it is new.
    std::pair<std::size_t, bool> below(std::size_t parent, const Key& key) {
        const auto [at, fresh] = nodes[parent].children.try_emplace(key, nodes.size());
        const std::size_t place = at->second;
        if (fresh) nodes.push_back({key, {}, {}});
        return {place, fresh};
    }
    /// `put(node, place of its parent in what was put)` for all but the top, parents first, each with what is below it
    /// before its next sibling. Returns the places.
    template <class Put>
    std::vector<Index> in_order(Put&& put) const {
        std::vector<Index> place(nodes.size(), none);
        std::vector<std::pair<std::size_t, Index>> waiting;
        const auto wait = [&](std::size_t node, Index at) {
            for (auto child = nodes[node].children.rbegin(); child != nodes[node].children.rend(); ++child)
                waiting.emplace_back(child->second, at);
        };
        wait(top, none);
        Index next = 0;
        while (!waiting.empty()) {
            const auto [node, parent] = waiting.back();
            waiting.pop_back();
            place[node] = next;
            put(nodes[node], parent);
            wait(node, next++);
        }
        return place;
    }
    std::vector<Node> nodes;
};

/// How far an image of one of the answers was loaded from where addresses are in all of them, `out`.
inline std::uint64_t shift_of_image(const Answers& a, const RowMover::Maps& maps, const Answers& out, Index image) {
    if (image >= a.images.size()) return 0;
    return out.images[maps.of[static_cast<std::size_t>(IndexedTable::images)][image]].load_bias -
           a.images[image].load_bias;
}

/// Code of all answers; `maps`: from each of them.
void merge_code(std::span<const Answers* const> all, const std::vector<RowMover::Maps>& maps, Answers& out);

/// What is said in words, of all answers: findings, trust, figures.
void merge_words(std::span<const Answers* const> all, Answers& out);

}  // namespace waymark::answers
