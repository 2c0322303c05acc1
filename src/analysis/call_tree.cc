#include "waymark/analysis/call_tree.h"

#include <utility>

namespace waymark::analysis {

std::uint32_t CallTree::find_or_add(std::uint32_t parent, FunctionId function, Entered how, std::size_t most) {
    for (std::size_t i = slot(parent, function); slots_[i] != 0; i = (i + 1) & (slots_.size() - 1)) {
        const std::uint32_t found = slots_[i] - 1;
        if (nodes_[found].parent == parent && nodes_[found].function == function && nodes_[found].how == how) {
            nodes_[parent].recent = found;
            return found;
        }
    }
    if (nodes_.size() >= most) return parent;
    const auto added = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back({.function = function, .parent = parent, .how = how});
    nodes_[parent].recent = added;
    insert(added);
    return added;
}

void CallTree::insert(std::uint32_t node) {
    if (2 * ++used_ > slots_.size()) grow();
    std::size_t i = slot(nodes_[node].parent, nodes_[node].function);
    while (slots_[i] != 0) i = (i + 1) & (slots_.size() - 1);
    slots_[i] = node + 1;
}

void CallTree::grow() {
    const std::vector<std::uint32_t> old = std::exchange(slots_, std::vector<std::uint32_t>(2 * slots_.size()));
    for (const std::uint32_t node : old) {
        if (node == 0) continue;
        std::size_t i = slot(nodes_[node - 1].parent, nodes_[node - 1].function);
        while (slots_[i] != 0) i = (i + 1) & (slots_.size() - 1);
        slots_[i] = node;
    }
}

std::uint32_t CallTree::add_above(std::uint32_t root, FunctionId function) {
    nodes_[root].function = function;
    const auto above = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back({.was_root = true});
    nodes_[root].parent = above;
    insert(root);
    return above;
}

std::uint64_t CallTree::take(const CallTree& other, std::uint32_t first, std::uint32_t last,
                             std::vector<std::uint32_t>& at, std::size_t most) {
    std::uint64_t left_out = 0;
    std::vector<std::uint32_t> up;
    for (std::uint32_t i = first; i < last; ++i) {
        // A root that was added above its tree comes after it.
        for (std::uint32_t n = i; n != nowhere && at[n] == nowhere; n = other.nodes_[n].parent) up.push_back(n);
        for (; !up.empty(); up.pop_back()) {
            const Node& from = other.nodes_[up.back()];
            if (from.parent == nowhere || at[from.parent] == nowhere)
                continue;  // A root that was added above its tree has a higher index than its children.
            const std::uint32_t parent = at[from.parent], to = child(parent, from.function, from.how, most);
            at[up.back()] = to;
            const bool no_room =
                to == parent && (nodes_[parent].function != from.function || nodes_[parent].how != from.how);
            (no_room ? left_out : nodes_[to].calls) += from.calls;
            nodes_[to].self += from.self;
        }
    }
    return left_out;
}

}  // namespace waymark::analysis
