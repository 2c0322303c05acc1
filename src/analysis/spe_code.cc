/// Assigns samples to code: the place of each sample in its file, and the targets of branches.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "spe_fill.h"

namespace waymark::analysis {

using namespace answers;

namespace {

using Severity = Finding::Severity;

constexpr std::size_t cost_count = 5;
Costs costs_of(const Measures& m) { return {m.samples, m.total, m.translation, m.llc_misses, m.mispredicts}; }

Branch::Kind kind_of(std::uint8_t operation_type) {
    const spe::Operation o = spe::operation(spe::OperationClass::branch, operation_type);
    using Call = spe::Operation::Call;
    if (o.call == Call::procedure_return) return Branch::Kind::function_return;
    if (o.call == Call::call) return o.indirect ? Branch::Kind::indirect_call : Branch::Kind::call;
    if (o.indirect) return Branch::Kind::indirect;
    return o.conditional ? Branch::Kind::conditional : Branch::Kind::unconditional;
}

/// Translates addresses of samples to places in files.
class SampledCode {
public:
    explicit SampledCode(SpeFill& fill) : fill_(fill), sources_(fill.out) {}

    void run() {
        std::vector<std::pair<PlaceRow, Measures>> places;
        for (std::size_t i = 0; i < fill_.gathered.profile.places().size(); ++i) {
            const SampledPlace& p = fill_.gathered.profile.places()[i];
            places.emplace_back(place(p.mapping, p.pc), fill_.gathered.profile.measures()[i]);
            if (fill_.options.inlined) places.back().first.chain = chain(p.mapping, p.pc);
        }
        std::vector<Pair> pairs;
        for (std::size_t i = 0; i < fill_.gathered.branches.pairs().size(); ++i) {
            const BranchPair& p = fill_.gathered.branches.pairs()[i];
            Pair pair{place(p.mapping, p.from), {}, p.has_target, p.operation_type, fill_.gathered.branches.sums()[i]};
            if (p.has_target) pair.to = place(fill_.program.mapping_beside(p.mapping, p.to), p.to);
            pairs.push_back(pair);
        }
        number_functions();
        sort_sources(places, pairs);
        add_instructions(places);
        add_branches(pairs);
    }

private:
    /// A place in a file.
    struct PlaceRow {
        std::uint32_t file{}, function{};
        std::uint64_t address{};
        Index source = none;
        std::uint32_t line{}, discriminator{};
        std::vector<InlinedCall> chain{};  // the outermost first; parents and function are filled in later
        [[nodiscard]] auto key() const { return std::tuple(file, address, function); }
    };

    /// A branch and its target.
    struct Pair {
        PlaceRow from, to;
        bool has_target{};
        std::uint8_t type{};
        BranchSum sum;
    };
    struct Begin {
        Index source = none;
        std::uint32_t line{};
    };
    using Places = std::vector<std::pair<PlaceRow, Measures>>;

    [[nodiscard]] std::vector<InlinedCall> chain(std::uint32_t mapping, std::uint64_t pc) {
        std::vector<InlinedCall> out;
        for (image::InlinedCall& call : fill_.program.inlined(mapping, pc)) {
            InlinedCall& one =
                out.emplace_back(InlinedCall{none, none, std::move(call.function), std::move(call.linkage_name)});
            one.declared_line = call.declared_line;
            if (!call.at) continue;
            one.source = sources_.of(call.at->file);
            one.line = call.at->line;
            one.discriminator = call.at->discriminator;
        }
        return out;
    }

    [[nodiscard]] PlaceRow place(std::uint32_t mapping, std::uint64_t pc) {
        const Program::Code code = fill_.program.find(mapping, pc);
        PlaceRow out{code.file, code.function, code.address ? code.address->value : pc, none, 0};
        if (const auto line = fill_.program.line(mapping, pc)) {
            out.source = sources_.of(line->file);
            out.line = line->line;
            out.discriminator = line->discriminator;
        }
        const auto [at, fresh] = found_.try_emplace(code.function);
        if (fresh && code.address && !fill_.program.function(code.function).name.empty()) {
            const std::uint64_t begin =
                pc - (code.address->value - fill_.program.function(code.function).address.value);
            // The first instruction may belong to a function that was inlined there, so that its line is in other code.
            const auto declared = fill_.program.declared(code.function);
            if (const auto line = declared ? std::optional(declared->at) : fill_.program.line(mapping, begin)) {
                at->second.source = sources_.of(line->file);
                at->second.line = line->line;
            }
        }
        return out;
    }

    static void add(Costs& to, const Costs& costs) {
        to.resize(cost_count);
        for (std::size_t i = 0; i < cost_count; ++i) to[i] += costs[i];
    }

    /// Images and functions by name and address: Program numbers them in the order of first use, which differs from run
    /// to run.
    void number_functions() {
        std::vector<std::uint32_t> files;
        for (const auto& [number, where] : found_) files.push_back(fill_.program.function(number).file);
        std::sort(files.begin(), files.end(), [&](std::uint32_t a, std::uint32_t b) {
            const auto key = [&](std::uint32_t f) {
                return std::tie(fill_.program.file(f).name, fill_.program.file(f).build_id);
            };
            return key(a) < key(b);
        });
        files.erase(std::unique(files.begin(), files.end()), files.end());
        for (const std::uint32_t f : files) {
            const Program::File& file = fill_.program.file(f);
            image_[f] = static_cast<Index>(fill_.out.images.size());
            std::string id;
            for (const std::uint8_t byte : file.build_id) id += fmt::format("{:02x}", byte);
            fill_.out.images.push_back({std::string(Program::short_name(file.name)), file.path, id});
            if (!file.path.empty())
                if (const auto info = image::DebugInfo::open(file.path))
                    for (const image::DebugInfo::Segment& s : info->segments())
                        fill_.out.images.back().segments.push_back({s.address.value, s.offset, s.bytes, s.executable});
            if (!file.symbols && !file.problem.empty())
                fill_.say(Severity::note, fmt::format("No names for {}: {}", file.name, file.problem));
        }
        std::vector<std::uint32_t> functions;
        for (const auto& [number, where] : found_) functions.push_back(number);
        std::sort(functions.begin(), functions.end(), [&](std::uint32_t a, std::uint32_t b) {
            const auto key = [&](std::uint32_t n) {
                const Program::Function& f = fill_.program.function(n);
                return std::tuple(image_[f.file], f.address.value, std::string_view(f.name));
            };
            return key(a) < key(b);
        });
        for (const std::uint32_t n : functions) {
            const Program::Function& f = fill_.program.function(n);
            function_[n] = static_cast<Index>(fill_.out.functions.size());
            Function function;
            function.name = fill_.program.function_text(n);
            function.linkage_name = f.linkage_name;
            function.image = image_[f.file];
            function.address = f.address.value;
            function.source = found_[n].source;
            function.line = found_[n].line;
            if (fill_.options.inlined)
                if (auto declared = fill_.program.declared(n)) {
                    function.declared_name = std::move(declared->linkage_name);
                    function.declared_source = sources_.of(declared->at.file);
                    function.declared_line = declared->at.line;
                    function.by_llvm = declared->by_llvm;
                }
            fill_.out.functions.push_back(std::move(function));
        }
    }

    /// Sources by path, for the same reason.
    void sort_sources(Places& places, std::vector<Pair>& pairs) {
        std::vector<Index> order(fill_.out.sources.size()), number(fill_.out.sources.size());
        for (Index i = 0; i < order.size(); ++i) order[i] = i;
        std::sort(order.begin(), order.end(),
                  [&](Index a, Index b) { return fill_.out.sources[a].path < fill_.out.sources[b].path; });
        std::vector<SourceFile> sorted;
        for (Index i = 0; i < order.size(); ++i) {
            number[order[i]] = i;
            sorted.push_back(std::move(fill_.out.sources[order[i]]));
        }
        fill_.out.sources = std::move(sorted);
        const auto renumber = [&](Index& source) {
            if (source != none) source = number[source];
        };
        for (auto& [p, m] : places) {
            renumber(p.source);
            for (InlinedCall& call : p.chain) renumber(call.source);
        }
        for (auto& pair : pairs) {
            renumber(pair.from.source);
            renumber(pair.to.source);
        }
        for (Function& f : fill_.out.functions) {
            renumber(f.source);
            renumber(f.declared_source);
        }
    }

    void add_instructions(Places& places) {
        std::map<std::tuple<std::uint64_t, Index, Index>, Instruction> instructions;
        std::map<std::tuple<std::uint64_t, Index, Index>, std::vector<InlinedCall>> chains;
        for (auto& [p, m] : places) {
            const Index function = function_[p.function];
            Instruction& at = instructions[{p.address, image_[p.file], function}];
            at.address = p.address;
            at.bytes = 4;
            at.isa = isa::Isa::a64;
            at.function = function;
            at.source = p.source;
            at.line = p.line;
            at.discriminator = p.discriminator;
            add(at.costs, costs_of(m));
            if (!p.chain.empty()) chains[{p.address, image_[p.file], function}] = std::move(p.chain);
        }
        InlinedTable inlined(fill_.out);
        for (auto& [key, calls] : chains) {
            Instruction& at = instructions[key];
            for (InlinedCall& call : calls) {
                call.parent = at.inlined;
                call.function = at.function;
                at.inlined = inlined.of(std::move(call));
            }
        }
        if (fill_.gathered.profile.rest().samples != 0) {
            Instruction rest;
            rest.isa = isa::Isa::a64;
            rest.function = fill_.synthetic.of("[further addresses]");
            rest.costs = costs_of(fill_.gathered.profile.rest());
            instructions[{~std::uint64_t{0}, none, rest.function}] = rest;
        }
        std::map<std::pair<Index, std::uint32_t>, Line> lines;
        for (auto& [key, instruction] : instructions) {
            if (instruction.source != none) {
                Line& line = lines[{instruction.source, instruction.line}];
                if (line.function == none) line.function = instruction.function;
                line.source = instruction.source;
                line.line = instruction.line;
                add(line.costs, instruction.costs);
            }
            fill_.out.instructions.push_back(std::move(instruction));
        }
        for (auto& [key, line] : lines) fill_.out.lines.push_back(std::move(line));
    }

    void add_branches(std::vector<Pair>& pairs) {
        std::map<std::tuple<std::uint64_t, Index, Index>, Branch> branches;
        std::map<std::tuple<std::uint64_t, std::uint64_t, Index, Index>, Edge> edges;
        std::sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) {
            return std::tuple(a.from.key(), a.type, a.to.key()) < std::tuple(b.from.key(), b.type, b.to.key());
        });
        for (const Pair& p : pairs) {
            const Index function = function_[p.from.function];
            const auto [at, fresh] = branches.try_emplace({p.from.address, image_[p.from.file], function});
            Branch& b = at->second;
            if (fresh) {
                b.address = p.from.address;
                b.kind = kind_of(p.type);
                b.function = function;
                b.source = p.from.source;
                b.line = p.from.line;
                b.mispredicted = 0;
                b.seen_taken = b.seen_not_taken = Seen::not_observed;
            }
            b.taken += p.sum.taken();
            b.not_taken += p.sum.not_taken;
            *b.mispredicted += p.sum.mispredicts;
            if (p.sum.taken() != 0) b.seen_taken = Seen::executed;
            if (p.sum.not_taken != 0) b.seen_not_taken = Seen::executed;
            if (!p.has_target) continue;
            const bool direct = b.kind == Branch::Kind::conditional || b.kind == Branch::Kind::unconditional ||
                                b.kind == Branch::Kind::call;
            if (direct && p.sum.taken() != 0) b.target = p.to.address;
            const Index to = function_[p.to.function];
            Edge& e = edges[{p.from.address, p.to.address, function, to}];
            e.from = p.from.address;
            e.to = p.to.address;
            e.from_function = function;
            e.to_function = to;
            e.kind = b.kind;
            e.times += p.sum.samples;
        }
        for (auto& [key, branch] : branches) fill_.out.branches.push_back(branch);
        for (auto& [key, edge] : edges) fill_.out.edges.push_back(std::move(edge));
    }

    SpeFill& fill_;
    SourceTable sources_;
    std::map<std::uint32_t, Begin> found_;             // functions of Program that have samples or are branch targets
    std::map<std::uint32_t, Index> function_, image_;  // of Program's numbers
};

}  // namespace

void fill_sample_code(SpeFill& fill) { SampledCode(fill).run(); }

}  // namespace waymark::analysis
