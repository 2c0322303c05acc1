#include "calls.h"

#include <algorithm>
#include <type_traits>

#include "waymark/pft/text.h"

namespace waymark::cli {

namespace {

/// `████████░░░░░░░░░░░░  40.0 %`: a bar of twenty cells and the number.
std::string share(std::uint64_t part, std::uint64_t all) {
    constexpr std::uint64_t cells = 20;
    const std::uint64_t full = all == 0 ? 0 : (part * cells + all / 2) / all;
    std::string out;
    for (std::uint64_t i = 0; i < cells; ++i) out += i < full ? "█" : "·";
    return out +
           fmt::format(" {:>5.1f}%", all == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(all));
}

}  // namespace

class CallTree::FlowSink final : public flow::Sink {
public:
    explicit FlowSink(CallTree& tree) : tree_(tree) {}
    void consume(const flow::Batch& batch) override {
        flow::in_order(
            batch, [&](const flow::Block& block, const flow::Range& range) { tree_.range(block, range); },
            [&](const flow::Event& event) { tree_.event(event); });
    }

private:
    CallTree& tree_;
};

CallTree::CallTree(const image::Symbols& symbols) : symbols_(symbols), nodes_(1) {}

std::unique_ptr<flow::Sink> CallTree::sink() {
    start_again();
    return std::make_unique<FlowSink>(*this);
}

std::pair<std::uint64_t, std::string> CallTree::function_at(std::uint64_t address) const {
    if (const auto found = symbols_.find({address})) return {found->symbol.address.value, std::string(found->name)};
    return {address, fmt::format("{:#010x}", address)};
}

std::size_t CallTree::child(std::size_t parent, std::uint64_t function, const std::string& name) {
    for (std::size_t up = parent; up != 0; up = nodes_[up].parent)
        if (nodes_[up].function == function) return up;  // recursion
    const auto known = nodes_[parent].children.find(function);
    if (known != nodes_[parent].children.end()) return known->second;
    if (nodes_.size() == most_nodes) return parent;
    nodes_.push_back({name, function, parent, 0, 0, {}});
    nodes_[parent].children[function] = nodes_.size() - 1;
    return nodes_.size() - 1;
}

void CallTree::start_again() {
    frames_.clear();
    at_ = 0;
    called_ = branched_ = false;
    fresh_ = true;
}

void CallTree::enter(std::uint64_t function, std::string name, std::uint64_t return_address) {
    if (frames_.size() == most_frames) frames_.erase(frames_.begin());
    frames_.push_back({at_, return_address});
    at_ = child(at_, function, name);
    ++nodes_[at_].calls;
}

/// Execution comes to `address` by a branch, or goes on there.
void CallTree::arrive(std::uint64_t address) {
    if (called_ || fresh_) {
        auto [function, name] = function_at(address);
        if (called_) {
            enter(function, std::move(name), return_address_);
        } else {
            at_ = child(0, function, name);
        }
        called_ = fresh_ = false;
        return;
    }
    const auto frame =
        std::find_if(frames_.rbegin(), frames_.rend(), [&](const Frame& f) { return f.return_address == address; });
    if (frame != frames_.rend()) {
        at_ = frame->node;
        frames_.erase(frame.base() - 1, frames_.end());
    } else if (at_ != 0) {
        // A jump into another function takes the place of the one it leaves: a tail call.
        if (const auto found = symbols_.find({address}); found && found->symbol.address.value != nodes_[at_].function) {
            const std::size_t next = child(nodes_[at_].parent, found->symbol.address.value, std::string(found->name));
            if (next != at_ && found->offset == 0) ++nodes_[next].calls;
            at_ = next;
        }
    }
}

void CallTree::range(const flow::Block& block, const flow::Range& range) {
    arrive(block.start);
    nodes_[at_].instructions += std::uint64_t{block.instructions} * range.times;
    branched_ = range.taken();
    if (branched_ && (block.flags & flow::Block::link) != 0) {
        called_ = true;
        return_address_ = block.start + block.bytes;
    }
}

void CallTree::event(const flow::Event& event) {
    std::visit(
        [&](const auto& what) {
            using T = std::decay_t<decltype(what)>;
            if constexpr (std::is_same_v<T, flow::Exception>) {
                if (!what.preferred_return) return start_again();
                // An exception right behind a branch, before the first instruction there: a call was made, or a
                // function or another exception returned, all the same.
                if (branched_) arrive(what.preferred_return->value);
                branched_ = false;
                // Numbers cannot be addresses of functions here: they are below any vector's block.
                enter(~std::uint64_t{0} - what.number, fmt::format("[exception: {}]", pft::exception_name(what.number)),
                      what.preferred_return->value);
                fresh_ = false;
                called_ = true;
                return_address_ = ~std::uint64_t{0};
            } else if constexpr (std::is_same_v<T, Gap> || std::is_same_v<T, flow::NoMemory> ||
                                 std::is_same_v<T, flow::TraceOn> || std::is_same_v<T, flow::Inconsistency>) {
                // Whatever ran meanwhile may come back to an address we wait for: a filter that leaves out library
                // calls does.
                called_ = branched_ = false;
                if constexpr (std::is_same_v<T, Gap>) start_again();
            }
        },
        event.what);
}

std::uint64_t CallTree::inclusive(std::size_t node) const {
    std::uint64_t sum = nodes_[node].instructions;
    for (const auto& [function, below] : nodes_[node].children) sum += inclusive(below);
    return sum;
}

void CallTree::print(Output& out) const {
    out.print("{:>14} {:>14} {:>10}  {}\n", "instructions", "of these self", "calls", "share of all");
    const std::uint64_t all = inclusive(0);
    if (nodes_[0].instructions != 0)
        out.print("{:>14} {:>14} {:>10}  {}  (where no function is known)\n", grouped(nodes_[0].instructions),
                  grouped(nodes_[0].instructions), "", share(nodes_[0].instructions, all));
    print(out, 0, 0, all);
}

void CallTree::print(Output& out, std::size_t node, unsigned depth, std::uint64_t all) const {
    std::vector<std::pair<std::uint64_t, std::size_t>> order;
    for (const auto& [function, below] : nodes_[node].children) order.emplace_back(inclusive(below), below);
    std::sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
        return a.first != b.first ? a.first > b.first : nodes_[a.second].name < nodes_[b.second].name;
    });
    for (const auto& [cost, below] : order) {
        const Node& n = nodes_[below];
        out.print("{:>14} {:>14} {:>10}  {}  {:{}}{}\n", grouped(cost), grouped(n.instructions), grouped(n.calls),
                  share(cost, all), "", 2 * depth, n.name);
        print(out, below, depth + 1, all);
    }
}

}  // namespace waymark::cli
