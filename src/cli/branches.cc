/// `waymark branches`: how often each branch went either way.
#include <algorithm>
#include <tuple>

#include "only.h"
#include "views.h"

namespace waymark::cli {

namespace {

using analysis::Answers;
using analysis::Branch;

std::uint64_t times_of(const Branch& b) { return b.taken + b.not_taken; }
bool is_one_sided(const Branch& b) {
    return b.kind == Branch::Kind::conditional && (b.taken == 0) != (b.not_taken == 0);
}

/// Of an outcome: how often, or why it is 0.
Cell outcome(std::uint64_t times, analysis::Seen seen, bool possible) {
    if (!possible && times == 0) return {};
    Cell cell(times);
    if (times == 0 && seen == analysis::Seen::not_observed) cell.shown = "0?";
    return cell.in(times != 0 ? Colour::plain : Colour::yellow);
}

}  // namespace

Status show_branches(const Answers& answers, const BranchOptions& options, Output& out) {
    const bool samples = answers.unit == "SPE";
    Only only({});
    if (!options.function.empty()) only = Only({options.function});
    for (const analysis::Function& f : answers.functions) only.add(f);
    if (const std::string unknown = only.unknown("function"); !unknown.empty() && !answers.branches.empty()) {
        say("error", fmt::format("--function: {}: {}", answers.capture, unknown));
        return nothing;
    }
    std::vector<const Branch*> rows;
    std::uint64_t all = 0, mispredicted = 0;
    for (const Branch& b : answers.branches) {
        if (times_of(b) == 0) continue;
        if (!only.empty() && (b.function >= answers.functions.size() || !only.asks_for(answers.functions[b.function])))
            continue;
        if (options.one_sided && !is_one_sided(b)) continue;
        all += times_of(b);
        mispredicted += b.mispredicted.value_or(0);
        rows.push_back(&b);
    }
    if (rows.empty()) {
        say("error", fmt::format("{}: {}", answers.capture,
                                 answers.unit == "DPU" ? "counters do not record branches"
                                 : answers.branches.empty() && samples
                                     ? "no sample is of a branch: were branches filtered out (branch_filter)?"
                                 : answers.branches.empty() ? "no branch of a known image ran"
                                 : options.one_sided        ? "no branch that ran went only one way"
                                                            : "no branch of that function ran"));
        return nothing;
    }
    const bool predictions =
        std::any_of(rows.begin(), rows.end(), [](const Branch* b) { return b->mispredicted.has_value(); });
    const bool by_predictions = options.sort == "mispredicted" && predictions;
    if (options.sort == "mispredicted" && !predictions)
        say_not_sorted(options.sort, "known from samples only", "times");
    std::stable_sort(rows.begin(), rows.end(), [&](const Branch* a, const Branch* b) {
        const auto key = [&](const Branch* x) {
            if (options.sort == "address") return std::uint64_t{0};
            if (by_predictions) return x->mispredicted.value_or(0);
            // The rarer way of those that go both ways tells most of what a predictor cannot know.
            if (options.sort == "balance") return std::min(x->taken, x->not_taken);
            return times_of(*x);
        };
        return std::tuple(key(b), a->address) < std::tuple(key(a), b->address);
    });
    Rows table({{"", by_predictions ? "share of mispredictions" : "share of branches", true},
                {"times", samples ? "samples" : "times"},
                {"taken", "taken"},
                {"not_taken", "not taken"},
                {"taken_share", "taken"},
                {"mispredicted", samples ? "mispredicted" : ""},
                {"mispredicted_share", samples ? "of it" : ""},
                {"kind", "kind", true},
                {"one_sided", ""},
                {"address", "address", true},
                {"target", "target", true},
                {"place", "in", true},
                {"line", "line", true},
                {"file", ""}});
    for (const Branch* b : rows) {
        const bool both = b->kind == Branch::Kind::conditional;
        const std::string line = line_text(answers, b->source, b->line);
        table.add({by_predictions ? Cell::bar(b->mispredicted.value_or(0), mispredicted) : Cell::bar(times_of(*b), all),
                   Cell(times_of(*b)), outcome(b->taken, b->seen_taken, true),
                   outcome(b->not_taken, b->seen_not_taken, both), Cell::share(b->taken, times_of(*b)),
                   b->mispredicted ? Cell(*b->mispredicted) : Cell(),
                   b->mispredicted ? Cell::share(*b->mispredicted, times_of(*b)) : Cell(), Cell(kind_text(b->kind)),
                   Cell(std::string(), is_one_sided(*b) ? "true" : "false"), Cell::hex(b->address),
                   b->target == 0 ? Cell() : Cell::hex(b->target),
                   Cell(place_text(answers, b->function, b->address)).in(Colour::bold),
                   line.empty() ? Cell() : Cell(line).in(Colour::dim),
                   b->source == analysis::none ? Cell() : Cell(path_text(answers, b->source))});
    }
    print_rows(out, answers, options,
               fmt::format("{}{}", samples ? "sampled branches" : "branches",
                           options.one_sided ? " that ran, and only ever one way" : ""),
               table);
    if (options.format == "text") {
        out.print("{} {}", counted(rows.size(), "branch", "branches"),
                  samples ? fmt::format("in {}", counted(all, "sample")) : fmt::format("ran {}", times(all)));
        if (samples) out.print("; {} mispredicted", Cell::share(mispredicted, all).shown);
        out.write("\n");
        if (samples)
            out.write("A sample stands for many operations: what was never sampled may still have happened (0?)\n");
    }
    return decoded;
}

}  // namespace waymark::cli
