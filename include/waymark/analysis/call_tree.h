/// A call tree that is being built: a node for each function and way of calling, found by its caller's node.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "waymark/analysis/flow_code.h"
#include "waymark/analysis/flow_counts.h"

namespace waymark::analysis {

/// How a function was entered, unless its place in the tree shows this.
enum class Entered : std::uint8_t {
    by_call,
    by_tail_call,  ///< by a jump, in place of the call and the return of the previous function
    by_signal      ///< at its beginning, where tracing was switched on again during an exception
};

/// A function that calls itself directly is one node. Initially node 0 stands for the unknown caller.
class CallTree {
public:
    static constexpr std::uint32_t nowhere = std::numeric_limits<std::uint32_t>::max();
    struct Node {
        FunctionId function = no_function;
        std::uint32_t parent = nowhere;
        std::uint32_t recent = 0;  ///< the child that was looked up last
        bool was_root = false;     ///< the root, until its own caller became known
        Entered how{};
        std::uint64_t calls{};
        Work self{};
    };

    CallTree() : nodes_(1), slots_(16) { nodes_.front().was_root = true; }

    /// The node of `function` called from `parent`. If the tree has `most` nodes, none is added, and the result is
    /// `parent`.
    std::uint32_t child(std::uint32_t parent, FunctionId function, Entered how, std::size_t most) {
        const std::uint32_t known = child_at_once(parent, function, how);
        return known != nowhere ? known : find_or_add(parent, function, how, most);
    }
    /// Whether `child` gives the same result in any order of calls, also when callers become known later.
    [[nodiscard]] bool is_settled(std::uint32_t parent, FunctionId function) const {
        const Node& node = nodes_[parent];
        return node.function != no_function && !(node.was_root && node.function == function);
    }
    /// The result of `child`, if the node is the child looked up last, or `parent`; otherwise `nowhere`.
    [[nodiscard]] std::uint32_t child_at_once(std::uint32_t parent, FunctionId function, Entered how) const {
        const std::uint32_t recent = nodes_[parent].recent;
        if (recent != 0 && nodes_[recent].function == function && nodes_[recent].how == how) return recent;
        return nodes_[parent].function == function && nodes_[parent].how == how ? parent : nowhere;
    }
    /// A node beside the tree, for code whose place in it is not yet known.
    std::uint32_t add_loose() {
        nodes_.emplace_back();
        return static_cast<std::uint32_t>(nodes_.size() - 1);
    }
    /// The unknown caller becomes known: the former `root` is `function`, and its own caller a new node.
    std::uint32_t add_above(std::uint32_t root, FunctionId function);

    [[nodiscard]] Node& node(std::uint32_t index) { return nodes_[index]; }
    [[nodiscard]] const std::vector<Node>& nodes() const { return nodes_; }
    [[nodiscard]] std::size_t size() const { return nodes_.size(); }

    /// Adds the nodes [first, last) of another tree. `at` maps indices of the other tree to nodes of this one, and is
    /// extended by the added nodes. A node for which `at` has `nowhere` is added below the node of its parent. Returns
    /// the number of calls that did not fit.
    std::uint64_t take(const CallTree& other, std::uint32_t first, std::uint32_t last, std::vector<std::uint32_t>& at,
                       std::size_t most);

private:
    std::uint32_t find_or_add(std::uint32_t parent, FunctionId function, Entered how, std::size_t most);
    void insert(std::uint32_t node);
    void grow();
    [[nodiscard]] std::size_t slot(std::uint32_t parent, FunctionId function) const {
        return mix(parent, function) & (slots_.size() - 1);
    }

    std::vector<Node> nodes_;
    std::vector<std::uint32_t> slots_;  // node plus 1; 0: free
    std::size_t used_ = 0;
};

}  // namespace waymark::analysis
