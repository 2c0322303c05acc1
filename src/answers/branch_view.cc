/// `waymark branches`: how often each branch went either way.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "columns.h"
#include "waymark/answers/account_effects.h"
#include "waymark/answers/costs.h"
#include "waymark/answers/meanings.h"
#include "waymark/answers/only.h"
#include "waymark/answers/sampled.h"
#include "waymark/answers/schema.h"
#include "waymark/core/numbers.h"

namespace waymark::answers {

namespace {

std::uint64_t times_of(const Branch& b) { return b.taken + b.not_taken; }
bool is_one_sided(const Branch& b) {
    return b.kind == Branch::Kind::conditional && (b.taken == 0) != (b.not_taken == 0);
}

std::string_view kind_text(Branch::Kind kind) { return schema::branches[static_cast<unsigned>(kind)]; }

/// The cell for one outcome of a branch: the count, or the reason why it is 0.
Cell outcome(std::uint64_t times, Seen seen, bool possible) {
    if (!possible && times == 0) return {};
    Cell cell(times);
    if (times == 0 && seen == Seen::not_observed) cell.shown = "0?";
    return cell.in(times != 0 ? Colour::plain : Colour::yellow);
}

}  // namespace

Result<View> branch_view(const Answers& answers, const BranchOptions& options) {
    const bool samples = answers.unit == "SPE";
    Only only({});
    if (!options.function.empty()) only = Only({options.function});
    for (const Function& f : answers.functions) only.add(answers, f);
    if (const std::string unknown = only.unknown("function"); !unknown.empty() && !answers.branches.empty())
        return Error{Errc::not_found, fmt::format("--function: {}: {}", answers.capture, unknown)};
    const Chosen chosen(answers, options.only, options.code);
    if (std::string unknown = chosen.unknown(); !answers.branches.empty() && !unknown.empty())
        return Error{Errc::not_found, std::move(unknown)};
    std::vector<const Branch*> rows;
    // Shares relate to all branches, also with --function and --only.
    std::uint64_t every = 0, every_mispredicted = 0, all = 0, mispredicted = 0;
    for (const Branch& b : answers.branches) {
        if (times_of(b) == 0 || (options.one_sided && !is_one_sided(b))) continue;
        every = saturating(every, times_of(b));
        every_mispredicted = saturating(every_mispredicted, b.mispredicted.value_or(0));
        if (!only.empty() &&
            (b.function >= answers.functions.size() || !only.asks_for(answers, answers.functions[b.function])))
            continue;
        if (!chosen(b.function, b.source)) continue;
        all = saturating(all, times_of(b));
        mispredicted = saturating(mispredicted, b.mispredicted.value_or(0));
        rows.push_back(&b);
    }
    if (rows.empty())
        return Error{Errc::not_found,
                     fmt::format("{}: {}", answers.capture,
                                 answers.unit == "DPU" ? "counters do not record branches"
                                 : samples && answers.branches.empty()
                                     ? "no sample is a branch: were branches excluded by a filter (branch_filter)?"
                                 : of_messages(answers)     ? "messages do not show branches"
                                 : of_samples(answers)      ? "samples of the program counter do not show branches"
                                 : answers.branches.empty() ? "no branch of a known image was seen"
                                 : options.one_sided        ? "no branch was seen to go only one way"
                                 : chosen.is_all()          ? "no branch of that function was seen"
                                                            : "no branch was seen that the options select")};
    View view;
    const bool predictions =
        std::any_of(rows.begin(), rows.end(), [](const Branch* b) { return b->mispredicted.has_value(); });
    const bool by_predictions = options.sort == "mispredicted" && predictions;
    if (options.sort == "mispredicted" && !predictions)
        view.remark(Finding::Severity::note, not_sorted(options.sort, "known from samples only", "times"));
    std::stable_sort(rows.begin(), rows.end(), [&](const Branch* a, const Branch* b) {
        const auto key = [&](const Branch* x) {
            if (options.sort == "address") return std::uint64_t{0};
            if (by_predictions) return x->mispredicted.value_or(0);
            // Branches that go both ways: the rarer direction shows best what a predictor cannot know.
            if (options.sort == "balance") return std::min(x->taken, x->not_taken);
            return times_of(*x);
        };
        return std::tuple(key(b), a->address) < std::tuple(key(a), b->address);
    });
    Columns<Branch> columns;
    columns.add(Column::bar(by_predictions ? "share of mispredictions" : "share of branches"), [&](const Branch& b) {
        return by_predictions ? Cell::bar(b.mispredicted.value_or(0), every_mispredicted)
                              : Cell::bar(times_of(b), every);
    });
    columns.add(Column::count("times", samples ? "samples" : "times",
                              "times the branch ran; of samples: samples of the branch"),
                [](const Branch& b) { return times_of(b); });
    columns.add(Column::count("taken", "taken", meaning::taken),
                [](const Branch& b) { return outcome(b.taken, b.seen_taken, true); });
    columns.add(Column::count("not_taken", "not taken", meaning::not_taken), [](const Branch& b) {
        return outcome(b.not_taken, b.seen_not_taken, b.kind == Branch::Kind::conditional);
    });
    columns.add(Column::real("taken_share", "taken", "taken as a part of times"),
                [](const Branch& b) { return Cell::share(b.taken, times_of(b)); });
    columns.add(Column::count("mispredicted", samples ? "mispredicted" : "", meaning::mispredicted),
                [](const Branch& b) { return b.mispredicted ? Cell(*b.mispredicted) : Cell(); });
    columns.add(
        Column::real("mispredicted_share", samples ? "mispredicted share" : "", "mispredicted as a part of times"),
        [](const Branch& b) { return b.mispredicted ? Cell::share(*b.mispredicted, times_of(b)) : Cell(); });
    columns.add(Column::text("kind", "kind", meaning::branch_kind), [](const Branch& b) { return kind_text(b.kind); });
    columns.add(Column::flag("one_sided", "", "the branch is conditional and went one way only"),
                [](const Branch& b) { return Cell("", is_one_sided(b)); });
    columns.add(Column::address("address", "address", meaning::branch_address),
                [](const Branch& b) { return Cell::hex(b.address); });
    columns.add(Column::address("target", "target", meaning::branch_target),
                [](const Branch& b) { return b.target == 0 ? Cell() : Cell::hex(b.target); });
    columns.add(Column::text("place", "in", meaning::place),
                [&](const Branch& b) { return Cell(place_text(answers, b.function, b.address)).in(Colour::bold); });
    add_line(columns, answers);
    view.table = columns.table(rows);
    view.table.title = fmt::format("{}{}", samples ? "sampled branches" : "branches",
                                   options.one_sided ? " that always went one way" : "");
    view.below.push_back(
        counted(rows.size(), "branch", "branches") +
        (samples ? fmt::format(" in {}; {} mispredicted", counted(all, "sample"), share_text(mispredicted, all))
                 : " ran " + times(all)));
    if (samples)
        view.below.emplace_back(
            "A sample represents many operations: an outcome that was never sampled may still have occurred (0?)");
    else if (std::string note = counts_note(answers.account); !note.empty())
        view.below.push_back(std::move(note));
    return view;
}

}  // namespace waymark::answers
