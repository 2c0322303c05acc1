#include "flow_fill.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "waymark/isa/decode_instr.h"

namespace waymark::analysis {

using namespace answers;

namespace {

/// The tree of callers and callees, one for all streams.
class TreeFiller {
public:
    explicit TreeFiller(FlowFunctions& functions)
        : functions_(functions),
          a_(functions.answers()),
          streams_(functions.streams()),
          options_(functions.options()),
          named_(functions.answers()) {}

    void run() {
        std::set<std::string> sources;
        std::map<std::string, std::set<StackKey>> contexts;
        for (const FlowStream& s : streams_) {
            if (!s.sink->options().calls) return;
            sources.insert(s.source);
            for (const FlowCalls::Tree& tree : s.sink->calls().trees())
                if (worth(tree.tree)) contexts[s.source].insert(tree.key);
        }
        std::set<StackKey> threads;
        for (const auto& [source, keys] : contexts) threads.insert(keys.begin(), keys.end());
        nodes_.push_back({CallNode::Kind::root, none, 0, {}, {}});
        for (const FlowStream& s : streams_) {
            const std::size_t top = (sources.size() > 1 || options_.several_sources) && !options_.context_name
                                        ? node_below(0, CallNode::Kind::root, named_.of(s.source))
                                        : std::size_t{0};
            const std::vector<CodeFunction> known = s.sink->code().functions();
            for (const FlowCalls::Tree& tree : s.sink->calls().trees()) {
                if (!worth(tree.tree)) continue;
                if (options_.context_name)
                    add_tree(tree.tree, known, threads.size() > 1 ? node_of_thread(tree.key) : 0);
                else
                    add_tree(tree.tree, known,
                             contexts[s.source].size() > 1
                                 ? node_below(top, CallNode::Kind::root, named_.of(context_text(tree.key)))
                                 : top);
            }
        }
        settle_nameless();
        put_nodes();
    }

private:
    /// A node of the tree that is being built.
    struct Node {
        CallNode::Kind kind{};
        Index function = none;
        std::uint64_t calls{};
        Work self;
        std::map<std::pair<CallNode::Kind, Index>, std::size_t> children;
    };

    std::size_t node_below(std::size_t parent, CallNode::Kind kind, Index function) {
        const auto [at, fresh] = nodes_[parent].children.try_emplace({kind, function}, nodes_.size());
        const std::size_t index = at->second;
        if (fresh) nodes_.push_back({kind, function, 0, {}, {}});
        return index;
    }

    // Code without symbols is divided into functions at the addresses that were called. All these addresses are known
    // only at the end; until then, a frame in such code counts for the function that was called. Here costs move to the
    // function that instructions, lines and blocks assign them to, so that each view has one sum for one name.

    /// Costs of code without symbols, by the function of each instruction.
    std::map<Index, Work> nameless_costs() {
        std::map<Index, Work> out;
        const auto add = [&](const CodeFunction& f, const Work& work) {
            if (is_nameless(f)) out[functions_.index_of(f)] += work;
        };
        for (const auto& [key, sum] : functions_.blocks()) {
            const flow::Block& b = sum.block;
            const std::uint64_t times = sum.times[0] + sum.times[1];
            const CodeFunction first = functions_.at(b.start);
            if (first == functions_.at(last_address(b))) {
                add(first, {times * b.instructions, sum.cycles});
                continue;
            }
            // The same space as in FlowInstructions.
            const isa::Space space = space_of(sum.stream->sink->code().memory(), b);
            const std::uint64_t each = b.instructions == 0 ? 0 : sum.cycles / b.instructions;
            std::uint64_t cycles = sum.cycles;
            for (std::uint64_t at = b.start; at < b.start + b.bytes;) {
                const auto i =
                    isa::decode_at(sum.stream->sink->code().memory(), space, {at}, b.isa, sum.stream->decode);
                if (!i) break;
                add(functions_.at(at), {times, at + i->bytes >= b.start + b.bytes ? cycles : each});
                cycles -= each;
                at += i->bytes;
            }
        }
        return out;
    }
    static bool is_nameless(const CodeFunction& f) {
        return f.kind == CodeFunction::Kind::entry || f.kind == CodeFunction::Kind::section;
    }

    /// For each function without symbols, the functions it leads to other than by calls.
    std::map<Index, std::set<Index>> nameless_ways() {
        std::map<Index, std::set<Index>> out;
        for (const auto& [key, sum] : functions_.blocks()) {
            const flow::Block& b = sum.block;
            const CodeFunction from = functions_.at(last_address(b));
            if (!is_nameless(from)) continue;
            const auto add = [&](std::uint64_t address) {
                const CodeFunction to = functions_.at(address);
                if (to != from && is_nameless(to)) out[functions_.index_of(from)].insert(functions_.index_of(to));
            };
            if (sum.times[1] != 0 && b.end == flow::End::direct && (b.flags & flow::Block::link) == 0) add(b.target);
            if (sum.times[0] != 0 || b.end == flow::End::not_a_waypoint) add(b.start + b.bytes);
        }
        return out;
    }

    void settle_nameless() {
        const std::map<Index, Work> here = nameless_costs();
        std::set<Index> nameless;
        for (const auto& [f, index] : functions_.indices())
            if (is_nameless(f)) nameless.insert(index);
        if (nameless.empty()) return;
        const std::map<Index, std::set<Index>> ways = nameless_ways();
        for (std::uint64_t Work::*metric : {&Work::instructions, &Work::cycles}) {
            std::map<Index, std::uint64_t> surplus, lacking;
            for (const Index f : nameless) lacking[f] = 0;
            for (const auto& [f, work] : here) lacking[f] = work.*metric;
            for (const Node& node : nodes_)
                if (nameless.contains(node.function)) surplus[node.function] += node.self.*metric;
            for (auto& [f, sum] : surplus) {
                const std::uint64_t right = std::min(sum, lacking[f]);
                sum -= right;
                lacking[f] -= right;
            }
            std::erase_if(lacking, [](const auto& f) { return f.second == 0; });
            move_costs(metric, std::move(surplus), std::move(lacking), ways);
        }
    }

    /// Moves cost from functions with a surplus to functions with a deficit: first along ways out of the function, then
    /// within the image, then anywhere. The receiving function gets a frame called by the frame that ran, so the
    /// inclusive costs of that frame and its callers stay.
    void move_costs(std::uint64_t Work::*metric, std::map<Index, std::uint64_t> surplus,
                    std::map<Index, std::uint64_t> lacking, const std::map<Index, std::set<Index>>& ways) {
        std::map<Index, std::vector<std::size_t>> nodes;
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
            const auto found = surplus.find(nodes_[i].function);
            if (found != surplus.end() && found->second != 0) nodes[found->first].push_back(i);
        }
        for (const auto& [from, nodes_from] : nodes) {
            const std::vector<std::size_t>& all = nodes_from;
            std::uint64_t& rest = surplus[from];
            std::size_t at = 0;
            const auto give = [&](Index to) {
                const auto lacks = lacking.find(to);
                if (lacks == lacking.end()) return;
                while (rest != 0 && lacks->second != 0 && at < all.size()) {
                    const std::uint64_t amount = std::min({rest, lacks->second, nodes_[all[at]].self.*metric});
                    if (amount != 0) {
                        const std::size_t other = node_below(all[at], CallNode::Kind::call, to);
                        nodes_[all[at]].self.*metric -= amount;
                        nodes_[other].self.*metric += amount;
                        rest -= amount;
                        lacks->second -= amount;
                    }
                    if (nodes_[all[at]].self.*metric == 0) ++at;
                }
                if (lacks->second == 0) lacking.erase(lacks);
            };
            constexpr std::size_t most_met = 1000;
            std::vector<Index> waiting{from};
            std::set<Index> met{from};
            for (std::size_t i = 0; i < waiting.size() && rest != 0; ++i) {
                give(waiting[i]);
                if (const auto to = ways.find(waiting[i]); to != ways.end() && met.size() < most_met)
                    for (const Index next : to->second)
                        if (met.insert(next).second) waiting.push_back(next);
            }
            for (const bool same_image : {true, false}) {
                std::vector<Index> others;
                for (auto next = lacking.begin(); next != lacking.end() && others.size() <= most_met; ++next)
                    if (!same_image || a_.functions[next->first].image == a_.functions[from].image)
                        others.push_back(next->first);
                for (const Index to : others)
                    if (rest != 0) give(to);
            }
        }
    }
    [[nodiscard]] static bool worth(const CallTree& tree) {
        return tree.size() > 1 || tree.nodes().front().self != Work{};
    }
    /// A thread with a name is placed below its process, even if the process has several sources.
    std::size_t node_of_thread(const StackKey& key) {
        if (!key.context_id) return node_below(0, CallNode::Kind::root, named_.of("thread not known"));
        const ContextName name = options_.context_name(*key.context_id);
        const std::size_t process = node_below(0, CallNode::Kind::root, named_.of("process " + name.process));
        return node_below(process, CallNode::Kind::root, named_.of("thread " + name.thread));
    }
    [[nodiscard]] static std::string context_text(const StackKey& key) {
        std::string out = key.context_id ? fmt::format("context {:#x}", *key.context_id) : "context not known";
        if (key.vmid) out += fmt::format(", VMID {:#x}", *key.vmid);
        return out;
    }
    void add_tree(const CallTree& tree, const std::vector<CodeFunction>& known, std::size_t top) {
        std::vector<std::size_t> at(tree.size(), 0);
        for (std::uint32_t i = 0; i < tree.size(); ++i) {
            const CallTree::Node& node = tree.nodes()[i];
            if (i == 0) {
                at[i] = top;
            } else {
                const CodeFunction& f = known[node.function];
                const CallNode::Kind kind = f.kind == CodeFunction::Kind::exception ? CallNode::Kind::interrupt
                                            : node.parent == 0                      ? CallNode::Kind::unsynchronised
                                            : node.how == Entered::by_tail_call     ? CallNode::Kind::tail_call
                                            : node.how == Entered::by_signal        ? CallNode::Kind::signal
                                                                                    : CallNode::Kind::call;
                at[i] = node_below(at[node.parent], kind, functions_.index_of(f));
            }
            nodes_[at[i]].calls += node.calls;
            nodes_[at[i]].self += node.self;
        }
    }
    /// Parents come before children; children are sorted by falling cost.
    void put_nodes() {
        // Cost for which no function is known is assigned to a function too, so that costs of functions add up.
        if (nodes_[0].self != Work{}) {
            const std::size_t unknown = node_below(0, CallNode::Kind::unsynchronised, named_.of("[unknown]"));
            nodes_[unknown].self += std::exchange(nodes_[0].self, {});
        }
        std::vector<std::uint64_t> inclusive(nodes_.size());
        for (std::size_t i = nodes_.size(); i-- > 0;) {
            inclusive[i] += nodes_[i].self.instructions;
            for (const auto& [key, child] : nodes_[i].children) inclusive[i] += inclusive[child];
        }
        std::vector<std::pair<std::size_t, Index>> waiting{{0, none}};
        while (!waiting.empty()) {
            const auto [index, parent] = waiting.back();
            waiting.pop_back();
            const Node& node = nodes_[index];
            const auto put = static_cast<Index>(a_.calls.size());
            a_.calls.push_back({parent, node.function, node.kind, node.calls, functions_.costs(node.self)});
            std::vector<std::size_t> children;
            for (const auto& [key, child] : node.children) children.push_back(child);
            std::stable_sort(children.begin(), children.end(),
                             [&](std::size_t x, std::size_t y) { return inclusive[x] < inclusive[y]; });
            for (const std::size_t child : children) waiting.emplace_back(child, put);
        }
    }

    FlowFunctions& functions_;
    Answers& a_;
    const std::vector<FlowStream>& streams_;
    const FlowAnswersOptions& options_;
    SyntheticTable named_;
    std::vector<Node> nodes_;
};

}  // namespace

void fill_calls(FlowFunctions& functions) { TreeFiller(functions).run(); }

}  // namespace waymark::analysis
