#include "waymark/analysis/flow_answers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "loops.h"
#include "waymark/analysis/program.h"
#include "waymark/answers/parts.h"
#include "waymark/core/numbers.h"
#include "waymark/image/program_file.h"

namespace waymark::analysis {

using namespace answers;

namespace {

using Kind = CodeFunction::Kind;

std::string exception_text(const flow::ExceptionType& e) {
    return e.known() ? std::string(e.name) : fmt::format("exception {}", e.number);
}

/// A block that ran, whatever stream it was met in.
struct BlockKey {
    std::uint64_t start{};
    std::uint32_t bytes{}, section{};
    isa::Isa isa{};
    friend auto operator<=>(const BlockKey&, const BlockKey&) = default;
};
struct BlockSum {
    flow::Block block;
    std::array<std::uint64_t, 2> times{};  // not taken, taken
    std::uint64_t cycles{};
    const FlowStream* stream{};
};

std::uint64_t last_address(const flow::Block& b) { return b.start + b.bytes - b.last_bytes; }

Branch::Kind kind_of(const flow::Block& b) {
    using K = Branch::Kind;
    const bool link = (b.flags & flow::Block::link) != 0;
    if (b.end == flow::End::indirect) {
        if (link) return K::indirect_call;
        const bool returns = (b.flags & (flow::Block::function_return | flow::Block::exception_return)) != 0;
        return returns ? K::function_return : K::indirect;
    }
    if (link) return K::call;
    return (b.flags & flow::Block::conditional) != 0 ? K::conditional : K::unconditional;
}

class Filler {
public:
    Filler(Answers& answers, const std::vector<FlowStream>& streams, const FlowAnswersOptions& options)
        : a_(answers), streams_(streams), options_(options), inlined_(answers), named_(answers) {}

    void run() {
        a_.metrics.push_back({"instructions", "instructions"});
        if (options_.cycles) a_.metrics.push_back({"cycles", "cycles"});
        if (streams_.empty()) return;
        open_files();
        sum_blocks();
        find_entries();
        gather_functions();
        fill_calls();
        fill_edges();
        fill_exceptions();
        fill_levels();
        fill_timeline();
        if (options_.instructions) {
            fill_code();
            find_unobserved();
            put_code();
            fill_loops();
        }
        fill_trust();
    }

private:
    [[nodiscard]] Costs costs(const Work& w) const {
        return options_.cycles ? Costs{w.instructions, w.cycles} : Costs{w.instructions};
    }
    [[nodiscard]] const image::Symbols& symbols() const { return streams_.front().sink->code().symbols(); }

    // ---- places

    struct File {
        image::DebugInfo info;
        std::uint64_t bias;
        Index image;
        // The last place whose inlined calls were asked for, and the innermost of them.
        image::InlinedPlace place{};
        Index function = none, inlined = none;
    };
    void open_files() {
        for (const ProgramFile& f : options_.files) {
            auto info = image::DebugInfo::open(f.path, f.debug_folders);
            if (!info) continue;
            const std::string id = fmt::format("{:02x}", fmt::join(info->build_id(), ""));
            const Index image = image_of_file(std::string(Program::short_name(f.name.empty() ? f.path : f.name)), id);
            Image& known = a_.images[image];
            known.path = f.path;
            known.build_id = id;
            // Of two files of one build, such as a stripped one and its original, both are known.
            const bool symbols = known.has_symbols.value_or(false) || image::has_symbol_table(f.path, *info);
            known.has_symbols = symbols;
            if (options_.instructions) known.whole |= symbols && has_all_code(*info, f.load_bias);
            for (const image::DebugInfo::Segment& s : info->segments())
                file_ranges_.add(s.address.value + f.load_bias, s.bytes, files_.size());
            files_.push_back({std::move(*info), f.load_bias, image, {}});
        }
    }
    /// Every page of its executable segments is known, whether it ran or not.
    [[nodiscard]] bool has_all_code(const image::DebugInfo& info, std::uint64_t bias) {
        constexpr std::uint64_t page = 4096;
        for (const image::DebugInfo::Segment& s : info.segments()) {
            if (!s.executable) continue;
            for (std::uint64_t at = 0; at < s.bytes; at += page - (s.address.value + bias + at) % page)
                if (region_at(s.address.value + bias + at) == nullptr) return false;
        }
        return true;
    }
    /// Files of one name are two images where their builds differ.
    Index image_of_file(const std::string& name, const std::string& build_id) {
        for (std::size_t i = 0; i < a_.images.size(); ++i)
            if (a_.images[i].name == name && (a_.images[i].path.empty() || a_.images[i].build_id == build_id))
                return static_cast<Index>(i);
        if (!images_.contains(name)) return image_of(name);
        a_.images.push_back({name});
        return static_cast<Index>(a_.images.size() - 1);
    }
    Index image_of(const std::string& name) {
        const auto [at, fresh] = images_.try_emplace(name, static_cast<Index>(a_.images.size()));
        if (fresh) a_.images.push_back({name});
        return at->second;
    }
    File* file_at(std::uint64_t address) {
        const auto found = file_ranges_.find(address);
        return found ? &files_[*found] : nullptr;
    }
    /// `kernel.elf` of the section `kernel.elf[LOAD 0]`.
    Index section_image(const image::MemoryMap& memory, std::uint32_t section) {
        std::string name = memory.sections()[section].name;
        if (const std::size_t bracket = name.rfind('['); bracket != std::string::npos && bracket != 0)
            name.resize(bracket);
        while (!name.empty() && name.back() == ' ') name.pop_back();
        return image_of(std::string(Program::short_name(name)));
    }
    Index image_at(std::uint64_t address) {
        if (const File* f = file_at(address)) return f->image;
        if (const auto area = symbols().area({address}))
            return area->file.empty() ? none : image_of(std::string(area->name));
        const Region* region = region_at(address);
        return region == nullptr ? none : section_image(*region->memory, region->section);
    }

    // ---- functions

    void sum_blocks() {
        for (const FlowStream& s : streams_)
            for (const FlowCounts* counts : s.sink->counts())
                for (std::size_t edge = 0; edge < counts->times.size(); ++edge) {
                    if (counts->times[edge] == 0) continue;
                    const flow::Block& b = counts->known.blocks[edge / 2];
                    BlockSum& sum = blocks_[{b.start, b.bytes, b.section, b.isa}];
                    sum.block = b;
                    sum.times[edge & 1U] += counts->times[edge];
                    sum.stream = &s;
                    if (const std::uint64_t cycles = counts->block_cycles[edge / 2];
                        (edge & 1U) != 0 || counts->times[edge | 1U] == 0)
                        sum.cycles += cycles;
                }
    }

    /// Places in code without symbols that are called.
    void find_entries() {
        const auto add = [&](std::uint64_t to) {
            if (!symbols().find({to})) entries_.insert(to);
        };
        for (const auto& [key, sum] : blocks_)
            if (sum.times[1] != 0 && sum.block.end == flow::End::direct && (sum.block.flags & flow::Block::link) != 0)
                add(sum.block.target);
        for (const FlowStream& s : streams_) {
            const std::vector<CodeFunction> known = s.sink->code().functions();
            for (const FlowCalls::Tree& tree : s.sink->calls().trees())
                for (const CallTree::Node& node : tree.tree.nodes())
                    if (known[node.function].kind == Kind::entry) entries_.insert(known[node.function].value);
        }
    }

    struct Region {
        std::uint64_t address{};
        std::uint32_t section{};
        const image::MemoryMap* memory{};
    };
    [[nodiscard]] const Region* region_at(std::uint64_t address) {
        if (regions_.empty())
            for (const FlowStream& s : streams_)
                for (const image::Region& r : s.sink->code().memory().regions()) {
                    if (r.shadowed_by) continue;
                    region_ranges_.add(r.address.value, r.bytes, regions_.size());
                    regions_.push_back({r.address.value, r.section, &s.sink->code().memory()});
                }
        const auto found = region_ranges_.find(address);
        return found ? &regions_[*found] : nullptr;
    }

    /// Whose code an address is.
    CodeFunction function_at(std::uint64_t address) {
        if (const auto found = symbols().find({address}))
            return {Kind::symbol, streams_.front().sink->code().whole_function(found->symbol)};
        const auto area = symbols().area({address});
        const Region* region = area ? nullptr : region_at(address);
        const std::uint64_t begin = area ? area->first.value : region == nullptr ? 0 : region->address;
        if (const auto after = entries_.upper_bound(address); after != entries_.begin()) {
            const std::uint64_t entry = *std::prev(after);
            if (entry >= begin && (!symbols_between(entry, address))) return {Kind::entry, entry};
        }
        return {Kind::section, begin};
    }
    [[nodiscard]] bool symbols_between(std::uint64_t first, std::uint64_t address) {
        if (starts_.empty() && symbols().size() != 0)
            for (const image::Symbol& s : symbols().all()) starts_.push_back(s.address.value);
        const auto at = std::lower_bound(starts_.begin(), starts_.end(), first);
        return at != starts_.end() && *at <= address;
    }

    Function describe(const CodeFunction& f) {
        Function out;
        out.address = f.value;
        switch (f.kind) {
            case Kind::symbol:
                if (const auto found = symbols().find({f.value})) {
                    out.name = found->name;
                    out.linkage_name = found->symbol.linkage_name;
                    out.bytes = found->symbol.bytes;
                }
                break;
            case Kind::entry:
                out.name = symbols().approximate({f.value});
                if (out.name.empty()) out.name = fmt::format("{:#010x}", f.value);
                break;
            case Kind::section: {
                out.image = image_at(f.value);
                out.name = out.image != none                       ? "(no symbol) in " + a_.images[out.image].name
                           : symbols().area({f.value}).has_value() ? "(no symbol) in code of no file"
                                                                   : "[unknown]";
                return out;
            }
            case Kind::exception:
                out.name = fmt::format("[exception: {}]", exception_text(f.exception));
                out.address = 0;
                out.synthetic = true;
                return out;
            case Kind::unknown:
                out.name = "[unknown]";
                out.synthetic = true;
                return out;
        }
        out.image = image_at(f.value);
        if (File* file = file_at(f.value)) {
            const Address in_file{f.value - file->bias};
            auto declared = file->info.function(in_file);
            // The first instruction may be of a function that was inlined there, so that its line is in other code.
            if (const auto line = declared ? std::optional(declared->at) : file->info.line(in_file)) {
                out.source = source(line->file);
                out.line = line->line;
            }
            if (options_.inlined)
                if (declared) {
                    out.declared_name = std::move(declared->linkage_name);
                    out.declared_source = source(declared->at.file);
                    out.declared_line = declared->at.line;
                    out.by_llvm = declared->by_llvm;
                }
        }
        return out;
    }
    Index source(const std::string& path) {
        const auto [at, fresh] = sources_.try_emplace(path, static_cast<Index>(a_.sources.size()));
        if (fresh) a_.sources.push_back({path});
        return at->second;
    }

    /// All that something was found in, by what they are, then address.
    void gather_functions() {
        std::set<CodeFunction> used;
        for (const auto& [key, sum] : blocks_) used.insert(function_at(key.start));
        for (const FlowStream& s : streams_) {
            const std::vector<CodeFunction> known = s.sink->code().functions();
            for (const FlowCalls::Tree& tree : s.sink->calls().trees())
                for (const CallTree::Node& node : tree.tree.nodes())
                    if (node.function != no_function) used.insert(known[node.function]);
        }
        for (const CodeFunction& f : used) {
            functions_[f] = static_cast<Index>(a_.functions.size());
            a_.functions.push_back(describe(f));
        }
    }
    Index index_of(const CodeFunction& f) {
        const auto [at, fresh] = functions_.try_emplace(f, static_cast<Index>(a_.functions.size()));
        if (fresh) a_.functions.push_back(describe(f));
        return at->second;
    }
    Index function_index(std::uint64_t address) { return index_of(function_at(address)); }

    // ---- who called whom

    /// A node of the tree as it is put together.
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

    void fill_calls() {
        std::set<std::string> sources;
        std::map<std::string, std::set<StackKey>> contexts;
        for (const FlowStream& s : streams_) {
            if (!s.sink->options().calls) return;
            sources.insert(s.source);
            for (const FlowCalls::Tree& tree : s.sink->calls().trees())
                if (worth(tree.tree)) contexts[s.source].insert(tree.key);
        }
        nodes_.push_back({CallNode::Kind::root, none, 0, {}, {}});
        for (const FlowStream& s : streams_) {
            const std::size_t top = sources.size() > 1 || options_.several_sources
                                        ? node_below(0, CallNode::Kind::root, named_.of(s.source))
                                        : std::size_t{0};
            const std::vector<CodeFunction> known = s.sink->code().functions();
            for (const FlowCalls::Tree& tree : s.sink->calls().trees()) {
                if (!worth(tree.tree)) continue;
                add_tree(tree.tree, known,
                         contexts[s.source].size() > 1
                             ? node_below(top, CallNode::Kind::root, named_.of(context_text(tree.key)))
                             : top);
            }
        }
        settle_nameless();
        put_nodes();
    }

    // Code without symbols is divided into functions by the places that were called. All of them are known only at the
    // end; while it runs, what a frame does in such code is counted for the function that was called. So costs of the
    // tree go to the function that instructions, lines and blocks have them in: each view has one sum for one name.

    /// Costs of code without symbols, by the function of each instruction.
    std::map<Index, Work> nameless_costs() {
        std::map<Index, Work> out;
        const auto add = [&](const CodeFunction& f, const Work& work) {
            if (is_nameless(f)) out[index_of(f)] += work;
        };
        for (const auto& [key, sum] : blocks_) {
            const flow::Block& b = sum.block;
            const std::uint64_t times = sum.times[0] + sum.times[1];
            const CodeFunction first = function_at(b.start);
            if (first == function_at(last_address(b))) {
                add(first, {times * b.instructions, sum.cycles});
                continue;
            }
            // As fill_code has it.
            const isa::Space space = space_of(sum.stream->sink->code().memory(), b);
            const std::uint64_t each = b.instructions == 0 ? 0 : sum.cycles / b.instructions;
            std::uint64_t cycles = sum.cycles;
            for (std::uint64_t at = b.start; at < b.start + b.bytes;) {
                const auto i =
                    isa::decode_at(sum.stream->sink->code().memory(), space, {at}, b.isa, sum.stream->decode);
                if (!i) break;
                add(function_at(at), {times, at + i->bytes >= b.start + b.bytes ? cycles : each});
                cycles -= each;
                at += i->bytes;
            }
        }
        return out;
    }
    static bool is_nameless(const CodeFunction& f) { return f.kind == Kind::entry || f.kind == Kind::section; }

    /// Functions without symbols that one leads to other than by calls.
    std::map<Index, std::set<Index>> nameless_ways() {
        std::map<Index, std::set<Index>> out;
        for (const auto& [key, sum] : blocks_) {
            const flow::Block& b = sum.block;
            const CodeFunction from = function_at(last_address(b));
            if (!is_nameless(from)) continue;
            const auto add = [&](std::uint64_t address) {
                const CodeFunction to = function_at(address);
                if (to != from && is_nameless(to)) out[index_of(from)].insert(index_of(to));
            };
            if (sum.times[1] != 0 && b.end == flow::End::direct && (b.flags & flow::Block::link) == 0) add(b.target);
            if (sum.times[0] != 0 || b.end == flow::End::not_a_waypoint) add(b.start + b.bytes);
        }
        return out;
    }

    void settle_nameless() {
        const std::map<Index, Work> here = nameless_costs();
        std::set<Index> nameless;
        for (const auto& [f, index] : functions_)
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

    /// From functions that have too much to those that lack some: first where the one leads to, then in the same image,
    /// then anywhere. They get a frame above the one that ran them, which leaves what passed in that one and its
    /// callers.
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
                const CallNode::Kind kind = f.kind == Kind::exception ? CallNode::Kind::interrupt
                                            : node.parent == 0        ? CallNode::Kind::unsynchronised
                                                                      : CallNode::Kind::call;
                at[i] = node_below(at[node.parent], kind, index_of(f));
            }
            nodes_[at[i]].calls += node.calls;
            nodes_[at[i]].self += node.self;
        }
    }
    /// Parents before children, and of those the dearest first.
    void put_nodes() {
        // What ran where no function is known is a function's all the same, so that costs of functions add up.
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
            a_.calls.push_back({parent, node.function, node.kind, node.calls, costs(node.self)});
            std::vector<std::size_t> children;
            for (const auto& [key, child] : node.children) children.push_back(child);
            std::stable_sort(children.begin(), children.end(),
                             [&](std::size_t x, std::size_t y) { return inclusive[x] < inclusive[y]; });
            for (const std::size_t child : children) waiting.emplace_back(child, put);
        }
    }

    // ---- edges

    void fill_edges() {
        std::map<std::tuple<std::uint64_t, std::uint64_t, Branch::Kind>, std::pair<std::uint64_t, Work>> sums;
        for (const auto& [key, sum] : blocks_)
            if (sum.times[1] != 0 && sum.block.end == flow::End::direct)
                sums[{last_address(sum.block), sum.block.target, kind_of(sum.block)}].first += sum.times[1];
        for (const FlowStream& s : streams_)
            for (const FlowCounts* counts : s.sink->counts())
                for (std::size_t i = 0; i < counts->ways().size(); ++i) {
                    const Way& way = counts->ways()[i];
                    const flow::Block& b = counts->known.blocks[way.edge / 2];
                    auto& sum = sums[{last_address(b), way.to, kind_of(b)}];
                    sum.first += counts->way_sums()[i].times;
                    sum.second += counts->way_sums()[i].inclusive;
                }
        for (const FlowStream& s : streams_)
            for (const FlowCounts* counts : s.sink->counts())
                for (std::size_t i = 0; i < counts->carried.size(); ++i) {
                    const CarriedCall& call = s.sink->calls().carried()[i];
                    sums[{last_address(call.block), call.to, kind_of(call.block)}].second +=
                        counts->carried[i].inclusive;
                }
        for (const auto& [key, sum] : sums) {
            const auto& [from, to, kind] = key;
            if (sum.first == 0 && sum.second == Work{}) continue;
            const bool call = kind == Branch::Kind::call || kind == Branch::Kind::indirect_call;
            const bool known = call && streams_.front().sink->options().calls;
            a_.edges.push_back({from, to, function_index(from), function_index(to), kind, sum.first,
                                known ? costs(sum.second) : Costs{}});
        }
    }

    void fill_exceptions() {
        std::map<flow::ExceptionType, ExceptionSum> sums;
        for (const FlowStream& s : streams_)
            for (const FlowCounts* counts : s.sink->counts())
                for (const auto& [type, e] : counts->exceptions) {
                    ExceptionSum& sum = sums[type];
                    sum.times += e.times;
                    sum.nested += e.nested;
                    sum.returned += e.returned;
                    sum.sum += e.sum;
                    sum.least = {std::min(sum.least.instructions, e.least.instructions),
                                 std::min(sum.least.cycles, e.least.cycles)};
                    sum.most = {std::max(sum.most.instructions, e.most.instructions),
                                std::max(sum.most.cycles, e.most.cycles)};
                }
        const auto of = [&](const Work& w) { return options_.cycles ? w.cycles : w.instructions; };
        for (const auto& [type, e] : sums) {
            ExceptionRow row{.name = exception_text(type), .number = type.number, .times = e.times, .nested = e.nested};
            row.unit = options_.cycles ? "cycles" : "instructions";
            row.returned = e.returned;
            if (e.returned != 0) {
                row.least = of(e.least);
                row.most = of(e.most);
                row.sum = of(e.sum);
            }
            a_.exceptions.push_back(std::move(row));
        }
    }

    void fill_levels() {
        std::map<Level, LevelSum> sums;
        for (const FlowStream& s : streams_)
            for (const auto& [level, sum] : s.sink->calls().levels().sums()) {
                sums[level].work += sum.work;
                sums[level].entered += sum.entered;
            }
        a_.levels = level_rows(sums, options_.cycles);
    }

    // ---- time

    void fill_timeline() {
        std::vector<const FlowStream*> parts;
        for (const FlowStream& s : streams_)
            if (s.timeline != nullptr && s.timeline->end() != 0) parts.push_back(&s);
        if (parts.empty()) return;
        Timeline& out = a_.timeline;
        const auto all = [&](auto&& test) {
            return std::all_of(parts.begin(), parts.end(), [&](const FlowStream* s) { return test(*s->timeline); });
        };
        // Timestamps that never advance are ignored.
        const bool ticks = all([](const FlowTimeline& t) {
            return t.anchors().size() > 1 && t.anchors().back().ticks > t.anchors().front().ticks;
        });
        const bool cycles = all([](const FlowTimeline& t) { return t.cycles(); });
        const bool clock = ticks && options_.ticks_per_second != 0;
        out.axis.unit = clock ? "ns" : ticks ? "ticks" : cycles ? "cycles" : "instructions";
        out.axis.note =
            ticks    ? fmt::format("Timestamps of the trace{}; between two, time passes with the {} in between.",
                                clock ? fmt::format(", {} ticks a second", grouped(options_.ticks_per_second))
                                         : ", of a clock whose frequency is not known",
                                cycles ? "cycles" : "instructions")
            : cycles ? "Cycles of each source since its trace began; sources are not aligned."
                     : "Instructions of each source since its trace began, which is no time; sources are not "
                       "aligned.";
        out.axis.begin = ~std::uint64_t{0};
        std::uint64_t left_out = 0;
        std::map<std::pair<std::string, std::optional<std::uint32_t>>, Index> tracks;
        for (const FlowStream* s : parts) {
            const FlowTimeline& t = *s->timeline;
            std::vector<FlowTimeline::Anchor> anchors;
            if (ticks) anchors = t.anchors();
            if (clock)
                for (FlowTimeline::Anchor& a : anchors) a.ticks = nanoseconds(a.ticks, options_.ticks_per_second);
            const TickMap map(std::move(anchors));
            out.axis.begin = std::min(out.axis.begin, map.ticks(0));
            out.axis.end = std::max(out.axis.end, map.ticks(t.end()));
            out.axis.uncertainty = std::max(out.axis.uncertainty, map.uncertainty());
            std::vector<FlowTimeline::Piece> pieces = t.pieces();
            std::uint64_t resolution = t.resolution();
            while (pieces.size() > std::max<std::size_t>(1, options_.most_slices / parts.size()) &&
                   resolution < t.end()) {
                resolution = std::max<std::uint64_t>(2 * resolution, 2);
                merge_pieces(pieces, resolution);
            }
            // Where the clock is another than what was merged by, its pace at large.
            const double pace = static_cast<double>(map.ticks(t.end()) - map.ticks(0)) / static_cast<double>(t.end());
            out.resolution =
                std::max(out.resolution, static_cast<std::uint64_t>(static_cast<double>(resolution) * pace));
            std::vector<Index> track_of;
            for (const auto& context : t.tracks())
                track_of.push_back(track(s->source, context, t.tracks().size(), tracks));
            const std::vector<CodeFunction> known = s->sink->code().functions();
            for (const FlowTimeline::Piece& p : pieces)
                out.slices.push_back({map.ticks(p.begin), map.ticks(p.end), track_of[p.track],
                                      index_of(known[p.function]), p.depth, p.merged});
            for (const FlowTimeline::Note& n : t.notes()) {
                Mark mark{map.ticks(n.at), map.ticks(n.end), track_of[n.track], n.kind, mark_text(n)};
                if (n.kind == Mark::Kind::overflow && ticks && n.bounded) {
                    const auto time = [&](std::uint64_t at) {
                        return clock ? nanoseconds(at, options_.ticks_per_second) : at;
                    };
                    mark.begin = time(n.ticks_before);
                    mark.end = time(n.ticks_after);
                    mark.text += fmt::format(": at most {} {} of execution are missing", grouped(mark.end - mark.begin),
                                             clock ? "ns" : "ticks");
                } else if (n.kind == Mark::Kind::overflow) {
                    mark.text += ": how much execution is missing is not known";
                }
                out.marks.push_back(std::move(mark));
            }
            left_out += t.notes_left_out();
        }
        if (left_out != 0) out.axis.note += fmt::format(" {} marks more than can be shown are left out.", left_out);
        std::stable_sort(out.slices.begin(), out.slices.end(), [](const Slice& x, const Slice& y) {
            return std::tuple(x.track, x.begin, x.depth) < std::tuple(y.track, y.begin, y.depth);
        });
        std::stable_sort(out.marks.begin(), out.marks.end(), [](const Mark& x, const Mark& y) {
            return std::pair(x.track, x.begin) < std::pair(y.track, y.begin);
        });
    }
    /// The largest number for what is beyond 584 years.
    static std::uint64_t nanoseconds(std::uint64_t ticks, std::uint64_t ticks_per_second) {
        constexpr std::uint64_t second = 1'000'000'000, top = ~std::uint64_t{0};
        const std::uint64_t seconds = ticks / ticks_per_second;
        if (seconds >= top / second) return top;
        __extension__ using Wide = unsigned __int128;
        return seconds * second +
               static_cast<std::uint64_t>(Wide{ticks % ticks_per_second} * second / ticks_per_second);
    }
    Index track(const std::string& source, std::optional<std::uint32_t> context, std::size_t of,
                std::map<std::pair<std::string, std::optional<std::uint32_t>>, Index>& tracks) {
        std::vector<Track>& all = a_.timeline.tracks;
        const auto [top, fresh] = tracks.try_emplace({source, std::nullopt}, static_cast<Index>(all.size()));
        const Index parent = top->second;
        if (fresh) all.push_back({source});
        if (of == 1 || !context) return parent;
        const auto [at, new_one] = tracks.try_emplace({source, context}, static_cast<Index>(all.size()));
        if (new_one) all.push_back({fmt::format("context {:#x}", *context), parent});
        return at->second;
    }
    [[nodiscard]] static std::string mark_text(const FlowTimeline::Note& n) {
        switch (n.kind) {
            case Mark::Kind::gap:
                return n.number == FlowTimeline::no_image
                           ? std::string("gap: no image of the code")
                           : fmt::format("gap: {}", waymark::name(static_cast<GapReason>(n.number)));
            case Mark::Kind::exception: return exception_text(*n.exception);
            case Mark::Kind::context: return fmt::format("context {:#x}", n.number);
            case Mark::Kind::overflow: return "the unit's FIFO overflowed";
            case Mark::Kind::trigger: return "trigger";
            case Mark::Kind::user_data: break;
        }
        return {};
    }

    // ---- code

    static constexpr std::uint64_t most_work = 300'000'000;

    /// An instruction of a function that ran.
    struct Code {
        isa::Instruction what;
        CodeFunction function;
        std::uint64_t times{}, cycles{}, taken{}, not_taken{};
        bool unobserved{};                      // it could have run where flow was lost
        std::vector<std::uint32_t> next, prev;  // by static control flow, in this function
    };
    using CodeKey = std::pair<std::uint64_t, isa::Isa>;

    /// The memory as a block saw it.
    static isa::Space space_of(const image::MemoryMap& memory, const flow::Block& block) {
        for (const bool ns : {false, true})
            for (const bool hyp : {false, true}) {
                const isa::Space space{ns, hyp, {}, {}};
                if (isa::fetch(memory, space, {block.start}, block.isa).section == block.section) return space;
            }
        return {};
    }
    Code* code_at(const FlowStream& s, const isa::Space& space, std::uint64_t address, isa::Isa isa) {
        if (const auto found = code_.find({address, isa}); found != code_.end()) return &found->second;
        const auto found = isa::decode_at(s.sink->code().memory(), space, {address}, isa, s.decode);
        if (!found) return nullptr;
        Code code;
        code.what = *found;
        code.function = function_at(address);
        return &(code_[{address, isa}] = std::move(code));
    }

    void fill_code() {
        struct Begin {
            const FlowStream* stream;
            isa::Space space;
            std::vector<CodeKey> from;
        };
        std::map<CodeFunction, Begin> functions;
        for (const auto& [key, sum] : blocks_) {
            const flow::Block& b = sum.block;
            const isa::Space space = space_of(sum.stream->sink->code().memory(), b);
            const std::uint64_t times = sum.times[0] + sum.times[1];
            const std::uint64_t each = b.instructions == 0 ? 0 : sum.cycles / b.instructions;
            std::uint64_t cycles = sum.cycles;
            for (std::uint64_t at = b.start; at < b.start + b.bytes;) {
                Code* code = code_at(*sum.stream, space, at, b.isa);
                if (code == nullptr) break;
                code->times += times;
                const bool last = at + code->what.bytes >= b.start + b.bytes;
                // Cycles come with a block; its instructions share them.
                code->cycles += last ? cycles : each;
                cycles -= each;
                if (last && b.end != flow::End::not_a_waypoint) {
                    code->not_taken += sum.times[0];
                    code->taken += sum.times[1];
                }
                Begin& begin = functions.try_emplace(code->function, Begin{sum.stream, space, {}}).first->second;
                begin.from.emplace_back(at, b.isa);
                at += code->what.bytes;
            }
        }
        for (auto& [function, begin] : functions)
            find_rest(function, *begin.stream, begin.space, std::move(begin.from));
        if (options_.all_functions && !functions.empty()) {
            const Begin& any = functions.begin()->second;
            for (const image::Symbol& symbol : symbols().all()) {
                if (symbol.kind != image::SymbolKind::function || symbol.bytes == 0) continue;
                const CodeFunction function = function_at(symbol.address.value);
                if (function != CodeFunction{Kind::symbol, symbol.address.value} || functions.contains(function) ||
                    !never_entered_.insert(function).second)
                    continue;
                find_rest(function, *any.stream, any.space, {{symbol.address.value, symbol.isa}});
            }
        }
        number_code();
    }

    /// The instructions of a function that did not run: where the file says what is code, all; else those that what ran
    /// may lead to.
    void find_rest(const CodeFunction& function, const FlowStream& s, const isa::Space& space,
                   std::vector<CodeKey> waiting) {
        if (function.kind == Kind::symbol) {
            const auto symbol = symbols().find({function.value});
            const std::uint64_t end = function.value + (symbol ? symbol->symbol.bytes : 0);
            // A damaged file may claim a function as large as memory: it ends where no code is known any more.
            constexpr std::uint64_t most_unknown = 65536;
            std::uint64_t known_end = function.value;
            for (std::uint64_t at = function.value; at < end && at - known_end < most_unknown;) {
                const auto contents = symbols().contents({at});
                if (!contents) break;
                const auto isa = image::instruction_set(*contents);
                const Code* code = isa ? code_at(s, space, at, *isa) : nullptr;
                at += code != nullptr ? code->what.bytes : isa && isa != isa::Isa::t32 ? 4U : 2U;
                if (code != nullptr) known_end = at;
            }
        }
        std::set<CodeKey> seen(waiting.begin(), waiting.end());
        while (!waiting.empty()) {
            const CodeKey key = waiting.back();
            waiting.pop_back();
            const Code* code = code_at(s, space, key.first, key.second);
            if (code == nullptr) continue;
            for (const CodeKey& to : successors(key, *code))
                if (function_at(to.first) == function && symbols().contents({to.first}) != image::Contents::data &&
                    seen.insert(to).second)
                    waiting.push_back(to);
        }
    }

    /// Where control may go next, as far as the instruction shows.
    [[nodiscard]] static std::vector<CodeKey> successors(const CodeKey& key, const Code& code) {
        std::vector<CodeKey> out;
        const isa::Instruction& i = code.what;
        if (i.undefined) return out;
        const bool branch = i.waypoint == isa::Waypoint::direct || i.waypoint == isa::Waypoint::indirect;
        // A branch of an IT block shows only when it was not taken.
        if (!branch || i.link || i.conditional || code.not_taken != 0)
            out.emplace_back(key.first + i.bytes, key.second);
        if (i.waypoint == isa::Waypoint::direct && !i.link) out.emplace_back(i.target.value, i.target_isa);
        return out;
    }
    [[nodiscard]] static bool may_lead_anywhere(const Code& code) {
        const isa::Instruction& i = code.what;
        return i.waypoint == isa::Waypoint::indirect && !i.link && !i.function_return && !i.exception_return;
    }

    void number_code() {
        std::map<CodeKey, std::uint32_t> numbers;
        for (auto& [key, code] : code_) {
            numbers[key] = static_cast<std::uint32_t>(list_.size());
            by_function_[code.function].push_back(static_cast<std::uint32_t>(list_.size()));
            list_.push_back(&code);
            keys_.push_back(key);
        }
        for (std::uint32_t n = 0; n < list_.size(); ++n)
            for (const CodeKey& to : successors(keys_[n], *list_[n])) {
                const auto found = numbers.find(to);
                if (found == numbers.end() || list_[found->second]->function != list_[n]->function) continue;
                list_[n]->next.push_back(found->second);
                list_[found->second]->prev.push_back(n);
            }
    }
    [[nodiscard]] std::optional<std::uint32_t> code_number(std::uint64_t address) const {
        const auto at = std::lower_bound(keys_.begin(), keys_.end(), CodeKey{address, isa::Isa{}});
        if (at == keys_.end() || at->first != address) return std::nullopt;
        return static_cast<std::uint32_t>(at - keys_.begin());
    }

    // ---- what may have run unseen

    /// All that can be reached from `from`, itself too, without passing `end`; backwards: all that leads there.
    std::set<std::uint32_t> reach(std::uint32_t from, std::optional<std::uint32_t> end, bool backwards) {
        std::set<std::uint32_t> seen{from};
        std::vector<std::uint32_t> waiting{from};
        const std::vector<std::uint32_t>& all = by_function_[list_[from]->function];
        std::vector<std::uint32_t> anywhere;
        if (backwards)
            for (const std::uint32_t n : all)
                if (may_lead_anywhere(*list_[n])) anywhere.push_back(n);
        bool jumps = false;
        const auto add = [&](const std::vector<std::uint32_t>& numbers) {
            for (const std::uint32_t n : numbers)
                if (n != end && seen.insert(n).second) waiting.push_back(n);
        };
        if (backwards) add(anywhere);
        while (!waiting.empty()) {
            const Code& code = *list_[waiting.back()];
            waiting.pop_back();
            add(backwards ? code.prev : code.next);
            if (!backwards && !jumps && may_lead_anywhere(code)) {
                jumps = true;
                add(all);
            }
            work_ += 1 + (backwards ? code.prev : code.next).size();
        }
        return seen;
    }

    /// Whoever was seen to call a function, itself or through others.
    const std::set<Index>& callers_of(Index function) {
        const auto [at, fresh] = callers_.try_emplace(function);
        if (fresh)
            for (const CallNode& node : a_.calls) {
                if (node.function != function) continue;
                for (Index up = node.parent; up != none; up = a_.calls[up].parent) {
                    at->second.insert(a_.calls[up].function);
                    ++work_;
                }
            }
        return at->second;
    }

    /// All of these functions, and of those they may go to: none of it was observed. True if that may be anything.
    bool suspect(std::vector<CodeFunction> waiting) {
        while (!waiting.empty()) {
            const CodeFunction function = waiting.back();
            waiting.pop_back();
            if (!suspected_.insert(function).second) continue;
            for (const std::uint32_t n : by_function_[function]) {
                Code& code = *list_[n];
                code.unobserved = true;
                ++work_;
                const isa::Instruction& i = code.what;
                if (i.waypoint == isa::Waypoint::direct)
                    waiting.push_back(function_at(i.target.value));
                else if (i.waypoint == isa::Waypoint::indirect && !i.function_return && !i.exception_return)
                    return true;
            }
        }
        return false;
    }

    [[nodiscard]] static bool is_damaged(const Troubles& t) {
        const auto any = [](const auto& troubles) {
            return std::any_of(troubles.begin(), troubles.end(), [](const Trouble& one) { return one.times != 0; });
        };
        auto gaps = t.gaps;
        for (const GapReason harmless : {GapReason::unsynchronised, GapReason::padding, GapReason::incomplete_packet})
            gaps[static_cast<std::size_t>(harmless)] = {};
        return t.overflows.times != 0 || any(gaps) || any(t.contradictions);
    }

    void find_unobserved() {
        std::set<Loss> losses;
        bool everything = options_.partial;
        for (const FlowStream& s : streams_)
            for (const FlowCounts* counts : s.sink->counts()) {
                losses.insert(counts->losses().begin(), counts->losses().end());
                everything |= counts->losses_left_out != 0;
            }
        const auto mark = [&](const auto& numbers) {
            for (const std::uint32_t n : numbers) list_[n]->unobserved = true;
        };
        // Trace that was never written is no damage: flow comes back where the unit was programmed to.
        const bool damaged = std::any_of(streams_.begin(), streams_.end(),
                                         [](const FlowStream& s) { return is_damaged(s.sink->troubles()); });
        // What was called and left again unseen leaves no sign; only where flow came back elsewhere is a whole function
        // suspected.
        const bool suspected = everything || std::any_of(losses.begin(), losses.end(), [](const Loss& loss) {
                                   return loss.how != Loss::From::unknown && loss.regained && !loss.inside;
                               });
        if (suspected)
            for (const CodeFunction& function : never_entered_) mark(by_function_[function]);
        std::map<Index, CodeFunction> by_index;
        for (const auto& [function, index] : functions_) by_index[index] = function;
        for (const Loss& loss : losses) {
            if (everything || work_ > most_work) break;
            if (loss.how == Loss::From::place && loss.regained && loss.from == loss.to && !damaged) continue;
            const auto from = loss.how == Loss::From::unknown ? std::nullopt : code_number(loss.from);
            const auto to = loss.regained && (damaged || !loss.inside) ? code_number(loss.to) : std::nullopt;
            std::set<std::uint32_t> forward, back;
            if (from && loss.how == Loss::From::function) {
                const std::vector<std::uint32_t>& all = by_function_[list_[*from]->function];
                forward.insert(all.begin(), all.end());
            } else if (from) {
                forward = reach(*from, to, false);
            }
            if (to) {
                back = reach(*to, {}, true);
                // Itself it was seen, unless something leads back to it.
                const bool itself = std::any_of(list_[*to]->next.begin(), list_[*to]->next.end(),
                                                [&](std::uint32_t n) { return back.contains(n); });
                if (!itself) back.erase(*to);
            }
            // Flow that is seen again elsewhere may have passed through whoever called either; and where trace was
            // lost, also through all that those may call.
            if (loss.how != Loss::From::unknown && loss.regained && (damaged || !loss.inside))
                for (const auto& end : {from, to}) {
                    if (!end) continue;
                    std::vector<CodeFunction> functions{list_[*end]->function};
                    for (const Index caller : callers_of(index_of(functions.front())))
                        if (const auto found = by_index.find(caller); found != by_index.end())
                            functions.push_back(found->second);
                    if (damaged)
                        everything |= suspect(std::move(functions));
                    else
                        for (std::size_t i = 1; i < functions.size(); ++i) mark(by_function_[functions[i]]);
                }
            const bool one = from && to && list_[*from]->function == list_[*to]->function;
            const bool leads =
                one && std::any_of(forward.begin(), forward.end(), [&](std::uint32_t n) { return back.contains(n); });
            if (leads) {
                std::vector<std::uint32_t> between;
                std::set_intersection(forward.begin(), forward.end(), back.begin(), back.end(),
                                      std::back_inserter(between));
                mark(between);
            } else {
                mark(forward);
                mark(back);
            }
        }
        if (everything || work_ > most_work)
            for (Code* code : list_) code->unobserved = true;
    }

    /// The innermost inlined call an address of a file lies in.
    Index inlined_at(File& file, std::uint64_t address, Index function) {
        const Address at{address - file.bias};
        if (file.function == function && file.place.holds(at)) return file.inlined;
        file.place = file.info.inlined(at);
        file.function = function;
        file.inlined = none;
        for (image::InlinedCall& call : file.place.calls) {
            InlinedCall out{file.inlined, function, std::move(call.function), std::move(call.linkage_name), none, 0};
            if (call.at) {
                out.source = source(call.at->file);
                out.line = call.at->line;
                out.discriminator = call.at->discriminator;
            }
            out.declared_line = call.declared_line;
            file.inlined = inlined_.of(std::move(out));
        }
        return file.inlined;
    }

    // ---- instructions, lines, branches, blocks

    [[nodiscard]] static Seen seen(bool happened, bool unobserved) {
        return happened ? Seen::executed : unobserved ? Seen::not_observed : Seen::not_executed;
    }

    void put_code() {
        struct LineSum {
            Seen seen = Seen::not_executed;
            Index function = none;
            std::uint64_t times{};
            Work work;
        };
        std::map<std::pair<Index, std::uint32_t>, LineSum> lines;
        for (std::size_t n = 0; n < list_.size(); ++n) {
            const Code& code = *list_[n];
            const auto& [address, isa] = keys_[n];
            Instruction out;
            out.address = address;
            out.bytes = code.what.bytes;
            out.isa = isa;
            out.seen = seen(code.times != 0, code.unobserved);
            out.function = index_of(code.function);
            out.times = code.times;
            if (options_.cycles) out.costs = {code.times, code.cycles};
            if (File* file = file_at(address)) {
                if (options_.inlined) out.inlined = inlined_at(*file, address, out.function);
                if (const auto line = file->info.line({address - file->bias})) {
                    out.source = source(line->file);
                    out.line = line->line;
                    out.discriminator = line->discriminator;
                    LineSum& sum = lines[{out.source, out.line}];
                    if (sum.function == none) sum.function = out.function;
                    sum.times = std::max(sum.times, code.times);
                    sum.work += {code.times, code.cycles};
                    if (out.seen == Seen::executed || sum.seen == Seen::not_executed) sum.seen = out.seen;
                }
            }
            put_branch(code, out);
            a_.instructions.push_back(std::move(out));
        }
        for (const auto& [place, sum] : lines)
            a_.lines.push_back({place.first, place.second, sum.seen, sum.function, sum.times, costs(sum.work)});
        for (const auto& [key, sum] : blocks_)
            a_.blocks.push_back(
                {key.start, key.bytes, sum.block.instructions, function_index(key.start), sum.times[0] + sum.times[1]});
    }

    void put_branch(const Code& code, const Instruction& at) {
        const isa::Instruction& i = code.what;
        const bool direct = i.waypoint == isa::Waypoint::direct;
        if (!direct && i.waypoint != isa::Waypoint::indirect) return;
        using K = Branch::Kind;
        Branch b;
        b.address = at.address;
        b.target = direct ? i.target.value : 0;
        b.kind = i.link   ? (direct ? K::call : K::indirect_call)
                 : direct ? (i.conditional || code.not_taken != 0 ? K::conditional : K::unconditional)
                 : i.function_return || i.exception_return ? K::function_return
                                                           : K::indirect;
        b.function = at.function;
        b.source = at.source;
        b.line = at.line;
        b.taken = code.taken;
        b.not_taken = code.not_taken;
        b.seen_taken = seen(code.taken != 0, code.unobserved);
        b.seen_not_taken = seen(code.not_taken != 0, code.unobserved);
        a_.branches.push_back(b);
    }

    // ---- loops

    /// Functions that a direct branch joins by going into the middle of one, as parts of one: the first of them.
    void join_functions() {
        std::map<CodeFunction, CodeFunction> joined;
        const auto first = [&](CodeFunction f) {
            for (auto at = joined.find(f); at != joined.end(); at = joined.find(f)) f = at->second;
            return f;
        };
        for (std::uint32_t n = 0; n < list_.size(); ++n) {
            const Code& code = *list_[n];
            if (code.what.waypoint != isa::Waypoint::direct || code.what.link || code.taken == 0) continue;
            const auto to = code_number(code.what.target.value);
            if (!to) continue;
            const CodeFunction &from = code.function, &other = list_[*to]->function;
            if (from == other || from.kind != Kind::symbol || other.kind != Kind::symbol ||
                other.value == code.what.target.value)
                continue;
            const CodeFunction x = first(from), y = first(other);
            if (x != y) joined.emplace(std::max(x, y), std::min(x, y));
        }
        group_.reserve(list_.size());
        for (const Code* code : list_) group_.push_back(joined.empty() ? code->function : first(code->function));
    }

    /// The instruction before a place.
    [[nodiscard]] std::optional<std::uint32_t> number_before(std::uint64_t address) const {
        auto at = std::lower_bound(keys_.begin(), keys_.end(), CodeKey{address, isa::Isa{}});
        while (at != keys_.begin() && address - std::prev(at)->first <= 4) {
            --at;
            const auto n = static_cast<std::uint32_t>(at - keys_.begin());
            if (at->first + list_[n]->what.bytes == address) return n;
        }
        return std::nullopt;
    }

    /// The ways that control went within functions, by `from`. A call leads to the instruction after it.
    void gather_flows() {
        std::vector<std::uint64_t> explained(list_.size());
        const auto add = [&](std::uint32_t from, std::optional<std::uint32_t> to, std::uint64_t times) {
            if (!to || times == 0 || group_[*to] != group_[from]) return;
            flows_.push_back({from, *to, times});
            explained[*to] += times;
        };
        std::vector<std::uint32_t> calls;
        for (std::uint32_t n = 0; n < list_.size(); ++n) {
            const Code& code = *list_[n];
            const isa::Instruction& i = code.what;
            const bool branch = i.waypoint == isa::Waypoint::direct || i.waypoint == isa::Waypoint::indirect;
            if (branch && i.link)
                calls.push_back(n);
            else if (!i.undefined)
                add(n, code_number(keys_[n].first + i.bytes), branch ? code.not_taken : code.times);
            if (i.waypoint == isa::Waypoint::direct && !i.link) add(n, code_number(i.target.value), code.taken);
        }
        for (const Edge& e : a_.edges) {
            const bool call = e.kind == Branch::Kind::call || e.kind == Branch::Kind::indirect_call;
            if (call)
                if (const auto to = code_number(e.to)) called_.insert(*to);
            if (e.kind == Branch::Kind::indirect)
                if (const auto from = code_number(e.from)) add(*from, code_number(e.to), e.times);
        }
        // A longjmp, or an exception of C++, leads from a call to where its function goes on.
        for (const FlowStream& s : streams_)
            for (const FlowCounts* counts : s.sink->counts())
                for (std::size_t i = 0; i < counts->resumptions().size(); ++i) {
                    const Resumption& how = counts->resumptions()[i];
                    const auto from = how.interrupted ? code_number(how.from) : number_before(how.from);
                    if (from) add(*from, code_number(how.to), counts->resumption_times()[i]);
                }
        // Calls that did not return led nowhere.
        for (const std::uint32_t n : calls) {
            if (list_[n]->not_taken != 0)
                add(n, code_number(keys_[n].first + list_[n]->what.bytes), list_[n]->not_taken);
        }
        for (const std::uint32_t n : calls) {
            const auto next = code_number(keys_[n].first + list_[n]->what.bytes);
            if (!next) continue;
            const auto lost = lost_at_.find(keys_[*next].first);
            const std::uint64_t times = list_[*next]->times + (lost == lost_at_.end() ? 0 : lost->second);
            const std::uint64_t taken = list_[n]->times - std::min(list_[n]->times, list_[n]->not_taken);
            add(n, next, std::min(taken, times - std::min(times, explained[*next])));
        }
        std::sort(flows_.begin(), flows_.end(), [](const CodeFlow& x, const CodeFlow& y) {
            return std::pair(x.from, x.to) < std::pair(y.from, y.to);
        });
        unexplained_.resize(list_.size());
        for (std::uint32_t n = 0; n < list_.size(); ++n)
            unexplained_[n] = list_[n]->times - std::min(list_[n]->times, explained[n]);
    }
    /// Where flow was lost, and where it came back; ends of streams are among the first.
    void gather_breaks() {
        for (const FlowStream& s : streams_)
            for (const FlowCounts* counts : s.sink->counts()) {
                for (const std::uint64_t end : counts->ends) ++lost_at_[end];
                for (std::size_t i = 0; i < counts->losses().size(); ++i) {
                    const Loss& loss = counts->losses()[i];
                    if (loss.how == Loss::From::place) lost_at_[loss.from] += counts->loss_times()[i];
                    // After a call flow is taken to come back, whatever was lost of the callee.
                    if (loss.regained && !loss.inside && loss.how != Loss::From::unknown)
                        back_[{loss.to, loss.from}] += counts->loss_times()[i];
                }
            }
    }

    /// Loops of the functions that make one group, whose instructions these are.
    void put_loops(const std::vector<std::uint32_t>& all) {
        const auto own = [&](std::uint32_t n) {
            return static_cast<std::uint32_t>(std::lower_bound(all.begin(), all.end(), n) - all.begin());
        };
        LoopCode code{.instructions = static_cast<std::uint32_t>(all.size())};
        auto flow = std::lower_bound(flows_.begin(), flows_.end(), all.front(),
                                     [](const CodeFlow& f, std::uint32_t n) { return f.from < n; });
        bool back = false;
        for (std::uint32_t i = 0; i < all.size(); ++i) {
            const std::uint32_t n = all[i];
            if (unexplained_[n] != 0) {
                const bool begins =
                    list_[n]->function.kind != Kind::section && list_[n]->function.value == keys_[n].first;
                (begins || called_.contains(n) ? code.begins : code.resumes).push_back(i);
            }
            while (flow != flows_.end() && flow->from < n) ++flow;
            for (; flow != flows_.end() && flow->from == n; ++flow) {
                code.flows.push_back({i, own(flow->to), flow->times});
                back |= flow->to <= n;
            }
        }
        if (!back) return;
        const CodeLoops found = find_loops(code);
        std::vector<Work> work(found.loops.size());
        for (std::uint32_t i = 0; i < all.size(); ++i)
            if (const std::uint32_t loop = found.innermost[i]; loop != no_loop)
                work[loop] += {list_[all[i]]->times, list_[all[i]]->cycles};
        for (std::size_t i = 0; i < found.loops.size(); ++i) {
            const CodeLoop& loop = found.loops[i];
            if (loop.outer != no_loop) work[loop.outer] += work[i];
            const std::uint32_t head = all[loop.head];
            Loop out{keys_[head].first, keys_[all[loop.tail]].first};
            const Instruction& at = a_.instructions[head];
            out.function = at.function;
            out.source = at.source;
            out.line = at.line;
            out.iterations = at.times;
            out.entries = entries(found, static_cast<std::uint32_t>(i), all);
            // It ran, so it was begun, if only before the trace was.
            if (out.iterations != 0) out.entries = std::max<std::uint64_t>(out.entries, 1);
            out.costs = costs(work[i]);
            out.depth = loop.depth;
            out.irreducible = loop.irreducible;
            if (loop.outer != no_loop) out.outer = keys_[all[found.loops[loop.outer].head]].first;
            a_.loops.push_back(std::move(out));
        }
    }
    /// Control came to where a loop is entered, and did not come from the loop. Where flow was lost it came there too,
    /// though that did not run; where it came back, it came from where it was lost.
    [[nodiscard]] std::uint64_t entries(const CodeLoops& found, std::uint32_t loop,
                                        const std::vector<std::uint32_t>& all) const {
        std::uint64_t came = 0, from_inside = found.loops[loop].inside;
        for (const std::uint32_t entry : found.loops[loop].entries) {
            const std::uint64_t address = keys_[all[entry]].first;
            came += list_[all[entry]]->times;
            if (const auto lost = lost_at_.find(address); lost != lost_at_.end()) came += lost->second;
            for (auto at = back_.lower_bound({address, 0}); at != back_.end() && at->first.first == address; ++at) {
                const auto from = code_number(at->first.second);
                if (!from) continue;
                const auto place = std::lower_bound(all.begin(), all.end(), *from);
                if (place != all.end() && *place == *from &&
                    found.contains(loop, static_cast<std::uint32_t>(place - all.begin())))
                    from_inside += at->second;
            }
        }
        return came - std::min(came, from_inside);
    }

    void fill_loops() {
        join_functions();
        gather_breaks();
        gather_flows();
        std::map<CodeFunction, std::vector<std::uint32_t>> groups;
        for (std::uint32_t n = 0; n < list_.size(); ++n) groups[group_[n]].push_back(n);
        for (const auto& [group, all] : groups) put_loops(all);
        std::sort(a_.loops.begin(), a_.loops.end(), [](const Loop& x, const Loop& y) {
            return std::tuple(x.head, !x.irreducible, x.function) < std::tuple(y.head, !y.irreducible, y.function);
        });
    }

    void fill_trust() {
        Trust functions{.view = "functions", .exact = "instructions and calls of all that was decoded"};
        if (options_.cycles)
            functions.estimated =
                "cycles of single instructions, lines and inlined calls: the trace counts cycles of blocks";
        const bool lost = std::any_of(streams_.begin(), streams_.end(), [](const FlowStream& s) {
            return is_damaged(s.sink->troubles()) || s.sink->troubles().no_memory.times != 0;
        });
        if (lost) functions.not_known = "what ran where flow was lost";
        const std::string part = "what ran outside the part of the run that was captured";
        if (options_.partial) functions.not_known += (lost ? ", and " : "") + part;
        a_.trust.push_back(functions);
        if (options_.instructions)
            a_.trust.push_back({"coverage", "what was executed, and which way branches went", "",
                                options_.partial ? "whether the rest ran: " + part + " could have run all of it"
                                                 : "what is not observed: flow was lost where it could have run"});
        if (a_.timeline.tracks.empty()) return;
        Trust time{.view = "timeline"};
        if (a_.timeline.axis.unit == "ns" || a_.timeline.axis.unit == "ticks") {
            time.exact = "times of timestamps";
            time.estimated = fmt::format("what lies between two, which is at most {} {}",
                                         grouped(a_.timeline.axis.uncertainty), a_.timeline.axis.unit);
        } else {
            time.exact = "the order of what ran in one source";
            time.not_known = "how sources lie to each other in time: there are no timestamps";
        }
        a_.trust.push_back(time);
    }

    Answers& a_;
    const std::vector<FlowStream>& streams_;
    const FlowAnswersOptions& options_;
    InlinedTable inlined_;
    std::vector<File> files_;
    std::map<std::string, Index> images_, sources_;
    SyntheticTable named_;
    std::map<BlockKey, BlockSum> blocks_;
    std::set<std::uint64_t> entries_;
    std::vector<std::uint64_t> starts_;
    std::vector<Region> regions_;
    AddressRanges file_ranges_, region_ranges_;
    std::map<CodeFunction, Index> functions_;
    std::vector<Node> nodes_;
    std::map<CodeKey, Code> code_;
    std::vector<Code*> list_;    // code_, by number
    std::vector<CodeKey> keys_;  // of the same
    std::map<CodeFunction, std::vector<std::uint32_t>> by_function_;
    std::set<CodeFunction> never_entered_;
    std::map<Index, std::set<Index>> callers_;
    std::set<CodeFunction> suspected_;
    std::uint64_t work_ = 0;
    std::vector<CodeFlow> flows_;
    std::vector<CodeFunction> group_;                 // by instruction: the first function of those that make one
    std::set<std::uint32_t> called_;                  // instructions that were called
    std::vector<std::uint64_t> unexplained_;          // times an instruction ran without one of these
    std::map<std::uint64_t, std::uint64_t> lost_at_;  // by address: times
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> back_;  // by address, and where it was lost
};

}  // namespace

void fill_flow_answers(Answers& answers, const std::vector<FlowStream>& streams, const FlowAnswersOptions& options) {
    Filler(answers, streams, options).run();
}

}  // namespace waymark::analysis
