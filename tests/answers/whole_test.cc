/// Whole results: every view of detailed answers with each of its options, their differences and sums, beside approved
/// text in tests/answers/whole. WM_UPDATE_APPROVED=1 writes the text: review it like code.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "exports/some_answers.h"
#include "support/approved.h"
#include "support/detailed_answers.h"
#include "waymark/answers/account_effects.h"
#include "waymark/answers/schema.h"
#include "waymark/answers/sum.h"
#include "waymark/answers/views.h"

namespace waymark::answers {
namespace {

using support::Approved;

// ---- as text

/// All fields of a row that differ from an empty row.
template <class Row>
class FieldsOf {
public:
    explicit FieldsOf(std::string& out) : out_(out) {}
    void number(std::string_view name, std::integral auto value, std::string_view) { show(name, value != 0, value); }
    void address(std::string_view name, std::integral auto value, std::string_view) {
        if (value != 0) out_ += fmt::format(" {}={:#x}", name, value);
    }
    void text(std::string_view name, const std::string& value, std::string_view) {
        if (!value.empty()) out_ += fmt::format(" {}='{}'", name, value);
    }
    void shared(std::string_view name, const SharedText& value, std::string_view) {
        if (!value.view().empty()) out_ += fmt::format(" {}='{}'", name, value.view());
    }
    void real(std::string_view name, double value, std::string_view) { show(name, value != 0, value); }
    void index(std::string_view name, Index value, IndexedTable, std::string_view) { show(name, value != none, value); }
    void choice(std::string_view name, auto value, const auto& words, std::string_view) {
        show(name, true, words[static_cast<std::size_t>(value)]);
    }
    template <class T>
    void maybe(std::string_view name, const std::optional<T>& value, std::string_view) {
        if (value) out_ += fmt::format(" {}={}", name, *value);
    }
    template <class T>
    void list(std::string_view name, const std::vector<T>& values, std::string_view) {
        if (values.empty()) return;
        out_ += fmt::format(" {}=[", name);
        for (const T& value : values) {
            if constexpr (requires { schema::fields(*this, value); }) {
                out_ += "{";
                FieldsOf<T> inner(out_);
                schema::fields(inner, value);
                out_ += "}";
            } else {
                out_ += fmt::format(" {}", value);
            }
        }
        out_ += "]";
    }

private:
    void show(std::string_view name, bool any, const auto& value) {
        if (any) out_ += fmt::format(" {}={}", name, value);
    }
    std::string& out_;
};

std::string text_of(const Answers& a) {
    std::string out =
        fmt::format("{}, {} {}, {} bytes{}{}, resolution {}\n", a.capture, a.unit, a.version, a.trace_bytes,
                    a.cut ? ", cut" : "", a.hides_others ? ", hides others" : "", a.timeline.resolution);
    schema::tables(
        [&out](std::string_view name, const auto& rows, std::string_view) {
            using Row = typename std::remove_cvref_t<decltype(rows)>::value_type;
            std::size_t number = 0;
            for (const Row& row : rows) {
                out += fmt::format("{}[{}]:", name, number++);
                FieldsOf<Row> fields(out);
                schema::fields(fields, row);
                out += '\n';
            }
        },
        a);
    for (const auto& table : a.tables) {
        out += fmt::format("table '{}' '{}'\n", table.title, table.note);
        for (const auto& row : table.rows) {
            for (const Cell& cell : row) out += fmt::format(" {} |", cell.field());
            out += '\n';
        }
    }
    return out;
}

/// WholeTexts, one below another. A text that was there before is named only, and of a long line only a hash is
/// repeated.
class WholeTexts {
public:
    void add(const std::string& name, const std::string& text) {
        const auto [before, fresh] = names_.emplace(text, name);
        std::ostream& out = text_.add(name);
        if (!fresh) {
            out << fmt::format("as {}\n", before->second);
            return;
        }
        std::istringstream lines(text);
        for (std::string line; std::getline(lines, line);) {
            constexpr std::size_t is_long = 40;
            std::uint32_t hash = 2166136261;
            for (const char c : line) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619;
            out << (line.size() <= is_long || lines_.insert(line).second ? line : fmt::format("~{:08x}", hash)) << '\n';
        }
    }
    void check(const std::string& file) const { text_.check(file); }

private:
    Approved text_{};
    std::map<std::string, std::string> names_{};
    std::set<std::string> lines_{};
};

/// WholeTexts of views. A column is described once.
class WholeTables : public WholeTexts {
public:
    using WholeTexts::add;
    void add(const std::string& name, const Result<View>& view) {
        add(name, view ? text_of(*view)
                       : fmt::format("error {}: {}\n", static_cast<int>(view.error().code), view.error().message));
    }
    [[nodiscard]] std::string text_of(const View& view) {
        std::string out, names;
        for (const std::string& line : view.above) out += fmt::format("above: {}\n", line);
        out += fmt::format("title: {}\n", view.table.title);
        for (const Column& c : view.table.columns) {
            const std::string text = fmt::format("{} | {} | {} | {}", c.head, static_cast<int>(c.type), c.unit, c.what);
            if (columns_.insert(c.name + text).second) out += fmt::format("column: {} | {}\n", c.name, text);
            names += fmt::format(" {} |", c.name);
        }
        out += names + '\n';
        for (const auto& row : view.table.rows) {
            for (const Cell& cell : row) {
                const std::string field = cell.field();
                out += field == cell.shown ? fmt::format(" {} |", field) : fmt::format(" {} ({}) |", field, cell.shown);
                if (cell.colour != Colour::plain) out += fmt::format(" !{}", static_cast<int>(cell.colour));
            }
            out += '\n';
        }
        for (const auto& [name, sums] : view.sums) out += fmt::format("sums of {}: {}\n", name, sums);
        for (const std::string& line : view.below) out += fmt::format("below: {}\n", line);
        for (const Finding& finding : view.remarks)
            out += fmt::format("{}: {} {}\n", schema::severities[static_cast<std::size_t>(finding.severity)],
                               finding.what, finding.todo);
        return out;
    }

private:
    std::set<std::string> columns_{};
};

// ---- the answers

/// The answers of a later build: other costs, functions that came, went and were renamed.
Answers later() {
    Answers a = support::detailed_answers();
    a.capture = "later";
    a.functions[8].name = a.functions[8].linkage_name = "renamed";
    a.functions[5].name = "[interrupt 7]";
    for (std::size_t i = 0; i < a.instructions.size(); ++i)
        for (std::size_t m = 0; m < a.instructions[i].costs.size(); ++m) a.instructions[i].costs[m] += i % 3 * (m + 1);
    for (std::size_t i = 0; i < a.calls.size(); ++i)
        for (std::size_t m = 0; m < a.calls[i].self.size(); ++m) a.calls[i].self[m] += i % 4 * (m + 1);
    a.images[0].build_id = "99aa";
    a.cut = false;
    a.account.clear();
    return a;
}

/// Of a run in which nothing ran.
Answers nothing() {
    Answers a;
    a.capture = "nothing";
    a.metrics = {{"instructions", "instructions", true, ""}};
    return a;
}

/// Whether nothing was lost makes sentences differ.
Answers complete() {
    Answers a = support::detailed_answers();
    a.cut = false;
    a.account = {{.reason = AccountReason::decoded, .instructions = 40}};
    a.health.clear();
    return a;
}

const std::vector<std::pair<std::string, std::function<Answers()>>> subjects{{"detailed", support::detailed_answers},
                                                                             {"complete", complete},
                                                                             {"small", support::small_answers},
                                                                             {"nothing", nothing}};

/// Named options.
template <class Options>
class Requests {
public:
    void add(const std::string& name, const std::function<void(Options&)>& change) {
        change(all_.emplace_back(name, Options{}).second);
    }
    /// Adds what `make` makes of each subject with each of the options.
    template <class Make>
    void show(WholeTables& text, Make make) const {
        for (const auto& [subject, answers] : subjects)
            for (const auto& [name, options] : all_)
                text.add(fmt::format("{}, {}", subject, name), make(answers(), options));
    }
    [[nodiscard]] const auto& all() const { return all_; }

private:
    std::vector<std::pair<std::string, Options>> all_;
};

// ---- views

TEST(WholeViews, Profiles) {
    Requests<ProfileOptions> all;
    all.add("default", [](auto&) {});
    for (const char* by : {"line", "block", "instruction", "image", "level"})
        all.add(fmt::format("by {}", by), [by](auto& o) { o.by = by; });
    for (const char* sort : {"self", "inclusive", "calls", "name"})
        all.add(fmt::format("sort {}", sort), [sort](auto& o) { o.sort = sort; });
    for (const char* by : {"function", "line", "level"}) {
        for (const char* metric : {"cycles", "BUS time", "2 kinds", "nothing"})
            all.add(fmt::format("by {}, metric {}", by, metric), [=](auto& o) { o.by = by, o.metric = metric; });
        for (const char* only : {"main", "util.h", "libm.so.6", "wor*", "wrok"})
            all.add(fmt::format("by {}, only {}", by, only), [=](auto& o) { o.by = by, o.only = {only}; });
        all.add(fmt::format("by {}, inlines", by), [by](auto& o) { o.by = by, o.inlines = true; });
        all.add(fmt::format("by {}, no interrupts", by), [by](auto& o) { o.by = by, o.interrupts = false; });
    }
    all.add("own code", [](auto& o) { o.code = CodeKind::own; });
    all.add("libraries by image", [](auto& o) { o.by = "image", o.code = CodeKind::library; });
    WholeTables text;
    all.show(text, profile_view);
    text.check("answers/whole/profiles.txt");
}

TEST(WholeViews, Coverage) {
    Requests<CoverageOptions> all;
    for (const char* of : {"instructions", "lines", "branches"})
        for (const char* by : {"file", "function", "image"})
            for (const bool uncovered : {false, true})
                all.add(fmt::format("{}{} by {}", uncovered ? "uncovered " : "", of, by),
                        [=](auto& o) { o.by = by, o.of = of, o.uncovered = uncovered; });
    for (const double limit : {0.0, 50.0, 75.0, 100.0})
        for (const bool strict : {false, true})
            all.add(fmt::format("fail under {}{}", limit, strict ? ", strict" : ""),
                    [=](auto& o) { o.fail_under = limit, o.strict = strict; });
    all.add("entered", [](auto& o) { o.entered = true; });
    all.add("entered, a limit", [](auto& o) { o.entered = true, o.fail_under = 50; });
    all.add("own code", [](auto& o) { o.code = CodeKind::own; });
    for (const char* only : {"main", "main.c", "prog", "wor*", "wrok"})
        all.add(fmt::format("only {}", only), [only](auto& o) { o.only = {only}; });
    all.add("sort name", [](auto& o) { o.sort = "name"; });
    WholeTables text;
    all.show(text, coverage_view);
    text.check("answers/whole/coverage.txt");
}

TEST(WholeViews, BranchesLoopsAndExceptions) {
    WholeTables text;
    Requests<BranchOptions> branches;
    branches.add("branches", [](auto&) {});
    for (const char* sort : {"times", "address", "balance", "mispredicted"})
        branches.add(fmt::format("branches, sort {}", sort), [sort](auto& o) { o.sort = sort; });
    for (const char* function : {"main", "work", "nothing"})
        branches.add(fmt::format("branches of {}", function), [function](auto& o) { o.function = function; });
    branches.add("one-sided", [](auto& o) { o.one_sided = true; });
    branches.add("own branches", [](auto& o) { o.code = CodeKind::own; });
    branches.add("branches of util.h", [](auto& o) { o.only = {"util.h"}; });
    branches.show(text, branch_view);
    Requests<LoopOptions> loops;
    loops.add("loops", [](auto&) {});
    for (const char* sort : {"cost", "iterations", "entries", "address"})
        loops.add(fmt::format("loops, sort {}", sort), [sort](auto& o) { o.sort = sort; });
    for (const char* metric : {"cycles", "nothing"})
        loops.add(fmt::format("loops by {}", metric), [metric](auto& o) { o.metric = metric; });
    loops.add("own loops", [](auto& o) { o.code = CodeKind::own; });
    for (const char* only : {"work", "wrok"})
        loops.add(fmt::format("loops of {}", only), [only](auto& o) { o.only = {only}; });
    loops.show(text, loop_view);
    Requests<ViewOptions> exceptions;
    exceptions.add("exceptions", [](auto&) {});
    for (const char* sort : {"times", "time", "name"})
        exceptions.add(fmt::format("exceptions, sort {}", sort), [sort](auto& o) { o.sort = sort; });
    exceptions.add("exceptions, strict", [](auto& o) { o.strict = true; });
    exceptions.show(text, exception_view);
    text.check("answers/whole/branches.txt");
}

TEST(WholeViews, Calls) {
    Requests<CallOptions> all;
    for (const char* function : {"main", "work", "sin", "wor*", "wrok", "never", ""})
        for (const bool callees : {true, false})
            for (const bool interrupts : {true, false})
                all.add(fmt::format("calls of '{}'{}{}", function, callees ? "" : ", without callees",
                                    interrupts ? "" : ", without interrupts"),
                        [=](auto& o) { o.function = function, o.callees = callees, o.interrupts = interrupts; });
    for (const std::uint64_t slowest : {1, 2, 5})
        all.add(fmt::format("slowest {}", slowest), [slowest](auto& o) { o.function = "main", o.slowest = slowest; });
    WholeTables text;
    all.show(text, call_view);
    text.check("answers/whole/calls.txt");
}

// ---- differences and sums

TEST(WholeDifferences, OfDetailedAnswers) {
    Requests<DiffOptions> all;
    all.add("default", [](auto&) {});
    all.add("sort name", [](auto& o) { o.sort = "name"; });
    for (const char* by : {"self", "inclusive"}) all.add(fmt::format("by {}", by), [by](auto& o) { o.by = by; });
    for (const char* metric : {"cycles", "bus time", "nothing"})
        all.add(fmt::format("metric {}", metric), [metric](auto& o) { o.metric = metric; });
    const auto with = [&all](const std::string& name, const std::function<void(DiffOptions&)>& change) {
        all.add(name, change);
        all.add(name + ", strict", [&change](auto& o) { change(o), o.strict = true; });
    };
    for (const double limit : {10.0, 1000.0}) {
        with(fmt::format("threshold {}", limit), [limit](auto& o) { o.threshold = limit; });
        with(fmt::format("threshold {} each", limit), [limit](auto& o) { o.threshold_each = limit; });
        with(fmt::format("{} each, least 20", limit), [limit](auto& o) { o.threshold_each = limit, o.least = 20; });
        with(fmt::format("inclusive, threshold {}", limit),
             [limit](auto& o) { o.threshold = limit, o.by = "inclusive"; });
    }
    for (const std::uint64_t limit : {0, 3, 1000})
        with(fmt::format("threshold count {}", limit), [limit](auto& o) { o.threshold_count = limit; });
    with("least 5", [](auto& o) { o.least = 5; });
    with("mean", [](auto& o) { o.mean = true; });
    with("changed only", [](auto& o) { o.changed_only = true; });
    with("only main", [](auto& o) { o.only = {"main"}, o.threshold = 1; });
    with("only prog", [](auto& o) { o.only = {"prog"}; });
    with("only wrok", [](auto& o) { o.only = {"wrok"}; });
    with("renamed", [](auto& o) { o.renames = {"never=renamed", "[interrupt 6]=[interrupt 7]"}; });
    with("renamed to nothing", [](auto& o) { o.renames = {"never=nothing"}; });
    with("renamed without =", [](auto& o) { o.renames = {"never"}; });
    Answers sum = support::detailed_answers();
    {
        AnswersSum adds;
        adds.add(support::detailed_answers());
        adds.add(later());
        sum = adds.take();
    }
    WholeTables text;
    const std::vector<std::pair<std::string, std::pair<Answers, Answers>>> pairs{
        {"detailed, later", {support::detailed_answers(), later()}},
        {"later, detailed", {later(), support::detailed_answers()}},
        {"detailed, small", {support::detailed_answers(), support::small_answers()}},
        {"later, sum", {later(), sum}},
        {"nothing, small", {nothing(), support::small_answers()}}};
    for (const auto& [name, pair] : pairs)
        for (const auto& [how, options] : all.all()) {
            const auto diff = compare(pair.first, pair.second, options);
            const std::string what = fmt::format("{}: {}", name, how);
            if (diff)
                text.add(what, fmt::format("{} -> {}, {} -> {} of {}\n", diff->before, diff->after, diff->chosen_before,
                                           diff->chosen_after, diff->metric.name) +
                                   text.text_of(diff->view));
            else
                text.add(what, Result<View>(diff.error()));
        }
    text.check("answers/whole/differences.txt");
}

TEST(WholeSums, OfDetailedAnswers) {
    WholeTexts text;
    const auto sum_of = [](const std::vector<Answers>& all, bool all_images) {
        AnswersSum adds;
        for (Answers a : all) {
            mark_unlisted_code(a, all_images);
            adds.add(std::move(a));
        }
        return adds.take();
    };
    const Answers detailed = support::detailed_answers();
    text.add("one", text_of(sum_of({detailed}, true)));
    text.add("twice", text_of(sum_of({detailed, detailed}, true)));
    text.add("with later", text_of(sum_of({detailed, later()}, true)));
    text.add("later first", text_of(sum_of({later(), detailed}, false)));
    text.add("three", text_of(sum_of({complete(), support::small_answers(), later()}, false)));
    text.add("a sum and one", text_of(sum_of({sum_of({detailed, later()}, true), support::small_answers()}, true)));
    text.check("answers/whole/sums.txt");
}

}  // namespace
}  // namespace waymark::answers
