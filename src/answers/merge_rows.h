/// How rows of several answers are merged: their values, their indices and their order.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "waymark/answers/costs.h"
#include "waymark/answers/schema.h"

namespace waymark::answers {

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

/// Index maps of one table: from each input to the sum, or from the sum to the result.
using IndexMap = std::vector<Index>;
inline Index mapped(const IndexMap& map, Index index) { return index < map.size() ? map[index] : none; }

/// Translates the indices and costs of a row.
class RowMover {
public:
    struct Maps {
        std::array<IndexMap, place_count> of;
        std::vector<std::size_t> metric;  ///< index of each metric in the target
        std::size_t metrics = 0;          ///< of all
        [[nodiscard]] IndexMap& table(IndexedTable place) { return of[static_cast<std::size_t>(place)]; }
        [[nodiscard]] const IndexMap& table(IndexedTable place) const { return of[static_cast<std::size_t>(place)]; }
    };
    explicit RowMover(const Maps& maps) : maps_(maps) {
        for (std::size_t i = 0; i < maps.metric.size(); ++i) same_metrics_ &= maps.metric[i] == i;
    }

    void index(std::string_view, Index& value, IndexedTable place, std::string_view) {
        value = mapped(maps_.table(place), value);
    }
    void list(std::string_view, Costs& costs, std::string_view) {
        if (costs.empty()) return;
        if (same_metrics_) return costs.resize(maps_.metrics);
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
    void shared(auto&&...) {}
    void real(auto&&...) {}
    void choice(auto&&...) {}
    void maybe(auto&&...) {}

private:
    const Maps& maps_;
    bool same_metrics_ = true;
};

// ---- hashes of keys

inline std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15U;
    return hash ^ (hash >> 29);
}
inline std::uint64_t mixed(std::uint64_t hash, std::string_view text) {
    return mixed(hash, std::hash<std::string_view>{}(text));
}
template <class T>
requires std::is_enum_v<T> std::uint64_t mixed(std::uint64_t hash, T value) {
    return mixed(hash, static_cast<std::uint64_t>(value));
}
template <class... T>
std::uint64_t hash_of(const T&... parts) {
    std::uint64_t hash = 0;
    ((hash = mixed(hash, parts)), ...);
    return hash;
}
template <class... T>
std::uint64_t hash_of(const std::tuple<T...>& key) {
    return std::apply([](const auto&... parts) { return hash_of(parts...); }, key);
}

/// A hash table from keys of rows to indices of rows.
class PlaceTable {
public:
    /// The index of the row for which `equal(index)` holds. If there is none, enters and returns `next`, and true.
    template <class Equal>
    std::pair<Index, bool> of(std::uint64_t hash, std::size_t next, Equal&& equal) {
        if ((used_ + 1) * 4 > slots_.size() * 3) grow();
        const auto part = static_cast<std::uint32_t>(hash >> 32);
        for (std::size_t at = part & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
            Slot& slot = slots_[at];
            if (slot.place == none) {
                slot = {part, static_cast<Index>(next)};
                ++used_;
                return {slot.place, true};
            }
            if (slot.part == part && equal(slot.place)) return {slot.place, false};
        }
    }

private:
    struct Slot {
        std::uint32_t part{};  ///< of the hash
        Index place = none;
    };
    void grow() {
        std::vector<Slot> before(std::max<std::size_t>(64, slots_.size() * 2));
        before.swap(slots_);
        for (const Slot& slot : before) {
            if (slot.place == none) continue;
            std::size_t at = slot.part & (slots_.size() - 1);
            while (slots_[at].place != none) at = (at + 1) & (slots_.size() - 1);
            slots_[at] = slot;
        }
    }
    std::vector<Slot> slots_;
    std::size_t used_ = 0;
};

/// Rows of a large table, found by key: `merge_key(row)` is a tuple of numbers.
template <class Row>
class MergedRows {
public:
    /// Returns the index of the sum's row.
    template <class Sum>
    Index add(Row&& row, Sum&& sum) {
        const auto key = merge_key(row);
        const auto [place, fresh] =
            places_.of(hash_of(key), rows_.size(), [&](Index at) { return merge_key(rows_[at]) == key; });
        if (fresh)
            rows_.push_back(std::move(row));
        else
            sum(rows_[place], row);
        return place;
    }
    /// All rows, sorted by key after `finish(row)` has translated the indices and addresses of each to the result.
    template <class Finish>
    [[nodiscard]] std::vector<Row> take(Finish&& finish) {
        places_ = {};
        for (Row& row : rows_) finish(row);
        const auto before = [](const Row& a, const Row& b) { return merge_key(a) < merge_key(b); };
        if (!std::is_sorted(rows_.begin(), rows_.end(), before)) std::sort(rows_.begin(), rows_.end(), before);
        return std::move(rows_);
    }
    [[nodiscard]] std::vector<Row>& rows() { return rows_; }

private:
    std::vector<Row> rows_;
    PlaceTable places_;
};

/// Rows of a small table, always sorted by key.
template <class Key, class Row>
class RowsByKey {
public:
    template <class Sum>
    void add(const Key& key, Row row, Sum&& sum) {
        const auto at = rows_.find(key);
        if (at != rows_.end())
            sum(at->second, row);
        else
            rows_.emplace(key, std::move(row));
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

/// The nodes of trees in depth-first order, parents first. `parents`: for each node an earlier one, or `none`.
/// `before(a, b)`: order of siblings.
template <class Before>
std::vector<Index> tree_order(const std::vector<Index>& parents, Before&& before) {
    // Siblings are adjacent, the last first, so that the stack pops the first one first.
    std::vector<Index> nodes(parents.size());
    for (Index n = 0; n < nodes.size(); ++n) nodes[n] = n;
    const auto above = [&](Index n) { return parents[n] + 1; };  // `none` becomes 0
    std::sort(nodes.begin(), nodes.end(),
              [&](Index a, Index b) { return above(a) != above(b) ? above(a) < above(b) : before(b, a); });
    std::vector<std::uint32_t> begins(parents.size() + 2);
    for (const Index n : nodes) ++begins[above(n) + 1];
    for (std::size_t i = 1; i < begins.size(); ++i) begins[i] += begins[i - 1];
    std::vector<Index> out, waiting(nodes.begin(), nodes.begin() + begins[1]);
    out.reserve(nodes.size());
    while (!waiting.empty()) {
        const Index node = waiting.back();
        waiting.pop_back();
        out.push_back(node);
        waiting.insert(waiting.end(), nodes.begin() + begins[node + 1], nodes.begin() + begins[node + 2]);
    }
    return out;
}
/// The position of each node in that order.
inline IndexMap places_in(const std::vector<Index>& order) {
    IndexMap out(order.size());
    for (Index place = 0; place < order.size(); ++place) out[order[place]] = place;
    return out;
}

}  // namespace waymark::answers
