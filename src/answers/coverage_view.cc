/// `waymark coverage`: which code ran, which did not, and which was not observed.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include "columns.h"
#include "waymark/answers/account_effects.h"
#include "waymark/answers/coverage.h"
#include "waymark/answers/meanings.h"
#include "waymark/answers/only.h"
#include "waymark/answers/own_code.h"
#include "waymark/answers/sampled.h"
#include "waymark/core/numbers.h"
#include "waymark/core/quote.h"

namespace waymark::answers {

namespace {

using Classes = CoverageClasses;
/// Whether the code of a function counts for a source.
using Counts = std::function<bool(Index function, Index source)>;

class Coverage {
public:
    Coverage(const Answers& answers, const Counts& chosen, std::string by)
        : answers_(answers), by_(std::move(by)), kinds_(code_kinds(answers)) {
        // A line counts in each row that contains code of the line, according to that row's code, and once in the
        // total.
        using Place = std::pair<Index, std::uint32_t>;
        std::map<Place, Seen> lines;
        std::map<std::pair<CoverageRow*, Place>, Seen> lines_of_rows;
        const auto count = [](auto& all, const auto& key, Seen seen) {
            const auto [at, fresh] = all.try_emplace(key, seen);
            if (!fresh) at->second = better(at->second, seen);
        };
        for (const Instruction& i : answers.instructions) {
            for (const Place& place : lines_of(answers, i)) {
                if (!chosen(i.function, place.first)) continue;
                with_lines_.insert(i.function < answers.functions.size() ? answers.functions[i.function].image : none);
                count(lines, place, i.seen);
                count(lines_of_rows, std::pair(&row(i.function, place.first), place), i.seen);
            }
            if (!chosen(i.function, i.source)) continue;
            if (i.seen == Seen::executed) ran_.insert(i.function);
            seen_.insert(i.function);
            row(i.function, i.source).instructions.add(i.seen);
            all_.instructions.add(i.seen);
        }
        for (const auto& [place, seen] : lines) all_.lines.add(seen);
        for (const auto& [key, seen] : lines_of_rows) key.first->lines.add(seen);
        for (const Branch& b : answers.branches) {
            if (b.kind != Branch::Kind::conditional || !chosen(b.function, b.source)) continue;
            for (const auto& [times, seen] :
                 {std::pair(b.taken, b.seen_taken), std::pair(b.not_taken, b.seen_not_taken)}) {
                const Seen what = times != 0 ? Seen::executed : seen;
                row(b.function, b.source).directions.add(what);
                all_.directions.add(what);
            }
        }
    }

    [[nodiscard]] const CoverageRow& all() const { return all_; }
    [[nodiscard]] std::vector<CoverageRow> rows() const {
        std::vector<CoverageRow> out;
        for (const auto& [key, row] : rows_) out.push_back(row);
        return out;
    }
    [[nodiscard]] std::size_t functions() const { return seen_.size(); }
    [[nodiscard]] std::size_t functions_that_ran() const { return ran_.size(); }
    [[nodiscard]] bool empty() const { return all_.instructions.all() == 0; }
    /// Images that may contain more code than is counted, since no file or symbol says where it is. `by_name`: only
    /// functions that are selected by whole name, or that ran, are counted. `lines`: also counts images without line
    /// information.
    [[nodiscard]] std::set<std::string_view> not_known_whole(bool by_name, bool lines) const {
        std::set<std::string_view> out;
        for (const Index function : seen_) {
            const Function* const f = function < answers_.functions.size() ? &answers_.functions[function] : nullptr;
            const Index image = f == nullptr ? none : f->image;
            const bool whole = image < answers_.images.size() && answers_.images[image].whole;
            // A symbol with a size says where its function ends.
            const bool named = f != nullptr && !f->linkage_name.empty() && f->bytes != 0;
            if ((whole || (named && (by_name || image == none))) && (!lines || with_lines_.contains(image))) continue;
            out.insert(image == none ? std::string_view("code of no file") : image_name(answers_, image));
        }
        return out;
    }

    [[nodiscard]] Table table(const std::string& of, const std::string& sort) const {
        std::vector<const CoverageRow*> order;
        for (const auto& [key, row] : rows_) order.push_back(&row);
        std::stable_sort(order.begin(), order.end(), [&](const CoverageRow* a, const CoverageRow* b) {
            const auto missing = [&](const CoverageRow* r) {
                return sort == "name" ? 0 : classes(*r, of).all() - classes(*r, of).executed;
            };
            const auto kind = [&](const CoverageRow* r) { return sort == "name" ? CodeKind::own : r->kind; };
            return std::tuple(kind(a), missing(b), std::string_view(a->name)) <
                   std::tuple(kind(b), missing(a), std::string_view(b->name));
        });
        if (order.size() > 1) order.push_back(&all_);
        const auto bad = [](std::uint64_t n) { return Cell(n).in(n == 0 ? Colour::dim : Colour::red); };
        const auto unknown = [](std::uint64_t n) { return Cell(n).in(n == 0 ? Colour::dim : Colour::yellow); };
        Columns<CoverageRow> columns;
        columns.add(Column::bar("instructions that ran"), [](const CoverageRow& r) {
            const Classes& i = r.instructions;
            return Cell::bar(i.executed, i.all())
                .in(i.executed == i.all()      ? Colour::green
                    : i.executed * 2 < i.all() ? Colour::red
                                               : Colour::yellow);
        });
        // If there is nothing to cover, programs get 0, and readers an empty cell.
        const auto add = [&](const std::string& things, const std::array<const char*, 4>& heads,
                             Classes CoverageRow::*member, bool always) {
            const auto cell = [=](const auto& value) {
                return [=](const CoverageRow& r) {
                    const Classes& c = r.*member;
                    return always || c.all() != 0 ? value(c) : Cell("", std::uint64_t{0});
                };
            };
            columns.add(Column::count(things, heads[0], "number of " + things),
                        cell([](const Classes& c) { return Cell(c.all()); }));
            columns.add(Column::count(things + " executed", heads[1], things + " that ran"), cell([](const Classes& c) {
                            return Cell(fmt::format("{} of {}", grouped(c.executed), grouped(c.all())), c.executed);
                        }));
            columns.add(Column::count(things + " not executed", heads[2], things + " that did not run, for certain"),
                        cell([=](const Classes& c) { return bad(c.not_executed); }));
            columns.add(Column::count(things + " not observed", heads[3],
                                      things + " that were not seen, but may have run unobserved"),
                        cell([=](const Classes& c) { return unknown(c.not_observed); }));
        };
        add("instructions", {"of", "", "did not run", "unknown"}, &CoverageRow::instructions, true);
        add("lines", {"", "lines", "lines not run", "lines unknown"}, &CoverageRow::lines, false);
        add("directions", {"", "directions", "never taken", "directions unknown"}, &CoverageRow::directions, false);
        columns.add(Column::text(by_, by_, "what the row counts"),
                    [](const CoverageRow& r) { return Cell(r.name).in(Colour::bold); });
        columns.add(Column::text("path", "", meaning::file_path), [](const CoverageRow& r) { return known(r.path); });
        return columns.table(order);
    }
    [[nodiscard]] static const Classes& classes(const CoverageRow& row, const std::string& of) {
        return of == "lines" ? row.lines : of == "branches" ? row.directions : row.instructions;
    }

private:
    static Seen better(Seen a, Seen b) {
        if (a == Seen::executed || b == Seen::executed) return Seen::executed;
        return a == Seen::not_observed || b == Seen::not_observed ? Seen::not_observed : Seen::not_executed;
    }
    CoverageRow& row(Index function, Index source) {
        CoverageRow& r = row_of(function, source);
        if (function >= kinds_.size()) return r;
        // Code of a library's header that a function of the program contains.
        const bool header =
            by_ == "file" && source < answers_.sources.size() && answers_.sources[source].path.starts_with("/usr/");
        r.kind = std::min(r.kind, header ? std::max(kinds_[function], CodeKind::library) : kinds_[function]);
        return r;
    }
    CoverageRow& row_of(Index function, Index source) {
        const bool function_known = function < answers_.functions.size();
        if (by_ == "function") {
            CoverageRow& r = rows_[{function, 0}];
            if (r.name.empty()) {
                r.name = function_name(answers_, function);
                r.path = path_text(answers_, source);
                r.function = function;
                r.source = source;
                if (function_known) r.image = answers_.functions[function].image;
            }
            return r;
        }
        const Index image = function_known ? answers_.functions[function].image : none;
        const bool by_file = by_ == "file" && source != none;
        CoverageRow& r = by_file ? rows_[{source, 1}] : rows_[{image, 2}];
        if (r.name.empty()) {
            r.name = by_file ? line_text(answers_, source, 0) : std::string(image_name(answers_, image));
            if (r.name.empty()) r.name = "[no image]";
            if (by_ == "file" && !by_file) r.name += " (no lines)";
            if (by_file) {
                r.path = path_text(answers_, source);
                r.source = source;
            } else {
                r.image = image;
            }
        }
        return r;
    }

    const Answers& answers_;
    std::string by_;
    std::vector<CodeKind> kinds_;  // by function
    std::map<std::pair<Index, int>, CoverageRow> rows_;
    std::set<Index> seen_, ran_;    // functions
    std::set<Index> with_lines_{};  // images
    CoverageRow all_ = [] {
        CoverageRow row;
        row.name = "all";
        return row;
    }();
};

std::vector<Uncovered> uncovered(const Answers& answers, const Counts& chosen) {
    std::vector<Uncovered> out;
    for (std::size_t i = 0; i < answers.instructions.size();) {
        const Instruction& first = answers.instructions[i];
        if (first.seen == Seen::executed || !chosen(first.function, first.source)) {
            ++i;
            continue;
        }
        std::size_t end = i;
        std::uint64_t next = first.address;
        std::uint32_t low = 0, high = 0;
        for (; end < answers.instructions.size(); ++end) {
            const Instruction& at = answers.instructions[end];
            if (at.seen != first.seen || at.function != first.function || at.address != next) break;
            next = at.address + at.bytes;
            for (const auto& [source, line] : lines_of(answers, at)) {
                if (source != first.source) continue;
                low = low == 0 ? line : std::min(low, line);
                high = std::max(high, line);
            }
        }
        out.push_back({first.seen, Uncovered::What::code, end - i, first.address, next, first.function, first.source,
                       low, std::max(low, high)});
        i = end;
    }
    for (const Branch& b : answers.branches) {
        // A branch that never ran is listed as code.
        if (b.kind != Branch::Kind::conditional || b.taken + b.not_taken == 0) continue;
        if (!chosen(b.function, b.source) || (b.taken != 0 && b.not_taken != 0)) continue;
        using enum Uncovered::What;
        out.push_back({b.taken == 0 ? b.seen_taken : b.seen_not_taken, b.taken == 0 ? never_taken : always_taken, 0,
                       b.address, b.target, b.function, b.source, b.line, b.line});
    }
    return out;
}

Table uncovered_table(const Answers& answers, const std::vector<Uncovered>& rows) {
    Columns<Uncovered> columns;
    columns.add(
        Column::text("class", "class", "not executed; or not observed: it was not seen, but may have run unobserved"),
        [](const Uncovered& u) {
            return u.seen == Seen::not_executed ? Cell("not executed").in(Colour::red)
                                                : Cell("not observed").in(Colour::yellow);
        });
    columns.add(Column::text("what", "what",
                             "code that did not run; or a branch that ran and was never taken, or always taken"),
                [](const Uncovered& u) {
                    constexpr std::array<std::string_view, 3> words{"code", "never taken", "always taken"};
                    return words[static_cast<std::size_t>(u.what)];
                });
    columns.add(Column::count("instructions", "instructions", "number of instructions"),
                [](const Uncovered& u) { return u.instructions == 0 ? Cell() : Cell(u.instructions); });
    columns.add(Column::address("begin", "begin", "address of the first instruction, or of the branch"),
                [](const Uncovered& u) { return Cell::hex(u.begin); });
    columns.add(Column::address("end", "end", "address after the last instruction, or target of the branch"),
                [](const Uncovered& u) { return u.end == 0 ? Cell() : Cell::hex(u.end); });
    columns.add(Column::text("function", "function", meaning::place),
                [&](const Uncovered& u) { return Cell(place_text(answers, u.function, u.begin)).in(Colour::bold); });
    columns.add(Column::text("lines", "lines", "lines in the source file"), [&](const Uncovered& u) {
        // An uncovered branch without a line is still listed with the name of its file.
        if (u.what == Uncovered::What::code && u.first_line == 0) return known(std::string());
        std::string lines = line_text(answers, u.source, u.first_line);
        if (u.last_line > u.first_line) lines += fmt::format("-{}", u.last_line);
        return known(lines);
    });
    columns.add(Column::text("file", "", meaning::file_path),
                [&](const Uncovered& u) { return u.source == none ? Cell() : Cell(path_text(answers, u.source)); });
    return columns.table(rows);
}

/// Whether the only code that may have run unseen ran before the recording began.
bool hides_only_what_ran_before(const Account& account) {
    return std::all_of(account.begin(), account.end(), [](const AccountRow& row) {
        return is_known_before(row) || account_rule(row.reason).hides == Hides::nothing;
    });
}

/// How the number of functions that ran relates to the run (CoverageCounts::bound).
std::string_view bound_of_functions(const Account& account) {
    // Some of the code that is shown as executed may be other code that was mapped there.
    const bool uncertain = std::any_of(account.begin(), account.end(), [](const AccountRow& row) {
        return account_rule(row.reason).state == AccountState::uncertain;
    });
    if (uncertain) return "about";
    return completeness(account).hides != Hides::nothing ? "at least" : "";
}

/// Files that ran, but were not found: none of their code is counted. Names in brackets are parts of the system.
std::set<std::string_view> missing_files(const Answers& answers, CodeKind kind) {
    std::set<std::string_view> out;
    for (const AccountRow& row : answers.account)
        if (row.reason == AccountReason::no_image && !row.of.empty() &&
            (kind == CodeKind::system || !row.of.starts_with('[')) &&
            std::none_of(answers.images.begin(), answers.images.end(),
                         [&](const Image& image) { return image.name == row.of; }))
            out.insert(row.of);
    return out;
}

/// Under --strict, a recording from main on is accepted as intended (answers::completeness). But the program's own
/// code, such as constructors, may run before main. If the recording does not state which code ran there, code that was
/// not seen later may have run.
void judge_before_main(View& view, const Answers& answers, const Counts& chosen) {
    if (std::none_of(answers.account.begin(), answers.account.end(), [](const AccountRow& row) {
            return row.reason == AccountReason::before_start && row.of == at_main && !is_known_before(row);
        }))
        return;
    const std::vector<bool> is_own = own_functions(answers);
    const Coverage own(
        answers,
        [&](Index function, Index source) {
            return function < is_own.size() && is_own[function] && chosen(function, source);
        },
        "function");
    const std::uint64_t instructions = own.all().instructions.not_observed,
                        directions = own.all().directions.not_observed;
    if (instructions == 0 && directions == 0) return;
    view.doubt(true, fmt::format("of the program's own code, {} and {} were not observed and may have run before main, "
                                 "where the recording begins; waymark record --from-start records that part too",
                                 counted(instructions, "instruction"),
                                 counted(directions, "direction of branches", "directions of branches")));
}

/// Sets whether a gate was missed, and the sentence on the code that ran.
void judge(View& view, const CoverageOptions& options, const Classes& of) {
    const double percent = 100.0 * static_cast<double>(of.executed) / static_cast<double>(of.all());
    const bool low = percent < *options.fail_under;
    view.remark(low ? Finding::Severity::bad : Finding::Severity::note,
                fmt::format("{} of {} {} ran: {:.1f}%, {} --fail-under {:g}{}", grouped(of.executed), grouped(of.all()),
                            options.of == "branches" ? "directions of branches" : options.of, percent,
                            low ? "less than" : "which meets", *options.fail_under,
                            low && of.not_observed != 0
                                ? fmt::format("; {} not observed, and count{} as not run",
                                              of.not_observed == 1 ? "1 was" : grouped(of.not_observed) + " were",
                                              of.not_observed == 1 ? "s" : "")
                                : ""));
}

}  // namespace

CoverageCounts coverage_counts(const Answers& answers, const std::string& by, const std::vector<bool>& of_functions) {
    const Coverage coverage(
        answers,
        [&](Index function, Index) {
            return of_functions.empty() || (function < of_functions.size() && of_functions[function]);
        },
        by);
    CoverageCounts out{.rows = coverage.rows(),
                       .all = coverage.all(),
                       .functions = coverage.functions(),
                       .functions_that_ran = coverage.functions_that_ran(),
                       .bound = bound_of_functions(answers.account),
                       .not_whole = {}};
    auto not_whole = coverage.not_known_whole(false, false);
    if (of_functions.empty()) not_whole.merge(missing_files(answers, CodeKind::system));
    for (const std::string_view image : not_whole) out.not_whole.emplace_back(image);
    return out;
}

std::vector<Uncovered> uncovered_code(const Answers& answers) {
    return uncovered(answers, [](Index, Index) { return true; });
}

Result<View> coverage_view(const Answers& answers, const CoverageOptions& options) {
    const auto nothing = [](std::string why) { return Error{Errc::not_found, std::move(why)}; };
    if (const std::string_view subject = subject_without_flow(answers); !subject.empty())
        return nothing(fmt::format("{}: {} cannot show that code did not run: coverage needs a trace of program flow",
                                   answers.capture, subject));
    const Chosen chosen(answers, options.only, options.code);
    const Coverage coverage(answers, chosen, options.by);
    if (answers.instructions.empty())
        return nothing(
            fmt::format("{}: no instruction of a known image was seen to run; waymark flow {} shows which "
                        "code ran",
                        answers.capture, shell_file(answers.capture)));
    // A word that names nothing is an error even if other words name something: a gate must not pass unnoticed.
    if (std::string unknown = chosen.unknown(); !unknown.empty()) return nothing(std::move(unknown));
    if (coverage.empty()) return nothing(fmt::format("{}: {}: no code matches it", chosen.options(), answers.capture));
    const Classes& of = Coverage::classes(coverage.all(), options.of);
    View view;
    if (options.uncovered) {
        view.table = uncovered_table(answers, uncovered(answers, chosen));
        view.table.title =
            view.table.empty() ? "everything ran, both ways of every branch" : "what did not run, or was not observed";
    } else {
        view.table = coverage.table(options.of, options.sort);
        view.table.title = fmt::format("coverage by {}", options.by);
        view.sums.push_back({options.of,
                             {{"all", of.all()},
                              {"executed", of.executed},
                              {"not_executed", of.not_executed},
                              {"not_observed", of.not_observed}}});
        const bool hidden = completeness(answers.account).hides != Hides::nothing;
        const std::string_view bound = bound_of_functions(answers.account);
        std::string ran =
            fmt::format("{}{}{} of {} ran", bound, bound.empty() ? "" : " ", grouped(coverage.functions_that_ran()),
                        counted(coverage.functions(), "function"));
        auto unknown = coverage.not_known_whole(options.entered || chosen.is_by_whole_names(), false);
        if (options.only.empty()) unknown.merge(missing_files(answers, options.code));
        if (!unknown.empty()) ran += fmt::format("; there may be more in {}", fmt::join(unknown, ", "));
        view.below = {
            std::move(ran),
            fmt::format("directions: each conditional branch has two; shown are those that were taken. unknown: not "
                        "seen, but {}",
                        hidden && hides_only_what_ran_before(answers.account) ? "it ran before the recording began"
                                                                              : "not all that ran there was observed")};
        if (options.by != "file" && coverage.all().lines.all() != 0)
            view.below.emplace_back(
                fmt::format("lines: a line counts for each {} that has code of it, and once in the sum", options.by));
        if (coverage.all().lines.all() == 0)
            view.below.emplace_back("lines are not known: the images have no debug information");
    }
    // A limit counts unobserved code as not run, so it holds even if the code before main is not known.
    if (options.strict && !options.fail_under) judge_before_main(view, answers, chosen);
    if (options.fail_under && of.all() == 0)
        view.remark(Finding::Severity::bad, fmt::format("--fail-under: {} are not known; give the program with "
                                                        "--image or --symbols",
                                                        options.of));
    else if (options.fail_under) {
        const auto unknown =
            coverage.not_known_whole(options.entered || chosen.is_by_whole_names(), options.of == "lines");
        if (!unknown.empty())
            view.doubt(
                options.strict,
                fmt::format("--fail-under: the total number of {} of {} is not known: code that never ran is "
                            "not counted where {}. Give the unstripped file that ran (--symbols, --symfs), "
                            "or select known code (--only)",
                            options.of == "branches" ? "directions of branches" : options.of, fmt::join(unknown, ", "),
                            options.of == "lines" ? "no symbol or line says that it is there"
                                                  : "no symbol says that it is there"));
        if (const auto missing = missing_files(answers, options.code); options.only.empty() && !missing.empty())
            view.doubt(options.strict,
                       fmt::format("--fail-under: no code of {} is counted, for the file was not found. "
                                   "Give it (--image, --symfs), or select known code (--only)",
                                   fmt::join(missing, ", ")));
        judge(view, options, of);
    }
    return view;
}

}  // namespace waymark::answers
