#include "waymark/exports/autofdo.h"

#include <algorithm>
#include <map>
#include <set>

#include "look_up.h"
#include "writer.h"

namespace waymark::exports {

namespace {

using analysis::Answers;
using analysis::Branch;
using analysis::Edge;
using analysis::Index;
using analysis::Instruction;

/// What is known of a line of a function.
struct Body {
    std::uint64_t samples{};
    std::map<std::string, std::uint64_t> callees;  // by name, as the format wants them told apart
};

/// How often an instruction ran: exactly, or by samples.
std::uint64_t weight(const Instruction& i) { return i.times != 0 ? i.times : cost_of(i, 0); }

/// Line of each function, and where the next of its file begins: lines beyond are inlined ones.
class Extents {
public:
    explicit Extents(const Answers& a) : answers_(a) {
        for (const analysis::Function& f : a.functions)
            if (f.line != 0 && !f.synthetic && f.source < a.sources.size()) begins_[f.source].insert(f.line);
    }
    [[nodiscard]] bool is_own(const Instruction& i) const {
        const analysis::Function& f = answers_.functions[i.function];
        if (i.source != f.source || i.line < f.line) return false;
        const auto& begins = begins_.at(f.source);
        const auto next = begins.upper_bound(f.line);
        return next == begins.end() || i.line < *next;
    }

private:
    const Answers& answers_;
    std::map<Index, std::set<std::uint32_t>> begins_;
};

}  // namespace

Result<ExportReport> write_autofdo(const Answers& answers, ByteSink& sink) {
    const Extents extents(answers);
    std::vector<std::map<std::uint32_t, Body>> bodies(answers.functions.size());
    std::uint64_t all = 0, own = 0;
    const auto body_of = [&](const Instruction& i) -> Body* {
        const analysis::Function* f = function_at(answers, i.function);
        if (f == nullptr || f->synthetic || f->line == 0 || f->source >= answers.sources.size() || i.line == 0 ||
            !extents.is_own(i))
            return nullptr;
        return &bodies[i.function][i.line - f->line];
    };
    for (const Instruction& i : answers.instructions) {
        if (weight(i) == 0) continue;
        all += weight(i);
        if (Body* body = body_of(i)) {
            body->samples = std::max(body->samples, weight(i));
            own += weight(i);
        }
    }
    if (own == 0) return Error{Errc::not_found, lacks_lines(answers)};
    for (const Edge& e : answers.edges) {
        if (e.kind != Branch::Kind::call && e.kind != Branch::Kind::indirect_call) continue;
        const Instruction* from = instruction_at(answers, e.from);
        Body* body = from == nullptr || weight(*from) == 0 ? nullptr : body_of(*from);
        if (body != nullptr && function_at(answers, e.to_function) != nullptr && e.times != 0)
            body->callees[one_line(linkage_name(answers, e.to_function))] += e.times;
    }
    const auto entries = function_entries(answers);
    std::vector<std::uint64_t> totals(bodies.size());
    std::vector<Index> order;
    for (Index i = 0; i < bodies.size(); ++i) {
        for (const auto& [line, body] : bodies[i]) totals[i] += body.samples;
        if (totals[i] != 0) order.push_back(i);
    }
    // The hottest first, as the compiler's own tools write them.
    std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return totals[a] > totals[b]; });
    Writer out(sink);
    for (const Index i : order) {
        out.print("{}:{}:{}\n", one_line(linkage_name(answers, i)), totals[i], entries[i]);
        for (const auto& [offset, body] : bodies[i]) {
            constexpr std::uint32_t most = 0xffff;  // what the format keeps of an offset
            out.print(" {}: {}", offset & most, body.samples);
            for (const auto& [name, times] : body.callees) out.print(" {}:{}", name, times);
            out.write("\n");
        }
    }
    ExportReport report;
    report.bytes = out.finish();
    report.notes.push_back(fmt::format("{} with samples, and {:.1f}% of all executions in them",
                                       counted(order.size(), "function"),
                                       100.0 * static_cast<double>(own) / static_cast<double>(all)));
    if (own != all)
        report.notes.push_back(
            "left out: executions of inlined lines and of code without lines, whose callers' lines "
            "are not known");
    return report;
}

}  // namespace waymark::exports
