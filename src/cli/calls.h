/// Who called whom, how often, and what it cost: a tree built from calls and returns in the flow. Recursion is folded
/// into the outermost call of a function; where flow is unknown, the tree starts again at its root.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "output.h"
#include "waymark/flow/flow.h"
#include "waymark/image/symbols.h"

namespace waymark::cli {

class CallTree {
public:
    /// `symbols` is borrowed. Without symbols, functions go by the address they were called at.
    explicit CallTree(const image::Symbols& symbols);

    /// A sink that feeds this tree; one source after another may use it.
    [[nodiscard]] std::unique_ptr<flow::Sink> sink();
    /// The tree, the dearest branches first.
    void print(Output& out) const;

private:
    static constexpr std::size_t most_nodes = 100000, most_frames = 1024;
    struct Node {
        std::string name;
        std::uint64_t function{};  ///< where it starts
        std::size_t parent{};
        std::uint64_t calls{}, instructions{};
        std::map<std::uint64_t, std::size_t> children;
    };
    struct Frame {
        std::size_t node{};
        std::uint64_t return_address{};
    };
    class FlowSink;

    void range(const flow::Block& block, const flow::Range& range);
    void event(const flow::Event& event);
    void arrive(std::uint64_t address);
    void enter(std::uint64_t address, std::string name, std::uint64_t return_address);
    void start_again();
    [[nodiscard]] std::size_t child(std::size_t parent, std::uint64_t function, const std::string& name);
    /// Start and name of the function an address lies in; the address itself where no symbol tells.
    [[nodiscard]] std::pair<std::uint64_t, std::string> function_at(std::uint64_t address) const;
    [[nodiscard]] std::uint64_t inclusive(std::size_t node) const;
    void print(Output& out, std::size_t node, unsigned depth, std::uint64_t all) const;

    const image::Symbols& symbols_;
    std::vector<Node> nodes_;
    std::vector<Frame> frames_;
    std::size_t at_ = 0;     // the node execution is in; 0 is the root
    bool called_ = false;    // the next range begins a function
    bool fresh_ = true;      // nothing is known of where execution is
    bool branched_ = false;  // the last range ended with a branch that was taken
    std::uint64_t return_address_ = 0;
};

}  // namespace waymark::cli
