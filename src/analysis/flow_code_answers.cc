#include "flow_fill.h"

#include <algorithm>
#include <set>

namespace waymark::analysis {

using namespace answers;

namespace {

/// Fills the tables of instructions, lines, branches and blocks.
class CodeFiller {
public:
    CodeFiller(FlowFunctions& functions, FlowInstructions& code)
        : functions_(functions),
          code_(code),
          a_(functions.answers()),
          options_(functions.options()),
          inlined_(functions.answers()) {}

    void run() {
        struct LineSum {
            Seen seen = Seen::not_executed;
            Index function = none;
            std::uint64_t times{};
            Work work;
        };
        std::map<std::pair<Index, std::uint32_t>, LineSum> lines;
        for (std::size_t n = 0; n < code_.list().size(); ++n) {
            const FlowInstructions::Code& code = *code_.list()[n];
            const auto& [address, isa] = code_.keys()[n];
            Instruction out;
            out.address = address;
            out.bytes = code.what.bytes;
            out.isa = isa;
            out.seen = seen(code.times != 0, code.unobserved || code.before);
            const bool same = n != 0 && code.function == code_.list()[n - 1]->function;
            out.function = same ? a_.instructions.back().function : functions_.index_of(code.function);
            out.times = code.times;
            if (options_.cycles) out.costs = {code.times, code.cycles};
            if (FlowFunctions::File* file = functions_.file_at(address)) {
                if (options_.inlined) out.inlined = inlined_at(*file, address, out.function);
                const auto count = [&](Index source, std::uint32_t line, const Work& work) {
                    LineSum& sum = lines[{source, line}];
                    if (sum.function == none) sum.function = out.function;
                    sum.times = std::max(sum.times, code.times);
                    sum.work += work;
                    if (out.seen == Seen::executed || sum.seen == Seen::not_executed) sum.seen = out.seen;
                };
                if (const auto line = file->info.line({address - file->bias})) {
                    out.source = functions_.source(line->file);
                    out.line = line->line;
                    out.discriminator = line->discriminator;
                    count(out.source, out.line, {code.times, code.cycles});
                }
                std::set<std::pair<Index, std::uint32_t>> others;
                for (const image::SourceLine& line : file->info.statements({address - file->bias}))
                    others.emplace(functions_.source(line.file), line.line);
                others.erase({out.source, out.line});
                for (const auto& [source, line] : others) {
                    a_.statements.push_back({address, out.function, source, line});
                    count(source, line, {});
                }
            }
            put_branch(code, out);
            a_.instructions.push_back(std::move(out));
        }
        for (const auto& [place, sum] : lines)
            a_.lines.push_back(
                {place.first, place.second, sum.seen, sum.function, sum.times, functions_.costs(sum.work)});
        for (const auto& [key, sum] : functions_.blocks())
            a_.blocks.push_back({key.start, key.bytes, sum.block.instructions, functions_.index_at(key.start),
                                 sum.times[0] + sum.times[1]});
    }

private:
    /// The innermost inlined call that contains an address of a file.
    Index inlined_at(FlowFunctions::File& file, std::uint64_t address, Index function) {
        const Address at{address - file.bias};
        if (file.function == function && file.place.holds(at)) return file.inlined;
        file.place = file.info.inlined(at);
        file.function = function;
        file.inlined = none;
        for (image::InlinedCall& call : file.place.calls) {
            InlinedCall out{file.inlined, function, std::move(call.function), std::move(call.linkage_name), none, 0};
            if (call.at) {
                out.source = functions_.source(call.at->file);
                out.line = call.at->line;
                out.discriminator = call.at->discriminator;
            }
            out.declared_line = call.declared_line;
            file.inlined = inlined_.of(std::move(out));
        }
        return file.inlined;
    }

    [[nodiscard]] static Seen seen(bool happened, bool unobserved) {
        return happened ? Seen::executed : unobserved ? Seen::not_observed : Seen::not_executed;
    }

    /// Whether the code at an address may have run. A branch that may have run unseen cannot have led to code that
    /// certainly did not run.
    [[nodiscard]] bool may_have_run(std::uint64_t address) const {
        const auto number = code_.number(address);
        if (!number) return true;
        const FlowInstructions::Code& code = *code_.list()[*number];
        return code.times != 0 || code.unobserved || code.before;
    }

    void put_branch(const FlowInstructions::Code& code, const Instruction& at) {
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
        b.seen_taken =
            seen(code.taken != 0, code.taken_before || (code.unobserved && (!direct || may_have_run(i.target.value))));
        b.seen_not_taken =
            seen(code.not_taken != 0, code.passed_before || (code.unobserved && may_have_run(at.address + at.bytes)));
        a_.branches.push_back(b);
    }

    FlowFunctions& functions_;
    FlowInstructions& code_;
    Answers& a_;
    const FlowAnswersOptions& options_;
    InlinedTable inlined_;
};

}  // namespace

void fill_instructions(FlowFunctions& functions, FlowInstructions& code) { CodeFiller(functions, code).run(); }

}  // namespace waymark::analysis
