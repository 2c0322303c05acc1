#include "waymark/analysis/flow_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "waymark/analysis/program.h"

namespace waymark::analysis {

namespace {

using Kind = CodeFunction::Kind;

std::string_view exception_name(std::uint32_t number) {
    constexpr std::array<std::string_view, 16> names{"",
                                                     "Debug state entry",
                                                     "SMC",
                                                     "Hyp mode entry",
                                                     "asynchronous Data Abort",
                                                     "ThumbEE check failed",
                                                     "",
                                                     "",
                                                     "processor reset",
                                                     "Undefined Instruction",
                                                     "SVC",
                                                     "Prefetch Abort or breakpoint",
                                                     "synchronous Data Abort or watchpoint",
                                                     "generic",
                                                     "IRQ",
                                                     "FIQ"};
    return number < names.size() ? names[number] : "";
}
std::string exception_text(std::uint64_t number) {
    const std::string_view known = exception_name(static_cast<std::uint32_t>(number));
    return known.empty() ? fmt::format("exception {}", number) : std::string(known);
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
        : a_(answers), streams_(streams), options_(options) {}

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
    };
    void open_files() {
        for (const ProgramFile& f : options_.files) {
            auto info = image::DebugInfo::open(f.path);
            if (!info) continue;
            const Index image = image_of(std::string(Program::short_name(f.path)));
            a_.images[image].path = f.path;
            for (const std::uint8_t byte : info->build_id()) a_.images[image].build_id += fmt::format("{:02x}", byte);
            files_.push_back({std::move(*info), f.load_bias, image});
        }
    }
    Index image_of(const std::string& name) {
        const auto [at, fresh] = images_.try_emplace(name, static_cast<Index>(a_.images.size()));
        if (fresh) a_.images.push_back({name});
        return at->second;
    }
    File* file_at(std::uint64_t address) {
        for (File& f : files_)
            if (f.info.holds({address - f.bias})) return &f;
        return nullptr;
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
        for (const FlowStream& s : streams_) {
            const image::MemoryMap& memory = s.sink->code().memory();
            for (const image::Region& r : memory.regions())
                if (!r.shadowed_by && address >= r.address.value && address - r.address.value < r.bytes)
                    return section_image(memory, r.section);
        }
        return none;
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

    [[nodiscard]] const image::Region* region_at(std::uint64_t address) {
        if (regions_.empty())
            for (const FlowStream& s : streams_)
                for (const image::Region& r : s.sink->code().memory().regions())
                    if (!r.shadowed_by) regions_.push_back(r);
        for (const image::Region& r : regions_)
            if (address >= r.address.value && address - r.address.value < r.bytes) return &r;
        return nullptr;
    }

    /// Whose code an address is.
    CodeFunction function_at(std::uint64_t address) {
        if (const auto found = symbols().find({address})) return {Kind::symbol, found->symbol.address.value};
        const image::Region* region = region_at(address);
        const std::uint64_t begin = region == nullptr ? 0 : region->address.value;
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
            case Kind::entry: out.name = fmt::format("{:#010x}", f.value); break;
            case Kind::section: {
                out.image = image_at(f.value);
                out.name = out.image == none ? "[unknown]" : "(no symbol) in " + a_.images[out.image].name;
                return out;
            }
            case Kind::exception:
                out.name = fmt::format("[exception: {}]", exception_text(f.value));
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
            if (const auto line = file->info.line({f.value - file->bias})) {
                out.source = source(line->file);
                out.line = line->line;
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
    Index named(std::string name) {
        const auto [at, fresh] = named_.try_emplace(name, static_cast<Index>(a_.functions.size()));
        if (fresh) {
            Function f;
            f.name = std::move(name);
            f.synthetic = true;
            a_.functions.push_back(std::move(f));
        }
        return at->second;
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
            const std::size_t top =
                sources.size() > 1 ? node_below(0, CallNode::Kind::root, named(s.source)) : std::size_t{0};
            const std::vector<CodeFunction> known = s.sink->code().functions();
            for (const FlowCalls::Tree& tree : s.sink->calls().trees()) {
                if (!worth(tree.tree)) continue;
                add_tree(tree.tree, known,
                         contexts[s.source].size() > 1
                             ? node_below(top, CallNode::Kind::root, named(context_text(tree.key)))
                             : top);
            }
        }
        put_nodes();
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
        for (const auto& [key, sum] : sums) {
            const auto& [from, to, kind] = key;
            if (sum.first == 0) continue;
            const bool call = kind == Branch::Kind::call || kind == Branch::Kind::indirect_call;
            const bool known = call && streams_.front().sink->options().calls;
            a_.edges.push_back({from, to, function_index(from), function_index(to), kind, sum.first,
                                known ? costs(sum.second) : Costs{}});
        }
    }

    void fill_exceptions() {
        std::map<std::uint32_t, ExceptionSum> sums;
        for (const FlowStream& s : streams_)
            for (const FlowCounts* counts : s.sink->counts())
                for (const auto& [number, e] : counts->exceptions) {
                    ExceptionSum& sum = sums[number];
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
        for (const auto& [number, e] : sums) {
            ExceptionRow row{.name = exception_text(number), .number = number, .times = e.times, .nested = e.nested};
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

    Answers& a_;
    const std::vector<FlowStream>& streams_;
    const FlowAnswersOptions& options_;
    std::vector<File> files_;
    std::map<std::string, Index> images_, sources_, named_;
    std::map<BlockKey, BlockSum> blocks_;
    std::set<std::uint64_t> entries_;
    std::vector<std::uint64_t> starts_;
    std::vector<image::Region> regions_;
    std::map<CodeFunction, Index> functions_;
    std::vector<Node> nodes_;
};

}  // namespace

void fill_flow_answers(Answers& answers, const std::vector<FlowStream>& streams, const FlowAnswersOptions& options) {
    Filler(answers, streams, options).run();
}

}  // namespace waymark::analysis
