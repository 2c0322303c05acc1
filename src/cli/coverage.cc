/// `waymark coverage`: which code ran, which did not, and of which nobody can tell.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "only.h"
#include "views.h"

namespace waymark::cli {

namespace {

using analysis::Answers;
using analysis::Index;
using analysis::Seen;

/// Things of one kind: how many ran, did not, or were not observed.
struct Classes {
    std::uint64_t executed{}, not_executed{}, not_observed{};
    void add(Seen seen) {
        ++(seen == Seen::executed ? executed : seen == Seen::not_executed ? not_executed : not_observed);
    }
    [[nodiscard]] std::uint64_t all() const { return executed + not_executed + not_observed; }
};

/// What --only asks for.
class Chosen {
public:
    Chosen(const Answers& answers, const CoverageOptions& options) : only_(options.only) {
        if (only_.empty()) return;
        using Kind = Only::Kind;
        for (const analysis::Function& f : answers.functions) only_.add(f);
        for (const analysis::SourceFile& s : answers.sources) only_.add(Kind::source, s.path);
        for (const analysis::Image& i : answers.images) only_.add(i);
        // Asked once for each, not for each instruction.
        std::vector<bool> images;
        for (const analysis::Image& i : answers.images) images.push_back(only_.asks_for(i));
        for (const analysis::Function& f : answers.functions)
            functions_.push_back(only_.asks_for(f) || (f.image < images.size() && images[f.image]));
        for (const analysis::SourceFile& s : answers.sources) sources_.push_back(only_.asks_for(Kind::source, s.path));
    }
    [[nodiscard]] bool operator()(Index function, Index source) const {
        return only_.empty() || (function < functions_.size() && functions_[function]) ||
               (source < sources_.size() && sources_[source]);
    }
    [[nodiscard]] std::string unknown() const { return only_.unknown(); }

private:
    Only only_;
    std::vector<bool> functions_, sources_;
};

struct CoverageRow {
    std::string name;
    std::string_view path{};
    Classes instructions, lines, directions;
};

class Coverage {
public:
    Coverage(const Answers& answers, const Chosen& chosen, std::string by) : answers_(answers), by_(std::move(by)) {
        // What of a line was seen is told of the line, or else put together from its instructions.
        std::map<std::pair<Index, std::uint32_t>, std::pair<Seen, Index>> lines;
        for (const analysis::Instruction& i : answers.instructions) {
            if (!chosen(i.function, i.source)) continue;
            if (i.seen == Seen::executed) ran_.insert(i.function);
            seen_.insert(i.function);
            row(i.function, i.source).instructions.add(i.seen);
            all_.instructions.add(i.seen);
            if (i.source == analysis::none || i.line == 0) continue;
            const auto [at, fresh] = lines.try_emplace({i.source, i.line}, i.seen, i.function);
            if (!fresh) at->second.first = better(at->second.first, i.seen);
        }
        for (const auto& [line, what] : lines) {
            row(what.second, line.first).lines.add(what.first);
            all_.lines.add(what.first);
        }
        for (const analysis::Branch& b : answers.branches) {
            if (b.kind != analysis::Branch::Kind::conditional || !chosen(b.function, b.source)) continue;
            for (const auto& [times, seen] :
                 {std::pair(b.taken, b.seen_taken), std::pair(b.not_taken, b.seen_not_taken)}) {
                const Seen what = times != 0 ? Seen::executed : seen;
                row(b.function, b.source).directions.add(what);
                all_.directions.add(what);
            }
        }
    }

    [[nodiscard]] const CoverageRow& all() const { return all_; }
    [[nodiscard]] std::size_t functions() const { return seen_.size(); }
    [[nodiscard]] std::size_t functions_that_ran() const { return ran_.size(); }
    [[nodiscard]] bool empty() const { return all_.instructions.all() == 0; }

    [[nodiscard]] Rows table(const std::string& of, const std::string& sort) const {
        Rows out({{"", "instructions that ran", true},
                  {"instructions", "of"},
                  {"instructions executed", ""},
                  {"instructions not executed", "did not"},
                  {"instructions not observed", "unknown"},
                  {"lines", "lines"},
                  {"lines executed", "ran"},
                  {"lines not executed", "did not"},
                  {"lines not observed", "unknown"},
                  {"directions", "directions"},
                  {"directions executed", "seen"},
                  {"directions not executed", "never"},
                  {"directions not observed", "unknown"},
                  {by_, by_, true},
                  {"path", ""}});
        std::vector<const CoverageRow*> order;
        for (const auto& [key, row] : rows_) order.push_back(&row);
        std::stable_sort(order.begin(), order.end(), [&](const CoverageRow* a, const CoverageRow* b) {
            const auto missing = [&](const CoverageRow* r) {
                return sort == "name" ? 0 : classes(*r, of).all() - classes(*r, of).executed;
            };
            return std::tuple(missing(b), std::string_view(a->name)) <
                   std::tuple(missing(a), std::string_view(b->name));
        });
        for (const CoverageRow* row : order) out.add(cells(*row));
        if (order.size() > 1) out.add(cells(all_));
        return out;
    }
    [[nodiscard]] static const Classes& classes(const CoverageRow& row, const std::string& of) {
        return of == "lines" ? row.lines : of == "branches" ? row.directions : row.instructions;
    }

private:
    static Seen better(Seen a, Seen b) {
        if (a == Seen::executed || b == Seen::executed) return Seen::executed;
        return a == Seen::not_observed || b == Seen::not_observed ? Seen::not_observed : Seen::not_executed;
    }
    [[nodiscard]] std::vector<Cell> cells(const CoverageRow& r) const {
        const Classes &i = r.instructions, &l = r.lines, &d = r.directions;
        Cell share = Cell::bar(i.executed, i.all());
        share.colour = i.executed == i.all() ? Colour::green : i.executed * 2 < i.all() ? Colour::red : Colour::yellow;
        const auto bad = [](std::uint64_t n) { return Cell(n).in(n == 0 ? Colour::dim : Colour::red); };
        const auto unknown = [](std::uint64_t n) { return Cell(n).in(n == 0 ? Colour::dim : Colour::yellow); };
        std::vector<Cell> out{share, Cell(i.all()), Cell(i.executed), bad(i.not_executed), unknown(i.not_observed)};
        // Of what there is none of, nothing is shown.
        for (const Classes* c : {&l, &d}) {
            const auto none = [&](const Cell& cell) { return c->all() == 0 ? Cell(std::string(), "0") : cell; };
            for (const Cell& cell : {Cell(c->all()), Cell(c->executed), bad(c->not_executed), unknown(c->not_observed)})
                out.push_back(none(cell));
        }
        out.push_back(Cell(r.name).in(Colour::bold));
        out.push_back(r.path.empty() ? Cell() : Cell(r.path));
        return out;
    }
    CoverageRow& row(Index function, Index source) {
        const bool function_known = function < answers_.functions.size();
        if (by_ == "function") {
            CoverageRow& r = rows_[{function, 0}];
            if (r.name.empty()) {
                r.name = function_name(answers_, function);
                r.path = path_text(answers_, source);
            }
            return r;
        }
        const Index image = function_known ? answers_.functions[function].image : analysis::none;
        const bool by_file = by_ == "file" && source != analysis::none;
        CoverageRow& r = by_file ? rows_[{source, 1}] : rows_[{image, 2}];
        if (r.name.empty()) {
            r.name = by_file ? line_text(answers_, source, 0) : std::string(image_name(answers_, image));
            if (r.name.empty()) r.name = "[no image]";
            if (by_ == "file" && !by_file) r.name += " (no lines)";
            if (by_file) r.path = path_text(answers_, source);
        }
        return r;
    }

    const Answers& answers_;
    std::string by_;
    std::map<std::pair<Index, int>, CoverageRow> rows_;
    std::set<Index> seen_, ran_;  // functions
    CoverageRow all_{"all", {}, {}, {}, {}};
};

/// Stretches of code that did not run or were not observed, and directions of branches.
Rows uncovered(const Answers& answers, const Chosen& chosen) {
    Rows out({{"class", "class", true},
              {"what", "what", true},
              {"instructions", "instructions"},
              {"begin", "begin", true},
              {"end", "end", true},
              {"function", "function", true},
              {"lines", "lines", true},
              {"file", ""}});
    const auto seen_cell = [](Seen seen) {
        return seen == Seen::not_executed ? Cell("not executed").in(Colour::red)
                                          : Cell("not observed").in(Colour::yellow);
    };
    for (std::size_t i = 0; i < answers.instructions.size();) {
        const analysis::Instruction& first = answers.instructions[i];
        if (first.seen == Seen::executed || !chosen(first.function, first.source)) {
            ++i;
            continue;
        }
        std::size_t end = i;
        std::uint64_t next = first.address;
        std::uint32_t low = 0, high = 0;
        for (; end < answers.instructions.size(); ++end) {
            const analysis::Instruction& at = answers.instructions[end];
            if (at.seen != first.seen || at.function != first.function || at.address != next) break;
            next = at.address + at.bytes;
            if (at.line == 0 || at.source != first.source) continue;
            low = low == 0 ? at.line : std::min(low, at.line);
            high = std::max(high, at.line);
        }
        std::string lines = line_text(answers, first.source, low);
        if (high > low) lines += fmt::format("-{}", high);
        out.add({seen_cell(first.seen), "code", Cell(std::uint64_t{end - i}), Cell::hex(first.address), Cell::hex(next),
                 Cell(place_text(answers, first.function, first.address)).in(Colour::bold),
                 low == 0 ? Cell() : Cell(lines),
                 first.source == analysis::none ? Cell() : Cell(path_text(answers, first.source))});
        i = end;
    }
    for (const analysis::Branch& b : answers.branches) {
        // A branch that never ran is told as code.
        if (b.kind != analysis::Branch::Kind::conditional || b.taken + b.not_taken == 0) continue;
        if (!chosen(b.function, b.source)) continue;
        if (b.taken != 0 && b.not_taken != 0) continue;
        const Seen seen = b.taken == 0 ? b.seen_taken : b.seen_not_taken;
        const std::string lines = line_text(answers, b.source, b.line);
        out.add({seen_cell(seen), b.taken == 0 ? "never taken" : "always taken", Cell(), Cell::hex(b.address),
                 b.target == 0 ? Cell() : Cell::hex(b.target),
                 Cell(place_text(answers, b.function, b.address)).in(Colour::bold),
                 lines.empty() ? Cell() : Cell(lines),
                 b.source == analysis::none ? Cell() : Cell(path_text(answers, b.source))});
    }
    return out;
}

}  // namespace

Status show_coverage(const Answers& answers, const CoverageOptions& options, Output& out) {
    if (answers.unit == "SPE" || answers.unit == "DPU") {
        say("error", fmt::format("{}: {} cannot show that code did not run: coverage needs a trace of program flow",
                                 answers.capture, answers.unit == "SPE" ? "samples" : "counters"));
        return nothing;
    }
    const Chosen chosen(answers, options);
    const Coverage coverage(answers, chosen, options.by);
    if (answers.instructions.empty()) {
        say("error", fmt::format("{}: no instruction of a known image ran; waymark flow {} shows what did",
                                 answers.capture, answers.capture));
        return nothing;
    }
    // A word that names nothing is a mistake even where others name something: a gate must not pass without it.
    if (const std::string unknown = chosen.unknown(); !unknown.empty() || coverage.empty()) {
        say("error", fmt::format("--only: {}: {}", answers.capture, unknown.empty() ? "no code matches it" : unknown));
        return nothing;
    }
    const Classes& of = Coverage::classes(coverage.all(), options.of);
    const double percent = of.all() == 0 ? 0 : 100.0 * static_cast<double>(of.executed) / static_cast<double>(of.all());
    if (options.uncovered) {
        const Rows rows = uncovered(answers, chosen);
        print_rows(
            out, answers, options,
            rows.size() == 0 ? "everything ran, both ways of every branch" : "what did not run, or was not observed",
            rows);
    } else {
        print_rows(out, answers, options, fmt::format("coverage by {}", options.by),
                   coverage.table(options.of, options.sort),
                   fmt::format("\"{}\": {{\"all\": {}, \"executed\": {}, \"not_executed\": {}, \"not_observed\": {}}}",
                               options.of, of.all(), of.executed, of.not_executed, of.not_observed));
    }
    if (options.format == "text" && !options.uncovered) {
        out.print("{} of {} ran\n", grouped(coverage.functions_that_ran()), counted(coverage.functions(), "function"));
        out.print(
            "directions: each conditional branch has two. unknown: not seen, but flow was lost where it could "
            "have run\n");
        if (coverage.all().lines.all() == 0) out.print("lines are not known: the images have no debug information\n");
    }
    if (!options.fail_under) return decoded;
    if (of.all() == 0) {
        say("error", fmt::format("--fail-under: {} are not known here", options.of));
        return nothing;
    }
    const bool low = percent < *options.fail_under;
    say(low ? "error" : "note",
        fmt::format("{} of {} {} ran: {:.1f}%, {} {:g}%{}", grouped(of.executed), grouped(of.all()),
                    options.of == "branches" ? "directions of branches" : options.of, percent,
                    low ? "less than the" : "at least the", *options.fail_under,
                    low && of.not_observed != 0 ? fmt::format(" asked for; {} were not observed, and count as not run",
                                                              grouped(of.not_observed))
                                                : " asked for"));
    return low ? nothing : decoded;
}

}  // namespace waymark::cli
