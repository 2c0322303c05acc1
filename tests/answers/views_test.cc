// Tables: cells for readers and programs, columns that are described once, views, and the document of their columns.
#include "waymark/answers/views.h"

#include "../../src/answers/diff_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "exports/some_answers.h"
#include "waymark/answers/account_effects.h"
#include "waymark/answers/branch_list.h"
#include "waymark/answers/coverage.h"
#include "waymark/answers/interval.h"
#include "waymark/answers/only.h"

namespace waymark::answers {
namespace {

TEST(Cell, WhatProgramsGet) {
    EXPECT_EQ(Cell(1234567).shown, "1,234,567");
    EXPECT_EQ(Cell(1234567).field(), "1234567");
    EXPECT_EQ(Cell("a\tb").field(), Cell("a\tb").shown) << "a field is one";
    EXPECT_EQ(Cell("a\tb").field().find('\t'), std::string::npos);
    EXPECT_EQ(Cell::share(1, 4).field(), "0.25");
    EXPECT_EQ(Cell::share(4, 4).field(), "1.0") << "a real looks like one where it is whole";
    EXPECT_EQ(Cell::share(1, 0).field(), "");
    EXPECT_EQ(Cell::mean(1, 1'000'000).field(), "1e-06");
    EXPECT_EQ(Cell::hex(0x8000).field(), "0x8000");
    EXPECT_EQ(Cell::hex(0x8000).shown, "0x00008000");
    EXPECT_EQ(Cell("", true).field(), "true");
    EXPECT_EQ(Cell("", -3).field(), "-3");
    EXPECT_EQ(Cell::none().field(), "");
    EXPECT_EQ(Cell::none().shown, "-");
    EXPECT_FALSE(Cell::bar(1, 2).value.known());
}

TEST(Table, KeepsTheFirstRows) {
    Table table{.columns = {Column::count("n")}};
    for (std::uint64_t i = 0; i < 5; ++i) table.add({i});
    EXPECT_EQ(table.keep(0), 0U) << "0: all";
    EXPECT_EQ(table.keep(7), 0U);
    EXPECT_EQ(table.keep(2), 3U);
    ASSERT_EQ(table.size(), 2U);
    EXPECT_EQ(table.rows[1][0].field(), "1");
}

const Cell& cell(const View& view, std::size_t row, std::string_view column) {
    for (std::size_t c = 0; c < view.table.columns.size(); ++c)
        if (view.table.columns[c].name == column) return view.table.rows.at(row)[c];
    ADD_FAILURE() << "no column " << column;
    static const Cell none_such;
    return none_such;
}

TEST(Views, ProfileAddsUp) {
    ProfileOptions options;
    options.sort = "self";
    const auto view = profile_view(support::small_answers(), options);
    ASSERT_TRUE(view);
    ASSERT_EQ(view->table.size(), 4U);
    EXPECT_EQ(cell(*view, 0, "function").field(), "sort(int*, int)");
    EXPECT_EQ(cell(*view, 0, "instructions").field(), "19");
    EXPECT_EQ(cell(*view, 0, "instructions inclusive").field(), "40");
    options.metric = "nothing";
    EXPECT_EQ(profile_view(support::small_answers(), options).error().code, Errc::usage);
}

std::size_t row_of(const View& view, std::string_view column, const std::string& value) {
    for (std::size_t row = 0; row < view.table.size(); ++row)
        if (cell(view, row, column).field() == value) return row;
    ADD_FAILURE() << "no row whose " << column << " is " << value;
    return 0;
}

/// Two functions into which line 5 of a.h is inlined: it ran in f, and not in g. At 0x1000 line 3 of f begins, too.
Answers shared_line() {
    Answers a;
    a.capture = "shared";
    a.unit = "ETMv4";
    a.metrics.push_back({"instructions", "instructions"});
    a.sources = {{"/src/a.c"}, {"/src/a.h"}};
    a.images = {{"program"}};
    a.functions.resize(2);
    a.functions[0] = {"f", "f", 0, 0x1000, 8, 0, 2};
    a.functions[1] = {"g", "g", 0, 0x2000, 8, 0, 9};
    const auto code = [&](std::uint64_t address, Seen seen, Index function, Index source, std::uint32_t line) {
        a.instructions.push_back({.address = address,
                                  .bytes = 4,
                                  .isa = isa::Isa::a64,
                                  .seen = seen,
                                  .function = function,
                                  .source = source,
                                  .line = line,
                                  .times = seen == Seen::executed ? 1U : 0U});
    };
    code(0x1000, Seen::executed, 0, 0, 2);
    code(0x1004, Seen::executed, 0, 1, 5);
    code(0x2000, Seen::not_executed, 1, 0, 9);
    code(0x2004, Seen::not_executed, 1, 1, 5);
    a.statements = {{0x1000, 0, 0, 3}};
    return a;
}

TEST(Views, CoverageOfLinesIsThatOfEachRowsCode) {
    const Answers a = shared_line();
    const auto row = [&](const std::vector<std::string>& only, const char* by, const char* name) {
        CoverageOptions options;
        options.by = by;
        options.only = only;
        const auto view = coverage_view(a, options);
        EXPECT_TRUE(view);
        const std::size_t at = row_of(*view, by, name);
        return cell(*view, at, "lines").field() + " " + cell(*view, at, "lines executed").field();
    };
    EXPECT_EQ(row({}, "function", "f"), "3 3") << "2 and 3 begin at one address";
    EXPECT_EQ(row({}, "function", "g"), "2 0") << "what is inlined into it did not run";
    EXPECT_EQ(row({"f"}, "function", "f"), "3 3");
    EXPECT_EQ(row({"g"}, "function", "g"), "2 0");
    EXPECT_EQ(row({}, "function", "all"), "4 3") << "each line once";
    EXPECT_EQ(row({}, "file", "a.h"), "1 1");
    EXPECT_EQ(row({}, "file", "a.c"), "3 2");
    EXPECT_EQ(row({}, "image", "program"), "4 3");
    EXPECT_EQ(lines_of(a, a.instructions[0]), (std::vector<std::pair<Index, std::uint32_t>>{{0, 2}, {0, 3}}));

    Answers twice = a;
    merge(twice, a);
    ASSERT_EQ(twice.statements.size(), 1U);
    EXPECT_EQ(twice.statements[0].line, 3U);
}

TEST(Views, ProfileWithoutInterrupts) {
    Answers a;
    a.metrics.push_back({"instructions", "instructions"});
    a.functions.resize(3);
    a.functions[0].name = "main";
    a.functions[1].name = "[exception: IRQ]";
    a.functions[2].name = "handler";
    a.calls = {{none, none, CallNode::Kind::root, 0, {0}},
               {0, 0, CallNode::Kind::call, 1, {10}},
               {1, 1, CallNode::Kind::interrupt, 1, {0}},
               {2, 2, CallNode::Kind::call, 1, {7}},
               {1, 2, CallNode::Kind::signal, 1, {5}}};
    EXPECT_EQ(function_costs(a)[0].inclusive, Costs{22});
    EXPECT_EQ(function_costs(a, false)[0].inclusive, Costs{10});
    EXPECT_EQ(function_costs(a, false)[1].inclusive, Costs{7});
    EXPECT_EQ(function_costs(a, false)[2].inclusive, Costs{12});
}

TEST(Views, ProfileByLevel) {
    Answers answers = support::small_answers();
    answers.levels.clear();
    ProfileOptions options;
    options.by = "level";
    EXPECT_EQ(profile_view(answers, options).error().code, Errc::not_found);
    answers.levels = {{"Secure", "EL3", "AArch64", 2, {25}},
                      {"Non-secure", "EL0", "AArch32", 9, {75}},
                      {"Non-secure", "Hyp", "AArch32", 1, {0}},
                      {"Non-secure", "", "AArch32", 1, {0}}};
    const auto view = profile_view(answers, options);
    ASSERT_TRUE(view);
    ASSERT_EQ(view->table.size(), 4U);
    EXPECT_EQ(cell(*view, 0, "name").field(), "EL0 Non-secure AArch32");
    EXPECT_EQ(cell(*view, 0, "share").field(), "0.75");
    EXPECT_EQ(cell(*view, 0, "entered").field(), "9");
    EXPECT_EQ(cell(*view, 1, "name").field(), "EL3 Secure");
    EXPECT_EQ(cell(*view, 2, "name").field(), "Hyp Non-secure") << "equal ones by name";
    EXPECT_EQ(cell(*view, 3, "name").field(), "Non-secure");

    Answers twice = answers;
    merge(twice, answers);
    ASSERT_EQ(twice.levels.size(), 4U);
    const auto el0 =
        std::find_if(twice.levels.begin(), twice.levels.end(), [](const LevelRow& l) { return l.level == "EL0"; });
    ASSERT_NE(el0, twice.levels.end());
    EXPECT_EQ(el0->entered, 18U);
    EXPECT_EQ(el0->costs.front(), 150U);
    EXPECT_EQ(twice.levels.front().security, "Secure");
    options.only = {"main"};
    EXPECT_EQ(profile_view(answers, options).error().code, Errc::usage);
}

TEST(Views, ProfileHasTimesWhereTheyAreKnown) {
    const auto profile = [](const Answers& answers, const char* by) {
        ProfileOptions options;
        options.by = by;
        auto view = profile_view(answers, options);
        EXPECT_TRUE(view) << by;
        return std::move(*view);
    };
    const Answers a = support::small_answers();
    const View lines = profile(a, "line");
    EXPECT_EQ(cell(lines, row_of(lines, "line", "sort.c:22"), "times").field(), "5");
    EXPECT_EQ(cell(lines, row_of(lines, "line", "sort.c:13"), "times").field(), "1");
    EXPECT_EQ(cell(lines, row_of(lines, "line", "sort.c:22"), "line number").field(), "22");
    for (const char* by : {"function", "image"}) {
        const View view = profile(a, by);
        for (std::size_t row = 0; row < view.table.size(); ++row) EXPECT_EQ(cell(view, row, "times").field(), "") << by;
    }
    // Samples do not say how often anything ran.
    for (const char* by : {"line", "instruction"}) {
        const View view = profile(support::sampled_answers(), by);
        for (std::size_t row = 0; row < view.table.size(); ++row) EXPECT_EQ(cell(view, row, "times").field(), "") << by;
    }
}

TEST(Views, ProfileWritesLinesInOneForm) {
    for (const auto& [by, name] : {std::pair{"function", "compare"},
                                   {"line", "sort.c:40"},
                                   {"block", "compare"},
                                   {"instruction", "compare  nop"}}) {
        ProfileOptions options;
        options.by = by;
        const auto view = profile_view(support::small_answers(), options);
        ASSERT_TRUE(view) << by;
        EXPECT_EQ(cell(*view, row_of(*view, by, name), "line").field(), "sort.c:40") << by;
    }
}

TEST(Views, CoverageHasThreeClasses) {
    CoverageOptions options;
    options.fail_under = 90;
    const auto view = coverage_view(support::small_answers(), options);
    ASSERT_TRUE(view);
    ASSERT_EQ(view->sums.size(), 1U);
    EXPECT_EQ(view->sums[0].second,
              (View::Sums{{"all", 14}, {"executed", 12}, {"not_executed", 1}, {"not_observed", 1}}));
    ASSERT_EQ(view->remarks.size(), 1U);
    EXPECT_EQ(view->remarks[0].severity, Finding::Severity::bad) << view->remarks[0].what;
    options.uncovered = true;
    options.fail_under.reset();
    const auto uncovered = coverage_view(support::small_answers(), options);
    ASSERT_TRUE(uncovered);
    EXPECT_EQ(cell(*uncovered, 0, "class").field(), "not observed");
    EXPECT_EQ(cell(*uncovered, 0, "begin").field(), "0x8024");
}

TEST(Views, CoverageBeginsWithTheProgramsOwnCode) {
    Answers a = support::small_answers();
    a.images.push_back({"libc.so.6", "/usr/lib/libc.so.6", "b2", true, true});
    a.functions[2].image = 1;
    a.functions[2].source = none;
    const auto names = [&](const std::string& by, const std::string& sort) {
        CoverageOptions options;
        options.by = by;
        options.sort = sort;
        const auto view = coverage_view(a, options);
        std::vector<std::string> out;
        for (std::size_t row = 0; view && row < view->table.size(); ++row) out.push_back(cell(*view, row, by).field());
        return out;
    };
    EXPECT_EQ(names("image", "missing"), (std::vector<std::string>{"sort.elf", "libc.so.6", "all"}));
    EXPECT_EQ(names("image", "name"), (std::vector<std::string>{"libc.so.6", "sort.elf", "all"}));
    // A header of a library, inlined into the program.
    a.sources[1].path = "/usr/include/a.h";
    a.instructions[6].seen = Seen::not_executed;
    a.instructions[9].seen = Seen::executed;
    EXPECT_EQ(names("file", "missing").front(), "sort.c");
}

TEST(Views, ComparisonOfACaptureWithItself) {
    const Answers a = support::small_answers();
    DiffOptions options;
    options.threshold = 0;
    const auto same = compare(a, a, options);
    ASSERT_TRUE(same);
    for (std::size_t i = 0; i < same->view.table.size(); ++i) EXPECT_EQ(cell(same->view, i, "what").field(), "same");
    ASSERT_EQ(same->view.remarks.size(), 1U);
    EXPECT_EQ(same->view.remarks[0].severity, Finding::Severity::note);
    Answers b = a;
    b.calls[3].self[0] += 10;
    const auto more = compare(a, b, options);
    ASSERT_TRUE(more);
    EXPECT_EQ(more->after, more->before + 10);
    EXPECT_EQ(cell(more->view, 0, "function").field(), "compare");
    EXPECT_EQ(cell(more->view, 0, "exceeds").field(), "true");
}

/// A capture with the given functions: name, linkage name, image, cost, and other columns.
struct Code {
    std::string name, linkage_name;
    Index image;
    std::uint64_t cost;
};
Answers capture_of(std::string capture, std::vector<Image> images, const std::vector<Code>& code) {
    Answers a;
    a.capture = std::move(capture);
    a.unit = "PTM";
    a.metrics = {{"instructions", "instructions"}};
    a.images = std::move(images);
    std::uint64_t address = 0x8000;
    for (const Code& c : code) {
        const auto function = static_cast<Index>(a.functions.size());
        a.functions.push_back({c.name, c.linkage_name, c.image, address, 4, none, 0, false});
        a.instructions.push_back({address, 4, isa::Isa::a32, Seen::executed, function, none, 0, 1, {c.cost}, "nop"});
        address += 4;
    }
    return a;
}
Answers named_program(std::string capture, const std::string& file, const std::string& build, std::uint64_t area) {
    return capture_of(std::move(capture), {{file, "/tmp/" + file, build}, {"libc.so", "/lib/libc.so", "cc"}},
                      {{"main", "main", 0, 100},
                       {"area", "area", 0, area},
                       {"memcpy@plt", "memcpy@plt", 0, 6},
                       {"memcpy@plt", "memcpy@plt", 1, 70},
                       {"memcpy", "memcpy", 1, 1000}});
}
/// The same program without symbols.
Answers stripped_program(std::string capture, const std::string& file, const std::string& build, std::uint64_t area) {
    return capture_of(std::move(capture), {{file, "/tmp/" + file, build}, {"libc.so", "/lib/libc.so", "cc"}},
                      {{file + "+0x100?", "", 0, 100},
                       {file + "+0x1c0?", "", 0, area},
                       {"memcpy@plt", "memcpy@plt", 0, 6},
                       {"memcpy@plt", "memcpy@plt", 1, 70},
                       {"memcpy", "memcpy", 1, 1000}});
}
std::string said(const View& view, Finding::Severity severity) {
    std::string out;
    for (const Finding& f : view.remarks)
        if (f.severity == severity) out += f.what + "\n";
    return out;
}
using enum Finding::Severity;

TEST(DiffView, AFunctionWhoseNameOneSideLacksIsNotJudged) {
    const Answers before = named_program("old", "app", "a1", 20);
    DiffOptions options;
    options.only = {"area"};
    options.threshold_each = 100;
    for (const char* file : {"app", "app3"}) {  // under any name of the file
        const auto view = compare(before, stripped_program("new", file, "b2", 60), options);
        ASSERT_TRUE(view);
        EXPECT_TRUE(said(view->view, bad).starts_with("functions of app")) << said(view->view, bad);
        EXPECT_NE(said(view->view, bad).find("new knows no names for 9"), std::string::npos) << said(view->view, bad);
    }
    // If several files differ from those of the other side, each of them may contain the function.
    Answers after = stripped_program("new", "tool", "b2", 60);
    after.images.push_back({"other.so", "/lib/other.so", "dd"});
    after.functions.push_back({"other", "other", 2, 0x9000, 4, none, 0, false});
    after.instructions.push_back({0x9000, 4, isa::Isa::a32, Seen::executed, 5, none, 0, 1, {1}, "nop"});
    const auto several = compare(before, after, options);
    ASSERT_TRUE(several);
    EXPECT_TRUE(said(several->view, bad).starts_with("functions of app cannot")) << said(several->view, bad);
    // If all names are known, a missing function is gone.
    const Answers gone = capture_of("gone", before.images, {{"main", "main", 0, 100}, {"memcpy", "memcpy", 1, 1000}});
    const auto without = compare(before, gone, options);
    ASSERT_TRUE(without);
    EXPECT_EQ(said(without->view, bad), "");
    EXPECT_EQ(cell(without->view, 0, "what").field(), "gone");
}

TEST(DiffView, CodeWithoutNamesIsPairedAsItsImagesAre) {
    DiffOptions options;
    options.threshold = 1;
    const Answers before = stripped_program("old", "app-1.0", "a1", 20);
    const auto builds = compare(before, stripped_program("new", "app-1.1", "b2", 25), options);
    ASSERT_TRUE(builds);
    EXPECT_EQ(said(builds->view, bad), "");
    std::map<std::string, std::string> changes;
    for (std::size_t i = 0; i < builds->view.table.size(); ++i)
        changes[cell(builds->view, i, "function").field()] = cell(builds->view, i, "change").field();
    EXPECT_EQ(changes["(no symbol) in app-1.0"], "5");
    EXPECT_EQ(changes.size(), 3U);
    // Files without build IDs are compared by addresses, as are files with one name.
    const auto places =
        compare(stripped_program("old", "s_a", "", 20), stripped_program("new", "s_b", "", 25), options);
    ASSERT_TRUE(places);
    EXPECT_EQ(said(places->view, bad), "");
    EXPECT_EQ(cell(places->view, 0, "function").field(), "s_a+0x1c0?");
    EXPECT_EQ(cell(places->view, 0, "change").field(), "5");
    // Two programs that both have names, but different ones, are not the same program.
    const Answers other =
        capture_of("other", {{"tool", "", "e5"}}, {{"tool_a", "tool_a", 0, 100}, {"tool_b", "b", 0, 9}});
    const auto unlike = compare(named_program("old", "app", "a1", 20), other, options);
    ASSERT_TRUE(unlike);
    EXPECT_NE(said(unlike->view, bad).find("grew"), std::string::npos);
}

TEST(DiffView, PatternsOfImagesAreNotOfCodeWithoutNames) {
    DiffOptions options;
    options.only = {"app-*"};
    options.threshold_each = 50;
    const Answers old = stripped_program("old", "app-1.0", "a1", 20);
    const auto stripped = compare(old, stripped_program("new", "app-1.1", "b2", 25), options);
    ASSERT_TRUE(stripped);
    EXPECT_EQ(stripped->chosen_before, 126U);
    EXPECT_EQ(stripped->chosen_after, 131U);
    EXPECT_EQ(said(stripped->view, bad), "");
    options.only = {"*app-*"};
    const auto mixed =
        compare(named_program("old", "app-1.0", "a1", 20), stripped_program("new", "sapp-1.1", "b2", 25), options);
    ASSERT_TRUE(mixed);
    EXPECT_EQ(mixed->chosen_before, 126U);
    EXPECT_NE(said(mixed->view, bad).find("cannot be compared"), std::string::npos);
    // A name of such code selects it.
    ProfileOptions profile;
    profile.only = {"app-1.0+0x1c0?"};
    const auto one = profile_view(old, profile);
    ASSERT_TRUE(one);
    ASSERT_EQ(one->table.size(), 1U);
    EXPECT_EQ(cell(*one, 0, "instructions").field(), "20");
    profile.only = {"app-*"};
    ASSERT_EQ(profile_view(old, profile)->table.size(), 3U);
}

TEST(DiffView, OnlyAnImageIsThatImageAlone) {
    const Answers a = named_program("old", "app", "a1", 20), b = a;
    DiffOptions options;
    options.only = {"app"};
    const auto same = compare(a, b, options);
    ASSERT_TRUE(same);
    EXPECT_EQ(same->chosen_before, 126U) << "memcpy@plt of libc.so is not of app";
    EXPECT_EQ(same->chosen_after, 126U);
    options.only = {"memcpy@plt"};
    EXPECT_EQ(compare(a, b, options)->chosen_before, 76U) << "by name: of all images";
    options.only.clear();
    EXPECT_EQ(compare(a, b, options)->chosen_before, 1196U);
}

TEST(DiffView, AnImageThatOneSideLacksIsNotCompared) {
    const Answers app = named_program("one", "app", "a1", 20), tool = named_program("other", "tool", "b2", 20);
    DiffOptions options;
    const auto error = [&](const Answers& before, const Answers& after, const std::string& word) {
        options.only = {word};
        const auto view = compare(before, after, options);
        return view ? said(view->view, bad) + said(view->view, warning) : view.error().message;
    };
    EXPECT_NE(error(app, tool, "app").find("other has no image called 'app'"), std::string::npos);
    EXPECT_NE(error(app, tool, "app").find("It has: tool, libc.so."), std::string::npos);
    EXPECT_NE(error(app, tool, "tool").find("one has no image called 'tool'"), std::string::npos);
    EXPECT_NE(error(app, tool, "tool").find("It has: app, libc.so."), std::string::npos);
}

TEST(DiffView, CodeOfNoFileHasNoNames) {
    const Answers named = named_program("maps", "app", "a1", 20);
    Answers lost = capture_of("lost", {{"code_1.bin", "/tmp/code_1.bin", ""}},
                              {{"0x00008000", "", 0, 120}, {"0x3f7e69c8", "", 0, 1076}});
    DiffOptions options;
    options.threshold = 0;
    for (const bool dump_on_both : {false, true}) {
        Answers before = named;
        if (dump_on_both) {
            before.images.push_back(lost.images[0]);
            before.functions.push_back({"0x3f000000", "", 2, 0x3f000000, 4, none, 0, false});
            before.instructions.push_back({0x3f000000, 4, isa::Isa::a32, Seen::executed, 5, none, 0, 1, {1}, "nop"});
        }
        for (const auto& [x, y] : {std::pair(&before, &lost), std::pair(&lost, &before)}) {
            const auto view = compare(*x, *y, options);
            ASSERT_TRUE(view);
            EXPECT_EQ(said(view->view, bad).find("grew by more"), std::string::npos) << said(view->view, bad);
            EXPECT_NE(said(view->view, bad).find("lost knows no file for 100.0% of its code"), std::string::npos);
            EXPECT_NE(said(view->view, warning).find("Is its maps.txt missing"), std::string::npos);
        }
    }
    const auto itself = compare(lost, lost, options);
    ASSERT_TRUE(itself);
    EXPECT_EQ(said(itself->view, bad), "");
}

TEST(DiffView, WithinALimitOfAllCodeThatCannotBeComparedNothingIsLeftToJudge) {
    const Answers before = named_program("old", "app", "a1", 20);
    const Answers after = stripped_program("new", "app", "b2", 25);  // 125 of 1,196: 10.45%
    const auto is_bad = [&](auto&& set, const Answers& x, const Answers& y) {
        DiffOptions options;
        set(options);
        const auto view = compare(x, y, options);
        EXPECT_TRUE(view);
        return !said(view->view, bad).empty();
    };
    EXPECT_TRUE(is_bad([](DiffOptions& o) { o.threshold = 10.4; }, before, after));
    EXPECT_FALSE(is_bad([](DiffOptions& o) { o.threshold = 10.5; }, before, after));
    EXPECT_TRUE(is_bad([](DiffOptions& o) { o.threshold_count = 124; }, before, after));
    EXPECT_FALSE(is_bad([](DiffOptions& o) { o.threshold_count = 125; }, before, after));
    // If the image has few names on both sides, the growth of the function itself is unknown.
    EXPECT_TRUE(is_bad([](DiffOptions& o) { o.threshold_each = 1e6; }, before, after));
    Answers half = before;
    half.functions[0].linkage_name.clear();
    half.functions[0].name = "app+0x100?";
    EXPECT_TRUE(is_bad([](DiffOptions& o) { o.threshold_each = 50; }, half, after));
    EXPECT_TRUE(is_bad([](DiffOptions& o) { o.threshold_each = 50; }, after, before));
}

TEST(DiffView, OneRowOfSeveralFunctionsHidesNoGrowthUnderStrict) {
    const Answers before = stripped_program("old", "app", "a1", 20), after = stripped_program("new", "app", "b2", 15);
    const auto view = [&](bool strict, auto&& set) {
        DiffOptions options;
        options.strict = strict;
        set(options);
        auto compared = compare(before, after, options);
        EXPECT_TRUE(compared);
        return std::move(compared->view);
    };
    const auto each = [](DiffOptions& o) { o.threshold_each = 0; };
    EXPECT_EQ(said(view(false, each), bad), "");
    EXPECT_NE(said(view(false, each), warning).find("cannot be compared function by function"), std::string::npos);
    EXPECT_NE(said(view(true, each), bad).find("(--strict)"), std::string::npos);
    EXPECT_EQ(said(view(true, each), note).find("no function"), std::string::npos);
    // No function grew by more than the limit in total.
    EXPECT_EQ(said(view(true, [](DiffOptions& o) { o.threshold_count = 115; }), bad), "");
    EXPECT_NE(said(view(true, [](DiffOptions& o) { o.threshold_count = 114; }), bad), "");
    EXPECT_EQ(said(view(true, [](DiffOptions& o) { o.threshold_each = 0, o.least = 126; }), bad), "");
}

TEST(DiffView, FilesThatHaveTheSameSymbolsLackNone) {
    // Both builds export `area`; its cost decides how much of the image has a name. `symbols`: whether the file has the
    // symbols of all functions.
    const auto library = [](const char* capture, const char* build, std::uint64_t area, bool symbols) {
        Answers a = capture_of(capture, {{"lib.so", "/lib/lib.so", build}},
                               {{"lib.so+0x100?", "", 0, 100}, {"area", "area", 0, area}, {"old", "old", 0, 5}});
        if (area == 20) a.functions[2] = {"new", "new", 0, a.functions[2].address, 4, none, 0, false};
        a.images[0].has_symbols = symbols;
        return a;
    };
    DiffOptions options;
    options.threshold = 50;
    const auto same = compare(library("old", "a1", 400, false), library("new", "b2", 20, false), options);
    ASSERT_TRUE(same);
    EXPECT_EQ(said(same->view, bad), "");
    const auto others = compare(library("old", "a1", 40, true), library("new", "b2", 20, false), options);
    ASSERT_TRUE(others);
    EXPECT_NE(said(others->view, bad).find("new knows no names"), std::string::npos) << said(others->view, bad);
}

TEST(DiffView, FunctionsOfOneNameAreComparedEachWithItself) {
    const auto capture = [](const char* name, const char* build, std::uint64_t small, bool sources) {
        Answers a = capture_of(name, {{"app", "/tmp/app", build}},
                               {{"each", "each", 0, 1000}, {"each", "each", 0, small}, {"main", "main", 0, 5}});
        a.sources = {{"/x/a.c", {}}, {"/x/b.c", {}}};
        if (sources)
            for (Index i = 0; i < 2; ++i) a.functions[i].source = i;
        return a;
    };
    DiffOptions options;
    options.threshold_each = 10;
    options.strict = true;
    const auto known = compare(capture("old", "a1", 20, true), capture("new", "b2", 40, true), options);
    ASSERT_TRUE(known);
    EXPECT_NE(said(known->view, bad)
                  .find("1 function grew by more than 10% of their cost before: each "
                        "in b.c by 100.00%"),
              std::string::npos)
        << said(known->view, bad);
    EXPECT_EQ(cell(known->view, 0, "function").field(), "each");
    EXPECT_EQ(cell(known->view, 0, "function").shown, "each in b.c");
    EXPECT_EQ(cell(known->view, 0, "file").field(), "/x/b.c");
    const auto unknown = compare(capture("old", "a1", 20, false), capture("new", "b2", 40, false), options);
    ASSERT_TRUE(unknown);
    EXPECT_NE(said(unknown->view, bad).find("each: several functions have this name"), std::string::npos)
        << said(unknown->view, bad);
    // The same build has the functions at the same places.
    EXPECT_EQ(said(compare(capture("old", "a1", 20, false), capture("new", "a1", 20, false), options)->view, bad), "");
}

/// Two images whose names and builds contain a version number; both have `each` and the functions that every program
/// has.
Answers program_and_library(const std::string& version, std::uint64_t in_program, std::uint64_t in_library) {
    return capture_of(version,
                      {{"app-" + version, "/tmp/app", "a" + version}, {"lib-" + version, "/tmp/lib", "b" + version}},
                      {{"_init", "_init", 0, 3},
                       {"_fini", "_fini", 0, 2},
                       {"main", "main", 0, 100},
                       {"run", "run", 0, 50},
                       {"each", "each", 0, in_program},
                       {"_init", "_init", 1, 3},
                       {"_fini", "_fini", 1, 2},
                       {"work", "work", 1, 70},
                       {"help", "help", 1, 9},
                       {"each", "each", 1, in_library}});
}

TEST(DiffView, ImagesThatWereRenamedTogetherArePairedByWhatIsMostAlike) {
    DiffOptions options;
    options.threshold_count = 10;
    options.strict = true;
    options.only = {"app-*"};
    const Answers before = program_and_library("1", 20, 900);
    const auto grown = compare(before, program_and_library("2", 40, 30), options);
    ASSERT_TRUE(grown);
    EXPECT_EQ(grown->chosen_before, 175U);
    EXPECT_EQ(grown->chosen_after, 195U);
    EXPECT_NE(said(grown->view, bad).find("each by +20"), std::string::npos) << said(grown->view, bad);
    options.threshold_count = 0;
    const auto same = compare(before, program_and_library("2", 20, 900), options);
    ASSERT_TRUE(same);
    EXPECT_EQ(said(same->view, bad), "");
    EXPECT_EQ(said(same->view, warning), "");
}

TEST(DiffView, OfAnImageThatOneSideHasAloneNothingOfOthersIsChosen) {
    // Only `each` and the functions that every program has are alike.
    const Answers before = program_and_library("1", 20, 900);
    Answers after = program_and_library("2", 40, 30);
    for (Function& f : after.functions)
        if (f.name == "main" || f.name == "run" || f.name == "work" || f.name == "help")
            f.name = f.linkage_name = f.name + "_2";
    DiffOptions options;
    options.only = {"app-*"};
    const auto apart = compare(before, after, options);
    ASSERT_TRUE(apart);
    EXPECT_EQ(apart->chosen_before, 175U);
    EXPECT_EQ(apart->chosen_after, 195U);
}

TEST(DiffView, CodeWithoutNamesOfImagesThatNothingPairsIsNotJudged) {
    const auto capture = [](const std::string& name, const std::string& one, const std::string& other) {
        return capture_of(name, {{one, "", "a" + name}, {other, "", "b" + name}},
                          {{one + "+0x10?", "", 0, 100}, {other + "+0x10?", "", 1, 50}});
    };
    DiffOptions options;
    options.threshold_each = 5;
    const Answers before = capture("old", "app-1.0", "libx-1.0.so");
    const auto apart = compare(before, capture("new", "tool", "plug.so"), options);
    ASSERT_TRUE(apart);
    EXPECT_TRUE(said(apart->view, bad).starts_with("functions of plug.so, tool cannot be compared"))
        << said(apart->view, bad);
    EXPECT_EQ(said(apart->view, bad).find("grew"), std::string::npos) << said(apart->view, bad);
    // Another version number does not make another name.
    const auto version = compare(before, capture("new", "app-1.1", "libx-1.1.so"), options);
    ASSERT_TRUE(version);
    EXPECT_EQ(said(version->view, bad), "");
    // Within the limit nothing is left to judge.
    options.threshold_each.reset();
    options.threshold_count = 150;
    const auto within = compare(before, capture("new", "tool", "plug.so"), options);
    ASSERT_TRUE(within);
    EXPECT_EQ(said(within->view, bad), "");
}

TEST(DiffView, DebugInformationIsAdvisedWhereItWouldHelp) {
    const auto capture = [](const char* name, const char* build, bool sources) {
        Answers a = capture_of(name, {{"app", "/tmp/app", build}}, {{"each", "each", 0, 100}, {"each", "each", 0, 50}});
        a.sources = {{"/x/a.c", {}}};
        if (sources)
            for (Function& f : a.functions) f.source = 0;
        return a;
    };
    DiffOptions options;
    options.threshold_each = 5;
    for (const bool sources : {false, true}) {
        const auto view = compare(capture("old", "a1", sources), capture("new", "b2", sources), options);
        ASSERT_TRUE(view);
        const std::string text = said(view->view, warning);
        EXPECT_NE(text.find("each"), std::string::npos) << text;
        EXPECT_NE(text.find("several functions have this name"), std::string::npos) << text;
        EXPECT_EQ(text.find("(-g)") != std::string::npos, !sources) << text;
    }
}

TEST(DiffView, AFileWithoutFunctionsPassesNoGate) {
    const Answers before = named_program("old", "app", "a1", 20);
    Answers ranges = named_program("ranges", "app", "a1", 20);
    ranges.ranges.push_back({0, 0x100, 0x104, isa::Isa::a32, 2, 7, 0, 0});
    ranges.functions.clear();
    ranges.instructions.clear();
    DiffOptions options;
    options.threshold = 1;
    for (const bool strict : {false, true}) {
        options.strict = strict;
        for (const auto& refused : {compare(before, ranges, options), compare(ranges, before, options)}) {
            ASSERT_FALSE(refused);
            EXPECT_EQ(refused.error().code, Errc::not_found);
            EXPECT_NE(refused.error().message.find("--only-ranges"), std::string::npos) << refused.error().message;
        }
    }
    Answers nothing = before;
    for (Instruction& i : nothing.instructions) i.times = 0, i.costs = {0};
    ASSERT_FALSE(compare(before, nothing, options));
}

TEST(DiffView, TracesOfTwoUnitsWithoutACommonBuildAreDoubted) {
    Answers before = named_program("old", "app", "a1", 20), after = named_program("new", "app", "b2", 20);
    before.unit = "ETE";
    after.unit = "PTM";
    DiffOptions options;
    EXPECT_EQ(said(compare(before, after, options)->view, warning), "") << "libc.so is one build on both sides";
    after.images[1].build_id = "dd";
    EXPECT_NE(said(compare(before, after, options)->view, warning).find("ETE"), std::string::npos);
    options.strict = true;
    EXPECT_NE(said(compare(before, after, options)->view, bad).find("PTM"), std::string::npos);
    after.unit = "ETE";
    EXPECT_EQ(said(compare(before, after, options)->view, bad).find("PTM"), std::string::npos);
}

TEST(DiffView, CountsOfStretchesAreComparedBySharesWithIntervals) {
    Answers before = named_program("old", "app", "a1", 200), after = named_program("new", "app", "b1", 400);
    for (Answers* a : {&before, &after}) {
        a->metrics[0].exact = false;
        a->metrics[0].stretches = 20;
    }
    DiffOptions options;
    options.threshold_each = 20;
    const auto few = compare(before, after, options);
    ASSERT_TRUE(few);
    EXPECT_EQ(said(few->view, bad), "") << "twenty stretches do not tell";
    before.metrics[0].stretches = after.metrics[0].stretches = 2'000'000;
    const auto many = compare(before, after, options);
    ASSERT_TRUE(many);
    EXPECT_NE(said(many->view, bad).find("area"), std::string::npos) << said(many->view, bad);
    before.metrics[0].exact = true;
    EXPECT_FALSE(compare(before, after, options)) << "a whole run is no burst";
    const auto profile = profile_view(after, {});
    ASSERT_TRUE(profile);
    EXPECT_NE(cell(*profile, 0, "share_low").field(), "");
}

TEST(DiffView, SumsOfSaturatedCountsDoNotWrap) {
    Answers before = named_program("old", "app", "a1", 20), after = named_program("new", "app", "a1", 20);
    for (Instruction& i : after.instructions) i.costs = {~std::uint64_t{0}};
    const auto view = compare(before, after, {});
    ASSERT_TRUE(view);
    EXPECT_EQ(view->after, ~std::uint64_t{0});
    EXPECT_EQ(cell(view->view, 0, "what").field(), "more");
    const auto profile = profile_view(after, {});
    ASSERT_TRUE(profile);
}

TEST(DiffView, WhatIsNotZeroIsNotSaidToBe) {
    const Answers before = named_program("old", "app", "a1", 20);
    Answers after = named_program("new", "app", "b2", 21);
    after.instructions[4].costs = {100'000'000};
    Answers more = after;
    more.instructions[1].costs = {22};
    DiffOptions options;
    options.threshold = 0;
    const auto view = compare(after, more, options);
    ASSERT_TRUE(view);
    EXPECT_NE(said(view->view, bad).find("area by <0.01% of all before"), std::string::npos) << said(view->view, bad);
    EXPECT_EQ(cell(view->view, 0, "change_points").shown, "+<0.01%");
}

TEST(Views, OwnCodeThatMayHaveRunBeforeMainFailsStrictCoverage) {
    Answers a = support::small_answers();
    CoverageOptions options;
    options.strict = true;
    const auto fails = [&](const Answers& answers) {
        const auto view = coverage_view(answers, options);
        EXPECT_TRUE(view);
        return said(*view, bad);
    };
    EXPECT_EQ(fails(a), "") << "the account fails for other reasons, or does not";
    add(a.account, {.reason = AccountReason::before_start, .of = std::string(at_main)});
    const std::string why = fails(a);
    EXPECT_NE(why.find("1 instruction and "), std::string::npos) << why;
    EXPECT_NE(why.find("--from-start"), std::string::npos) << why;
    // Where the recording states which code ran before, nothing is in doubt.
    a.account.back().instructions = 98213;
    EXPECT_EQ(fails(a), "");
    a.account.back().instructions.reset();
    // Without --strict, only the account states it.
    options.strict = false;
    EXPECT_EQ(fails(a), "");
    // For a limit, code that was not observed counts as not run.
    options.strict = true;
    options.fail_under = 1;
    EXPECT_EQ(fails(a), "");
    options.fail_under.reset();
    // All code was seen.
    Answers seen = a;
    for (Instruction& i : seen.instructions) i.seen = Seen::executed;
    for (Branch& b : seen.branches) b.seen_taken = b.seen_not_taken = Seen::executed;
    EXPECT_EQ(fails(seen), "");
    // Code of the system does not count as the program's own.
    for (Image& image : a.images) image.path = image.recorded = "/usr/lib/" + image.name;
    EXPECT_EQ(fails(a), "");
}

TEST(Views, RowsOfCoverageKnowTheirSubject) {
    const Answers a = support::small_answers();
    for (const CoverageRow& row : coverage_counts(a, "file").rows) {
        if (row.source == none) continue;
        EXPECT_EQ(row.path, path_text(a, row.source));
        EXPECT_EQ(row.image, none);
    }
    EXPECT_TRUE(std::ranges::any_of(coverage_counts(a, "file").rows, [](const auto& row) { return row.source == 0; }));
    EXPECT_TRUE(std::ranges::any_of(coverage_counts(a, "file").rows, [](const auto& row) { return row.source == 1; }));
    for (const CoverageRow& row : coverage_counts(a, "function").rows) {
        ASSERT_LT(row.function, a.functions.size());
        EXPECT_EQ(row.image, a.functions[row.function].image);
        EXPECT_EQ(row.name, a.functions[row.function].name);
    }
    for (const CoverageRow& row : coverage_counts(a, "image").rows) EXPECT_EQ(row.source, none);
}

TEST(Views, AGateOnCoverageNeedsToKnowAllThereIs) {
    Answers a = support::small_answers();
    CoverageOptions options;
    options.fail_under = 10;
    const auto view = [&] {
        auto out = coverage_view(a, options);
        EXPECT_TRUE(out);
        return std::move(*out);
    };
    EXPECT_EQ(said(view(), warning), "");
    a.images[0].whole = false;
    EXPECT_NE(said(view(), warning).find("of sort.elf is not known"), std::string::npos);
    EXPECT_EQ(said(view(), bad), "");
    options.strict = true;
    EXPECT_NE(said(view(), bad).find("of sort.elf is not known"), std::string::npos);
    // A function that is chosen by its whole name is known if its symbol says where it ends.
    options.only = {a.functions[0].name};
    EXPECT_EQ(said(view(), bad), "");
    a.functions[0].bytes = 0;
    EXPECT_NE(said(view(), bad).find("of sort.elf is not known"), std::string::npos);
    a.functions[0].bytes = 4;
    a.functions[0].linkage_name.clear();
    EXPECT_NE(said(view(), bad).find("of sort.elf is not known"), std::string::npos);
}

TEST(DiffView, DifferencesHaveASignAndDoNotWrap) {
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    EXPECT_EQ(difference(20, 5), 15);
    EXPECT_EQ(difference(5, 20), -15);
    EXPECT_EQ(difference(5, 5), 0);
    EXPECT_EQ(difference(~std::uint64_t{0}, 0), most);
    EXPECT_EQ(difference(0, ~std::uint64_t{0}), -most);
}

std::string_view type_text(const Column& column) {
    switch (column.type) {
        case Column::Type::text: return "text";
        case Column::Type::integer: return "whole number";
        case Column::Type::real: return "number";
        case Column::Type::address: return "address";
        case Column::Type::flag: return "true or false";
        case Column::Type::bar: return "";
    }
    return "";
}

void describe(std::string& out, const std::string& command, const View& view) {
    out += "\n## `waymark " + command + "`\n\n| column | type | unit | meaning |\n|---|---|---|---|\n";
    std::set<std::string> names;
    for (const Column& c : view.table.columns) {
        if (c.name.empty()) continue;
        EXPECT_TRUE(names.insert(c.name).second) << command << ": two columns are called " << c.name;
        EXPECT_FALSE(c.what.empty()) << command << ": " << c.name << " has no meaning";
        out += "| `" + c.name + "` | " + std::string(type_text(c)) + " | " + c.unit + " | " + c.what + " |\n";
    }
}

std::string document() {
    std::string out =
        "# Columns of tables\n\n"
        "What `--format tsv` and `--format json` of the commands that show answers contain, here for a trace that "
        "counts\n"
        "instructions and cycles. A column with costs is there once for each metric of the capture. Fields that are "
        "not\n"
        "known are empty, in JSON null. Addresses are text in hexadecimal.\n\n"
        "Made from the code that prints the tables: `WM_UPDATE_APPROVED=1 ctest -R answers.ColumnsDocument` writes it\n"
        "anew. [sqlite-schema.md](sqlite-schema.md) describes the tables of exports.\n";
    const Answers a = support::small_answers();
    for (const char* by : {"function", "line", "block", "instruction", "image", "level"}) {
        ProfileOptions options;
        options.by = by;
        describe(out, std::string("profile --by ") + by, *profile_view(a, options));
    }
    ProfileOptions inlines;
    inlines.inlines = true;
    describe(out, "profile --inlines", *profile_view(a, inlines));
    CoverageOptions coverage;
    describe(out, "coverage", *coverage_view(a, coverage));
    coverage.uncovered = true;
    describe(out, "coverage --uncovered", *coverage_view(a, coverage));
    describe(out, "branches", *branch_view(a, {}));
    describe(out, "loops", *loop_view(a, {}));
    describe(out, "exceptions", *exception_view(a, {}));
    CallOptions calls;
    calls.function = "sort";
    describe(out, "calls", *call_view(a, calls));
    describe(out, "diff", compare(a, a, {})->view);
    return out;
}

/// f calls g twice and h once, an exception interrupts the second call of g, and trace was lost in the third call of f.
Answers single_calls() {
    Answers a;
    a.capture = "calls";
    a.unit = "ETE";
    a.metrics.push_back({"instructions", "instructions"});
    for (const char* name : {"main", "f(int)", "g", "h", "[exception: IRQ]", "handler"})
        a.functions.emplace_back().name = name;
    a.functions[4].synthetic = true;
    using Kind = CallNode::Kind;
    a.calls = {{none, none, Kind::root, 0, {}}, {0, 0, Kind::unsynchronised, 1, {}}, {1, 1, Kind::call, 5, {}},
               {2, 2, Kind::call, 3, {}},       {2, 3, Kind::call, 1, {}},           {3, 4, Kind::interrupt, 1, {}},
               {5, 5, Kind::call, 1, {}}};
    a.timeline.tracks = {{"core", none}};
    a.timeline.slices = {{0, 1000, 0, 0, 0},  {10, 30, 0, 1, 1},   {15, 20, 0, 2, 2},    {40, 140, 0, 1, 1},
                         {50, 80, 0, 2, 2},   {60, 76, 0, 4, 3},   {61, 76, 0, 5, 4},    {90, 130, 0, 3, 2},
                         {200, 210, 0, 1, 1}, {300, 900, 0, 1, 1}, {990, 1000, 0, 1, 1}, {995, 999, 0, 2, 2}};
    a.timeline.marks = {{400, 400, 0, TimelineMark::Kind::gap, "gap"}};
    return a;
}

View calls_of(const Answers& a, bool callees, bool interrupts) {
    CallOptions options;
    options.function = "f";
    options.callees = callees;
    options.interrupts = interrupts;
    return call_view(a, options).value();
}
std::vector<std::string> column(const View& view, std::string_view name) {
    std::vector<std::string> out;
    for (std::size_t i = 0; i < view.table.size(); ++i) out.push_back(cell(view, i, name).field());
    return out;
}
std::map<std::string, std::uint64_t> sums_of(const View& view, std::string_view name) {
    for (const auto& [of, sums] : view.sums)
        if (of == name) return {sums.begin(), sums.end()};
    return {};
}
using Texts = std::vector<std::string>;

TEST(CallView, LengthsOfSingleCalls) {
    const Answers a = single_calls();
    const View all = calls_of(a, true, true);
    EXPECT_EQ(column(all, "length"), (Texts{"600", "100", "20", "10", "10"}));
    EXPECT_EQ(column(all, "bound"), (Texts{"at least", "exact", "exact", "exact", "at least"}))
        << "trace was lost in one, and ended in another";
    EXPECT_EQ(column(all, "begin"), (Texts{"300", "40", "10", "200", "990"}));
    EXPECT_EQ(column(all, "caller"), Texts(5, "main"));
    EXPECT_EQ(column(all, "longer_in"), (Texts{"own code +582", "h +27", "", "", ""}));
    EXPECT_EQ(sums_of(all, "durations"), (std::map<std::string, std::uint64_t>{{"calls", 5},
                                                                               {"timed", 5},
                                                                               {"whole", 3},
                                                                               {"merged", 0},
                                                                               {"least", 10},
                                                                               {"median", 20},
                                                                               {"p95", 100},
                                                                               {"p99", 100},
                                                                               {"most", 100}}));
    std::uint64_t in_bars = 0;
    for (const auto& [first, calls] : sums_of(all, "histogram")) in_bars += calls;
    EXPECT_EQ(in_bars, 3U);
    EXPECT_EQ(column(calls_of(a, true, false), "length"), (Texts{"600", "84", "20", "10", "10"}));
    EXPECT_EQ(column(calls_of(a, false, true), "length"), (Texts{"600", "46", "15", "10", "6"}));
    EXPECT_EQ(column(calls_of(a, false, false), "length"), (Texts{"600", "30", "15", "10", "6"}));
}

TEST(CallView, SharesAreOfAllCallsThatAreTimed) {
    Answers a = single_calls();
    const View all = calls_of(a, true, true);
    for (const std::size_t row : {0U, 1U, 4U}) {
        const double length = std::stod(cell(all, row, "length").field());
        EXPECT_NEAR(std::stod(cell(all, row, "share").field()), length / 740, 0.0001) << row;
    }
    a.timeline.resolution = 1500;
    for (Slice& slice : a.timeline.slices) slice.merged = slice.function == 1 ? 3 : 1;
    CallOptions options;
    options.function = "f";
    const auto none = call_view(a, options);
    ASSERT_FALSE(none);
    EXPECT_TRUE(none.error().message.ends_with(
        "no single call of 'f' is on the timeline; calls shorter than 1,500 instructions are merged"))
        << none.error().message;
}

/// Calls of these lengths, one after the other.
Answers calls_in_a_row(const std::vector<std::uint64_t>& lengths) {
    Answers a = single_calls();
    a.calls[2].calls = lengths.size();
    a.timeline.marks.clear();
    a.timeline.slices = {{0, 20000, 0, 0, 0}};
    std::uint64_t at = 10;
    for (const std::uint64_t length : lengths) {
        a.timeline.slices.push_back({at, at + length, 0, 1, 1});
        at += length + 10;
    }
    return a;
}

TEST(CallView, PercentilesAreTheLeastLengthsThatSufficeForThem) {
    std::vector<std::uint64_t> lengths;
    for (std::uint64_t i = 1; i <= 100; ++i) lengths.push_back(i);
    for (const auto& [name, length] : {std::pair("median", 50), {"p95", 95}, {"p99", 99}, {"most", 100}})
        EXPECT_EQ(sums_of(calls_of(calls_in_a_row(lengths), true, true), "durations").at(name),
                  static_cast<std::uint64_t>(length))
            << name;
    lengths.push_back(101);
    EXPECT_EQ(sums_of(calls_of(calls_in_a_row(lengths), true, true), "durations").at("median"), 51U);
    EXPECT_EQ(sums_of(calls_of(calls_in_a_row({7}), true, true), "durations").at("p99"), 7U);
}

// If lengths differ by more than a factor of 16, widths double from bar to bar.
TEST(CallView, BarsOfVeryDifferentLengths) {
    using Bars = std::map<std::string, std::uint64_t>;
    const auto bars = [](const std::vector<std::uint64_t>& lengths) {
        return sums_of(calls_of(calls_in_a_row(lengths), true, true), "histogram");
    };
    EXPECT_EQ(bars({1, 2, 3, 100}), (Bars{{"1", 1}, {"2", 2}, {"4", 0}, {"8", 0}, {"16", 0}, {"32", 0}, {"64", 1}}));
    EXPECT_EQ(bars({0, 1, 17}), (Bars{{"0", 1}, {"1", 1}, {"2", 0}, {"4", 0}, {"8", 0}, {"16", 1}}));
    EXPECT_EQ(bars({5, 5}), (Bars{{"5", 2}}));
}

TEST(CallView, AFunctionWithoutAKnownCallerMayHaveBegunBeforeTheTrace) {
    Answers a = single_calls();
    using Kind = CallNode::Kind;
    a.timeline.marks.clear();
    a.timeline.slices = {{0, 50, 0, 1, 0}, {50, 100, 0, 0, 0}};
    a.calls = {{none, none, Kind::root, 0, {}}, {0, 1, Kind::call, 1, {}}, {0, 0, Kind::call, 1, {}}};
    EXPECT_EQ(column(calls_of(a, true, true), "bound"), Texts{"exact"});
    a.calls[1].kind = Kind::unsynchronised;
    EXPECT_EQ(column(calls_of(a, true, true), "bound"), Texts{"at least"});
}

TEST(CallView, SaysWhatItCannotKnow) {
    Answers a = single_calls();
    a.timeline.resolution = 16;
    a.timeline.slices[8].merged = 3;
    const View merged = calls_of(a, true, true);
    EXPECT_EQ(sums_of(merged, "durations").at("merged"), 3U);
    EXPECT_EQ(sums_of(merged, "durations").at("whole"), 2U);
    EXPECT_EQ(cell(merged, 1, "bound").field(), "at least");
    EXPECT_FALSE(merged.remarks.empty());
    a = single_calls();
    a.account = {{.reason = AccountReason::off, .times = 2}};
    EXPECT_EQ(cell(calls_of(a, true, true), 1, "bound").field(), "at least") << "no mark shows where the unit was off";
    EXPECT_EQ(calls_of(a, true, true).above.front(), "5 calls of f, 3 whole as far as is known");
    EXPECT_EQ(calls_of(single_calls(), true, true).above.front(), "5 calls of f, 3 whole");
    Answers begun = single_calls();
    begun.calls[2].calls = 4;
    EXPECT_TRUE(calls_of(begun, true, true)
                    .above.front()
                    .ends_with("; 1 more had begun before trace did, or where flow was lost"))
        << calls_of(begun, true, true).above.front();
    a.account = {{.reason = AccountReason::strobing, .times = 2}};
    EXPECT_NE(calls_of(a, true, true).below.front().find("two calls or more may be counted as one"), std::string::npos);
    a.timeline.axis.unit = "ticks";
    EXPECT_EQ(cell(calls_of(a, true, true), 1, "bound").field(), "estimate");
    CallOptions options;
    options.function = "f";
    options.metric = "cycles";
    EXPECT_EQ(call_view(a, options).error().code, Errc::usage);
    options = {};
    options.function = "ff";
    EXPECT_EQ(call_view(a, options).error().code, Errc::not_found);
    options.function = "h*";
    options.slowest = 1;
    EXPECT_EQ(call_view(a, options)->table.size(), 1U);
    a.timeline = {};
    EXPECT_EQ(call_view(a, options).error().code, Errc::not_found);
}

TEST(BranchView, SortsAndCountsWhatItIsAskedFor) {
    Answers a = support::small_answers();
    a.branches[1].taken = 2;
    a.branches[1].not_taken = 0;
    a.branches[1].seen_not_taken = Seen::not_observed;
    BranchOptions options;
    const auto addresses = [&] { return column(branch_view(a, options).value(), "address"); };
    const Texts by_times{"0x8014", "0x801c", "0x8030", "0x8004", "0x8008", "0x8020", "0x800c"};
    EXPECT_EQ(addresses(), by_times);
    const View all = branch_view(a, options).value();
    EXPECT_EQ(column(all, "times"), (Texts{"5", "5", "5", "2", "2", "2", "1"}));
    EXPECT_EQ(column(all, "one_sided"), (Texts{"false", "false", "false", "false", "true", "false", "false"}));
    EXPECT_EQ(column(all, "kind"), (Texts{"call", "conditional", "return", "call", "conditional", "return", "return"}));
    EXPECT_EQ(column(all, "not_taken"), (Texts{"", "2", "", "", "0", "", ""}));
    EXPECT_EQ(cell(all, 4, "not_taken").shown, "0?") << "flow was lost there";
    EXPECT_EQ(cell(all, 1, "taken_share").field(), "0.6");
    EXPECT_EQ(all.below, Texts{"7 branches ran 22 times"});
    options.metric = "address";
    EXPECT_EQ(addresses(), by_times) << "no metric sorts branches";
    options.metric.clear();
    options.sort = "address";
    EXPECT_EQ(addresses(), (Texts{"0x8004", "0x8008", "0x800c", "0x8014", "0x801c", "0x8020", "0x8030"}));
    options.sort = "balance";
    EXPECT_EQ(addresses().front(), "0x801c");
    options.sort = "mispredicted";
    EXPECT_EQ(addresses(), by_times);
    EXPECT_NE(said(branch_view(a, options).value(), note).find("mispredicted"), std::string::npos);
    for (std::uint64_t i = 0; i < a.branches.size(); ++i) a.branches[i].mispredicted = i;
    EXPECT_EQ(addresses().front(), "0x8030");
    options = {};
    options.one_sided = true;
    EXPECT_EQ(addresses(), Texts{"0x8008"});
    options = {};
    options.function = "main";
    EXPECT_EQ(addresses(), (Texts{"0x8004", "0x8008", "0x800c"}));
    a.branches.clear();
    EXPECT_EQ(branch_view(a, options).error().code, Errc::not_found);
}

TEST(BranchView, SamplesAreNoExecutions) {
    Answers a = support::small_answers();
    a.unit = "SPE";
    a.branches[4].mispredicted = 2;
    const View view = branch_view(a, {}).value();
    EXPECT_EQ(column(view, "mispredicted"), (Texts{"", "2", "", "", "", "", ""}));
    EXPECT_EQ(cell(view, 1, "mispredicted_share").field(), "0.4");
    ASSERT_EQ(view.below.size(), 2U);
    EXPECT_EQ(view.below[0].substr(0, view.below[0].find(';')), "7 branches in 22 samples");
}

TEST(BranchList, OutcomesAreTheBitsOfBytesFromTheLowestOn) {
    const Outcomes outcomes{{0b0000'0101, 0b0000'0010}, 10};
    for (std::uint32_t n = 0; n < outcomes.count; ++n) EXPECT_EQ(outcomes.taken(n), n == 0 || n == 2 || n == 9) << n;
}

TEST(Interval, IsThatOfWilson) {
    const auto is = [](Interval found, double low, double high) {
        EXPECT_NEAR(found.low, low, 1e-4);
        EXPECT_NEAR(found.high, high, 1e-4);
    };
    // These are values from published tables.
    is(wilson_95(5, 10), 0.2366, 0.7634);
    is(wilson_95(1, 10), 0.0179, 0.4042);
    is(wilson_95(0, 10), 0, 0.2775);
    is(wilson_95(10, 10), 0.7225, 1);
    is(wilson_95_of(1, 2, 10), 0.2366, 0.7634);
    is(wilson_95(0, 0), 0, 1);
    is(wilson_95_of(1, 2, 0), 0, 1);
    is(wilson_95_of(0, 1, 1), 0, 0.7935);
}

TEST(Table, BarsAreColouredFromATenthOn) {
    EXPECT_EQ(Cell::bar(1, 10).colour, Colour::cyan);
    EXPECT_EQ(Cell::bar(9, 100).colour, Colour::plain);
    EXPECT_EQ(Cell::bar(0, 0).colour, Colour::plain);
}

TEST(Views, KindsOfCodeAreKnownFromFiles) {
    Answers a = support::small_answers();
    a.sources = {{.path = "/home/me/app.c"}, {.path = "/usr/include/c++/12/vector"}};
    a.images = {{.name = "app", .path = "/home/me/app"},
                {.name = "libc.so.6", .path = "/home/me/sysroot/lib/libc.so.6"},
                {.name = "libmine.so", .path = "/home/me/libmine.so"},
                {.name = "ld-linux-aarch64.so.1", .path = "copies/ld-linux-aarch64.so.1"},
                {.name = "libother.so", .path = "/home/me/libother.so", .recorded = "/usr/lib/libother.so"}};
    a.functions.clear();
    const auto add = [&](Index image, Index source) {
        a.functions.push_back({.name = "f", .image = image, .source = source});
    };
    add(0, 0);     // own
    add(0, 1);     // of a header of the system, in the program
    add(0, none);  // without lines where others have some
    add(2, none);  // of a file without any lines
    for (const Index image : {1U, 3U, 4U}) add(image, none);
    add(none, 0);
    using enum CodeKind;
    EXPECT_EQ(code_kinds(a), (std::vector{own, library, library, own, system, system, system, system}));
    EXPECT_EQ(functions_of(a, library), (std::vector<bool>{true, true, true, true, false, false, false, false}));
    const Chosen chosen(a, {"app"}, library);
    EXPECT_TRUE(chosen(2, none));
    EXPECT_FALSE(chosen(3, none)) << "not of --only";
    EXPECT_FALSE(chosen(none, none));
    EXPECT_EQ(chosen.options(), "--code libraries and --only");
    EXPECT_EQ(chosen.unknown(), "");
    for (Image& image : a.images) image.path = image.recorded = "/usr/bin/" + image.name;
    EXPECT_NE(Chosen(a, {}, own).unknown().find("--code own: "), std::string::npos);
    EXPECT_EQ(Chosen(a, {}).unknown(), "");
}

// None of its code can be counted, so there is no total: neither of functions, nor for a limit.
TEST(Views, CoverageNamesFilesThatRanAndWereNotFound) {
    Answers a = support::small_answers();
    std::string name = "libfar.so";
    CoverageOptions options;
    options.fail_under = 10;
    const auto is_named = [&](std::string_view where) {
        a.account = {{.reason = AccountReason::no_image, .of = name, .times = 3}};
        const View view = coverage_view(a, options).value();
        return (where == "below" ? view.below.front() : said(view, Finding::Severity::warning)).find(name) !=
               std::string::npos;
    };
    EXPECT_TRUE(is_named("below"));
    EXPECT_TRUE(is_named("warning"));
    EXPECT_EQ(std::ranges::count(coverage_counts(a, "function", {}).not_whole, "libfar.so"), 1);
    options.only = {"sort"};
    EXPECT_FALSE(is_named("below")) << "known code was chosen";
    EXPECT_FALSE(is_named("warning"));
    options.only.clear();
    name = "[vdso]";
    EXPECT_TRUE(is_named("warning"));
    options.code = CodeKind::own;
    EXPECT_FALSE(is_named("warning")) << "the kernel's";
    name = a.images[0].name;
    options.code = CodeKind::system;
    EXPECT_FALSE(is_named("warning")) << "the file was found: other code of the file ran";
}

TEST(Views, EntriesOfLoopsAreNoBoundsWhereTraceBeginsAnew) {
    Answers a = support::small_answers();
    const auto said = [&] { return loop_view(a, {})->below.back(); };
    const auto said_of_entries = [&] {
        return said().find("entries, and so means, are no bounds") != std::string::npos;
    };
    a.account = {{.reason = AccountReason::decoded, .instructions = 9}};
    EXPECT_FALSE(said_of_entries());
    add(a.account, {.reason = AccountReason::before_start});
    EXPECT_NE(said().find("they are lower bounds"), std::string::npos);
    EXPECT_FALSE(said_of_entries());
    // All that ran was followed.
    for (const AccountReason reason : {AccountReason::no_functions, AccountReason::no_context,
                                       AccountReason::shared_address, AccountReason::not_kept}) {
        a.account = {{.reason = AccountReason::decoded, .instructions = 9}, {.reason = reason}};
        EXPECT_NE(said().find("as figures of the run"), std::string::npos) << said();
        EXPECT_FALSE(said_of_entries()) << said();
    }
    add(a.account, {.reason = AccountReason::off});
    EXPECT_TRUE(said_of_entries()) << said();
}

// A line of the file begins at an instruction that was inlined from another file: with --only it counts as without.
TEST(Views, CoverageCountsTheSameLinesWithOnly) {
    Answers a = support::small_answers();
    a.statements = {{0x8018, 1, 0, 23}};  // beside inline.h:7
    CoverageOptions options;
    options.by = "function";
    const auto lines = [&] {
        const View view = coverage_view(a, options).value();
        return cell(view, row_of(view, "function", "sort(int*, int)"), "lines").field();
    };
    EXPECT_EQ(lines(), "7");
    options.only = {"sort.c"};
    EXPECT_EQ(lines(), "6") << "all but inline.h:7";
    options.only = {"inline.h"};
    EXPECT_EQ(lines(), "1");
}

// An unknown number is empty in every format, and never 0.
TEST(Views, WhatIsNotKnownIsNotZero) {
    Answers a = support::small_answers();
    a.exceptions = {{.name = "came back", .times = 2, .least = 3, .most = 4, .sum = 7, .returned = 2},
                    {.name = "left out", .times = 1}};
    const View exceptions = exception_view(a, {}).value();
    const std::size_t unknown = row_of(exceptions, "exception", "left out");
    for (const char* const time : {"least", "mean", "most", "sum"}) {
        EXPECT_EQ(cell(exceptions, unknown, time).field(), "") << time;
        EXPECT_NE(cell(exceptions, 1 - unknown, time).field(), "") << time;
    }
    a.calls.clear();  // as of samples
    const View profile = profile_view(a, {}).value();
    EXPECT_EQ(cell(profile, 0, "calls").field(), "");
}

TEST(Views, MeansOfHardwareLoopsAreNoBoundsWhereTraceIsMissing) {
    Answers a = support::small_answers();
    a.unit = "DPU";
    a.account = {{.reason = AccountReason::decoded, .instructions = 9}};
    const auto said = [&] { return loop_view(a, {})->below.back(); };
    EXPECT_EQ(said().find("no bounds"), std::string::npos) << said();
    add(a.account, {.reason = AccountReason::held});
    EXPECT_NE(said().find("means are no bounds"), std::string::npos) << said();
}

TEST(Views, CoverageIsSortedByWhatIsMissing) {
    Answers a = support::small_answers();
    a.branches[1].not_taken = 0;
    a.branches[1].seen_not_taken = Seen::not_executed;
    CoverageOptions options;
    options.by = "function";
    const auto functions = [&] {
        Texts out = column(coverage_view(a, options).value(), "function");
        out.pop_back();  // all
        return out;
    };
    EXPECT_EQ(functions(), (Texts{"compare", "sort(int*, int)", "main"}));
    EXPECT_EQ(coverage_view(a, options)->below.front(), "3 of 3 functions ran");
    a.account = {{.reason = AccountReason::decoded, .instructions = 9}, {.reason = AccountReason::overflow}};
    EXPECT_EQ(coverage_view(a, options)->below.front(), "at least 3 of 3 functions ran");
    // Code of another file may have run in place of this.
    a.account.push_back({.reason = AccountReason::shared_address});
    EXPECT_EQ(coverage_view(a, options)->below.front(), "about 3 of 3 functions ran");
    a.account.clear();
    Answers less = a;
    for (Instruction& i : less.instructions)
        if (i.function == 2) i.seen = Seen::not_executed;
    EXPECT_EQ(coverage_view(less, options)->below.front(), "2 of 3 functions ran");
    options.sort = "name";
    EXPECT_EQ(functions(), (Texts{"compare", "main", "sort(int*, int)"}));
    options.sort.clear();
    options.of = "branches";
    EXPECT_EQ(functions().front(), "main");
    options.uncovered = true;
    const View rows = coverage_view(a, options).value();
    EXPECT_EQ(column(rows, "what"), (Texts{"code", "code", "always taken"}));
    EXPECT_EQ(column(rows, "instructions"), (Texts{"1", "1", ""}));
    EXPECT_EQ(column(rows, "begin"), (Texts{"0x8024", "0x8034", "0x8008"}));
}

TEST(Views, LevelsAreSortedAsAskedFor) {
    Answers a = support::small_answers();
    a.levels = {{"Secure", "EL3", "AArch64", 2, {75, 1}}, {"Non-secure", "EL0", "AArch32", 9, {25, 3}}};
    ProfileOptions options;
    options.by = "level";
    const auto levels = [&] { return column(profile_view(a, options).value(), "name"); };
    const Texts by_cost{"EL3 Secure", "EL0 Non-secure AArch32"}, others{"EL0 Non-secure AArch32", "EL3 Secure"};
    EXPECT_EQ(levels(), by_cost);
    for (const char* sort : {"name", "calls"}) {
        options.sort = sort;
        EXPECT_EQ(levels(), others) << sort;
        EXPECT_TRUE(profile_view(a, options)->remarks.empty());
    }
    options.sort = "inclusive";
    EXPECT_EQ(levels(), by_cost);
    EXPECT_NE(said(profile_view(a, options).value(), note).find("inclusive"), std::string::npos);
    options = {};
    options.by = "level";
    options.metric = "cycles";
    EXPECT_EQ(levels(), others);
}

TEST(Views, LevelsAndExceptionsSayWhatTheirCountsAreOf) {
    Answers a = support::small_answers();
    a.levels = {{"Secure", "EL3", "AArch64", 2, {75, 1}}};
    a.exceptions = {{.name = "interrupt", .times = 2}};
    a.account = {{.reason = AccountReason::decoded, .instructions = 9}};
    ProfileOptions options;
    options.by = "level";
    const auto below = [](const View& view) { return fmt::format("{}", fmt::join(view.below, "\n")); };
    const auto levels = [&] { return below(profile_view(a, options).value()); };
    const auto exceptions = [&] { return below(exception_view(a, {}).value()); };
    EXPECT_EQ(levels().find("counts are"), std::string::npos);
    a.account.push_back({.reason = AccountReason::overflow});
    EXPECT_NE(levels().find("counts are of what was decoded; as figures of the run they are lower"), std::string::npos);
    a.account.back() = {.reason = AccountReason::no_functions, .instructions = 4};
    EXPECT_NE(levels().find("counts are of the captures that have functions"), std::string::npos);
    EXPECT_EQ(exceptions().find("counts are"), std::string::npos) << "captures without functions have exceptions";
    a.account.push_back({.reason = AccountReason::overflow});
    EXPECT_NE(exceptions().find("counts are of what was decoded"), std::string::npos);
    // A file with only ranges has no levels, whether its trace had contexts or not.
    a.levels.clear();
    a.calls.clear();
    a.instructions.clear();
    a.ranges.push_back({0, 0x1000, 0x1004, isa::Isa::a64, 2, 7, 0, 0});
    EXPECT_NE(profile_view(a, options).error().message.find("only ranges"), std::string::npos);
}

TEST(CallView, LengthsInCyclesThatAreSpreadAreEstimates) {
    Answers a = support::small_answers();
    a.account = {{.reason = AccountReason::decoded, .instructions = 9}};
    a.timeline.axis.unit = "cycles";
    a.metrics = {{"instructions", "instructions"}, {"cycles", "cycles"}};
    EXPECT_EQ(call_bound(a, 0), "exact");
    a.metrics[1].note = "each count is spread";
    EXPECT_EQ(call_bound(a, 0), "estimate");
    a.metrics[1] = {"cycles", "cycles", false};
    EXPECT_EQ(call_bound(a, 0), "estimate");
    a.timeline.axis.unit = "instructions";
    EXPECT_EQ(call_bound(a, 0), "exact");
}

TEST(Views, ProfileShowsWhatWasInlined) {
    Answers a = support::small_answers();
    a.inlined = {{none, 1, "swap", "", 0, 21, 0, 7}};
    a.instructions[6].inlined = 0;
    ProfileOptions options;
    options.by = "instruction";
    options.inlines = true;
    const View instructions = profile_view(a, options).value();
    const std::size_t row = row_of(instructions, "address", "0x8018");
    EXPECT_EQ(cell(instructions, row, "inlined through").field(),
              "swap at inline.h:7, called by sort(int*, int) at sort.c:21");
    EXPECT_EQ(cell(instructions, row_of(instructions, "address", "0x8000"), "inlined through").field(), "");
    options.by = "function";
    options.inlines = true;
    const View inlines = profile_view(a, options).value();
    EXPECT_NE(inlines.table.title.find("own, wherever it was inlined"), std::string::npos);
    EXPECT_EQ(cell(inlines, row_of(inlines, "function", "swap"), "instructions").field(), "5");
    EXPECT_EQ(cell(inlines, row_of(inlines, "function", "swap"), "places").field(), "1");
    options = {};
    options.by = "image";
    const View images = profile_view(a, options).value();
    EXPECT_EQ(column(images, "image"), (Texts{"sort.elf", "[no image]"}));
    EXPECT_EQ(column(images, "instructions"), (Texts{"40", "6"}));
}

TEST(CallView, HistogramColumnsAndRemarks) {
    Answers a = single_calls();
    const View all = calls_of(a, true, true);
    std::map<std::string, std::uint64_t> bars;
    for (std::uint64_t first = 10; first <= 100; first += 10) bars[std::to_string(first)] = 0;
    bars["10"] = bars["20"] = bars["100"] = 1;
    EXPECT_EQ(sums_of(all, "histogram"), bars);
    const auto head_of_function = [&](const std::string& pattern) {
        CallOptions options;
        options.function = pattern;
        const View view = call_view(a, options).value();
        for (const Column& c : view.table.columns)
            if (c.name == "function") return c.head;
        return std::string("none");
    };
    EXPECT_EQ(head_of_function("f"), "") << "all rows are of one function";
    EXPECT_EQ(head_of_function("h*"), "function");
    EXPECT_TRUE(all.below.empty());
    a.timeline.axis.unit = "ns";
    a.timeline.axis.uncertainty = 5;
    const View timed = calls_of(a, true, true);
    ASSERT_EQ(timed.below.size(), 1U);
    EXPECT_NE(timed.below[0].find("5 ns"), std::string::npos);
}

TEST(DiffView, SumsOfMoreCapturesAreNotMeans) {
    Answers before = named_program("old", "app", "a1", 20), after = named_program("new", "app", "a1", 20);
    before.parts = {{"one", 1, 0}, {"two", 1, 0}};
    after.parts = {{"one", 2, 0}};
    DiffOptions options;
    EXPECT_EQ(said(compare(before, after, options)->view, note), "");
    after.parts.push_back({"two", 1, 0});
    options.changed_only = true;
    const std::string sums = "2 captures before and 3 after";
    EXPECT_NE(said(compare(before, after, options)->view, note).find(sums), std::string::npos);
    // Growth of sums of different numbers of captures says nothing of a capture.
    options.threshold = 5;
    EXPECT_NE(said(compare(before, after, options)->view, Finding::Severity::warning).find(sums), std::string::npos);
    options.strict = true;
    EXPECT_NE(said(compare(before, after, options)->view, bad).find(sums), std::string::npos);
    options.mean = true;
    options.changed_only = false;
    const View of_means = compare(before, after, options)->view;
    EXPECT_EQ(said(of_means, note), "no function grew by more than 5% of all before\n");
    EXPECT_EQ(said(of_means, bad), "");
}

TEST(DiffView, AMeanNeedsTheNumberOfCapturesWithFunctions) {
    const Answers before = named_program("old", "app", "a1", 20);
    Answers after = before;
    after.capture = "new";
    after.parts = {{"one", 1, 0}, {"ranges", 1, 0}};
    after.account.push_back({.reason = AccountReason::no_functions, .instructions = 1196});
    DiffOptions options;
    EXPECT_TRUE(compare(before, after, options));
    options.mean = true;
    const auto mean = compare(before, after, options);
    ASSERT_FALSE(mean);
    EXPECT_TRUE(mean.error().message.starts_with("new contains captures without functions")) << mean.error().message;
    EXPECT_FALSE(compare(after, before, options));
}

TEST(DiffView, FiguresThatWereNotCountedAlikeAreDoubted) {
    Answers before = named_program("old", "app", "a1", 20), after = named_program("new", "app", "a1", 20);
    before.metrics[0].note = after.metrics[0].note = "at least 4";
    DiffOptions options;
    const View alike = compare(before, after, options)->view;
    EXPECT_EQ(said(alike, Finding::Severity::warning), "");
    EXPECT_EQ(alike.below.front(), "instructions: at least 4");
    after.metrics[0].note = "at least 256";
    const View other = compare(before, after, options)->view;
    EXPECT_NE(said(other, Finding::Severity::warning).find("not counted alike"), std::string::npos);
    ASSERT_GE(other.below.size(), 2U);
    EXPECT_EQ(other.below[0], "instructions of old: at least 4");
    EXPECT_EQ(other.below[1], "instructions of new: at least 256");
    options.strict = true;
    EXPECT_NE(said(compare(before, after, options)->view, bad).find("not counted alike"), std::string::npos);
}

TEST(DiffView, CountersThatOneSideDividesByTasksAreDoubted) {
    Answers before = named_program("old", "app", "a1", 20), after = named_program("new", "app", "a1", 20);
    for (Answers* const side : {&before, &after}) side->metrics = {{"CYCLES", "cycles"}};
    before.trust = {{"functions", "all", "", ""}};
    after.trust = {{"functions", "", "", "the cost of functions"}};
    DiffOptions options;
    EXPECT_EQ(said(compare(before, before, options)->view, Finding::Severity::warning), "");
    EXPECT_EQ(said(compare(after, after, options)->view, Finding::Severity::warning), "");
    const std::string unknown = "of new alone, not known: the cost of functions";
    EXPECT_EQ(said(compare(before, after, options)->view, Finding::Severity::warning), unknown + "\n");
    EXPECT_EQ(said(compare(after, before, options)->view, Finding::Severity::warning), unknown + "\n");
    options.strict = true;
    EXPECT_EQ(said(compare(before, after, options)->view, bad), unknown + " (--strict)\n");
}

TEST(DiffView, SamplesTellWhereTheirIntervalsAreApart) {
    const auto samples = [](std::uint64_t first, std::uint64_t second) {
        Answers a = capture_of("c", {{"app", "/tmp/app", "a1"}}, {{"f", "f", 0, first}, {"g", "g", 0, second}});
        a.metrics = {{"samples", "samples"}};
        a.metrics[0].exact = false;
        return a;
    };
    DiffOptions options;
    options.threshold_each = 1;
    const auto grew = [&](const Answers& before, const Answers& after) {
        return said(compare(before, after, options)->view, bad).find("grew") != std::string::npos;
    };
    EXPECT_TRUE(grew(samples(40, 60), samples(60, 40)));
    EXPECT_FALSE(grew(samples(45, 55), samples(55, 45)));
    Answers before = samples(4'500, 5'500), after = samples(5'500, 4'500);
    before.parts = after.parts = {{"c", 100, 0}};
    EXPECT_TRUE(grew(before, after));
    options.mean = true;
    EXPECT_TRUE(grew(before, after)) << "a mean is of as many samples";
}

TEST(DiffView, SaysWhatWasAllowedAndWhatRanOnOneSideAlone) {
    const auto of = [](const char* capture, std::vector<Code> code) {
        return capture_of(capture, {{"app", "/tmp/app", "a1"}}, code);
    };
    const Answers before = of("old", {{"gone", "gone", 0, 10}, {"kept", "kept", 0, 20}});
    const Answers after = of("new", {{"kept", "kept", 0, 20}});
    DiffOptions options;
    options.threshold_each = 5;
    EXPECT_EQ(said(compare(before, after, options)->view, note),
              "no function grew by more than 5% of their cost before\n");
    options.only = {"gone"};
    options.strict = true;
    const auto alone = compare(before, after, options);
    ASSERT_TRUE(alone);
    EXPECT_NE(said(alone->view, bad).find("gone ran before alone"), std::string::npos);
    EXPECT_EQ(said(alone->view, note).find("no function"), std::string::npos);
}

TEST(DiffView, ARenamedImageIsPairedHoweverManyOfItsFunctionsHaveNames) {
    const auto of = [](const char* capture, const std::string& image) {
        return capture_of(capture, {{image, "", std::string("b") + capture}},
                          {{"f", "f", 0, 100}, {image + "+0x10?", "", 0, 50}});
    };
    DiffOptions options;
    options.threshold_each = 5;
    const auto view = compare(of("old", "tool"), of("new", "prog"), options);
    ASSERT_TRUE(view);
    EXPECT_EQ(said(view->view, bad), "");
    EXPECT_EQ(cell(view->view, row_of(view->view, "function", "f"), "what").field(), "same");
}

TEST(Only, SuggestsNamesThatContainTheWord) {
    Only only({"sor"});
    only.add(Only::Kind::function, "sort(int*, int)");
    only.add(Only::Kind::function, "main");
    EXPECT_NE(only.unknown("function").find("sort(int*, int)"), std::string::npos) << only.unknown("function");
    EXPECT_EQ(only.unknown("function").find("main"), std::string::npos) << only.unknown("function");
}

TEST(Lines, CodeWithoutASourceIsOnNone) {
    Instruction code;
    code.line = 7;
    EXPECT_TRUE(lines_of({}, code).empty());
    code.source = 0;
    EXPECT_EQ(lines_of({}, code).size(), 1U);
    code.line = 0;
    EXPECT_TRUE(lines_of({}, code).empty());
}

TEST(BranchView, OneSidedIsWhatNeverWentTheOtherWay) {
    Answers a = support::small_answers();
    a.branches[4].not_taken = 0;  // the other conditional branch went each way once
    BranchOptions options;
    options.one_sided = true;
    EXPECT_EQ(column(branch_view(a, options).value(), "address"), Texts{"0x801c"});
}

TEST(BranchView, WhatMayHaveBeenLostIsMarkedForEachWay) {
    Answers a = support::small_answers();
    a.branches[4].taken = 0;
    BranchOptions options;
    options.one_sided = true;
    EXPECT_EQ(cell(branch_view(a, options).value(), 0, "taken").shown, "0");
    a.branches[4].seen_taken = Seen::not_observed;
    EXPECT_EQ(cell(branch_view(a, options).value(), 0, "taken").shown, "0?");
    EXPECT_EQ(cell(branch_view(a, options).value(), 0, "not_taken").shown, "2");
}

TEST(CallView, ALossHidesAllCallsWithinItHoweverManyLossesFollow) {
    Answers a = single_calls();
    // The first loss lasts beyond the second one, and covers the call from 40 to 140.
    a.timeline.marks = {{35, 150, 0, TimelineMark::Kind::gap, "gap"}, {36, 37, 0, TimelineMark::Kind::gap, "gap"}};
    const View all = calls_of(a, true, true);
    EXPECT_EQ(column(all, "begin"), (Texts{"300", "40", "10", "200", "990"}));
    EXPECT_EQ(column(all, "bound"), (Texts{"exact", "at least", "exact", "exact", "at least"}));
}

TEST(Views, CoverageTellsWhatDidNotRunFromWhatIsNotKnown) {
    CoverageOptions options;
    options.by = "function";
    const View view = coverage_view(support::small_answers(), options).value();
    const auto of = [&](const char* function, const char* what) {
        return cell(view, row_of(view, "function", function), what).field();
    };
    EXPECT_EQ(of("compare", "instructions not executed"), "1");
    EXPECT_EQ(of("compare", "instructions not observed"), "0");
    EXPECT_EQ(of("sort(int*, int)", "instructions not executed"), "0");
    EXPECT_EQ(of("sort(int*, int)", "instructions not observed"), "1");
}

TEST(LoopView, SharesAreOfAllThatRan) {
    const View view = loop_view(support::small_answers(), {}).value();
    // The loop of `sort` has 15 of all 46 instructions.
    EXPECT_EQ(view.table.rows.at(0).at(0).shown, Cell::bar(15, 46).shown);
}

TEST(LoopView, SortsByAddressAndSaysWhyThereIsNone) {
    Answers a = support::small_answers();
    LoopOptions options;
    EXPECT_EQ(column(loop_view(a, options).value(), "head"), (Texts{"0x8014", "0x8004"})) << "the costly first";
    options.sort = "address";
    EXPECT_EQ(column(loop_view(a, options).value(), "head"), (Texts{"0x8004", "0x8014"}));
    a.loops[0].iterations = a.loops[1].iterations = 0;
    const auto why = [&] { return loop_view(a, {}).error().message; };
    EXPECT_NE(why().find("no code of a known image was seen to be repeated"), std::string::npos) << why();
    a.unit = "DPU";
    EXPECT_NE(why().find(no_hardware_loop), std::string::npos) << why();
    a.trust = {{.view = "loops", .exact = "what is exact", .not_known = "what is not known"}};
    EXPECT_NE(why().find("what is not known"), std::string::npos) << why();
}

TEST(ExceptionView, SaysWhyThereIsNone) {
    Answers a = support::small_answers();
    a.exceptions.clear();
    const auto why = [&](const char* unit) {
        a.unit = unit;
        return exception_view(a, {}).error().message;
    };
    EXPECT_EQ(why("PTM"), "small: no exception is in the trace");
    EXPECT_EQ(why("SPE"), "small: samples do not record exceptions");
    EXPECT_NE(why("DPU").find("modes task and flow show them"), std::string::npos);
}

TEST(Names, APlaceOfAFunctionWithoutAnAddressHasNoDistance) {
    Answers a = support::small_answers();
    EXPECT_EQ(place_text(a, 0, 0x8000), "main");
    EXPECT_EQ(place_text(a, 0, 0x8004), "main+0x4");
    EXPECT_EQ(place_text(a, 0, 0x7ffc), "main 0x7ffc");
    EXPECT_EQ(place_text(a, none, 0x7ffc), "0x7ffc");
    EXPECT_EQ(place_text(a, 3, 0x7ffc), "[interrupt 6]");
    a.functions[0].address = 0;
    EXPECT_EQ(place_text(a, 0, 0x10), "main 0x10");
}

TEST(Views, SpreadsAreThoseOfMergedRuns) {
    Answers a = support::small_answers();
    a.tables = {{"runs",
                 "",
                 {Column::text("function"), Column::text("metric"), Column::text("spread")},
                 {{"compare", "instructions", "12.5"}}}};
    const View view = profile_view(a, {}).value();
    EXPECT_EQ(cell(view, row_of(view, "function", "compare"), "instructions spread %").field(), "12.5");
    EXPECT_EQ(cell(view, row_of(view, "function", "main"), "instructions spread %").field(), "");
    a.tables[0].title = "stays";
    const View without = profile_view(a, {}).value();
    for (const Column& c : without.table.columns) EXPECT_NE(c.name, "instructions spread %");
}

TEST(Views, CountsThatAreEstimatesAreSaidBelow) {
    Answers a = support::small_answers();
    a.account = {{.reason = AccountReason::decoded, .instructions = 46}, {.reason = AccountReason::strobing}};
    const View view = profile_view(a, {}).value();
    ASSERT_FALSE(view.below.empty());
    EXPECT_EQ(view.below.back(), counts_note(a.account));
    a.account.pop_back();
    const View whole = profile_view(a, {}).value();
    EXPECT_EQ(std::count(whole.below.begin(), whole.below.end(), counts_note(a.account)), 0);
}

TEST(DiffView, AMeanIsThatOfTheCapturesOfItsSide) {
    Answers before = named_program("old", "app", "a1", 20);
    const Answers after = named_program("new", "app", "a1", 10);
    before.parts = {{"one", 1, 0}, {"two", 1, 0}};
    DiffOptions options;
    options.mean = true;
    const auto view = compare(before, after, options);
    ASSERT_TRUE(view);
    const std::size_t row = row_of(view->view, "function", "area");
    EXPECT_EQ(cell(view->view, row, "before").field(), "10");
    EXPECT_EQ(cell(view->view, row, "after").field(), "10");
    EXPECT_EQ(cell(view->view, row, "what").field(), "same");
}

TEST(DiffView, SaysWhatWasNotTracedOfOneSideAlone) {
    const Answers before = named_program("old", "app", "a1", 20);
    Answers after = before;
    after.capture = "new";
    DiffOptions options;
    for (const AccountReason reason : {AccountReason::off, AccountReason::filtered}) {
        after.account = {{.reason = reason}};
        const std::string doubt = said(compare(before, after, options)->view, Finding::Severity::warning);
        EXPECT_NE(doubt.find("of new alone: "), std::string::npos) << doubt;
        EXPECT_EQ(said(compare(after, after, options)->view, Finding::Severity::warning), "");
    }
    // Events that happen by chance depend on the run.
    after.account = {{.reason = AccountReason::held}};
    EXPECT_EQ(said(compare(before, after, options)->view, Finding::Severity::warning).find("alone"), std::string::npos);
}

TEST(ColumnsDocument, SaysWhatIsPrinted) {
    const std::string path = WAYMARK_SOURCE_DIR "/docs/columns.md";
    if (std::getenv("WM_UPDATE_APPROVED") != nullptr) std::ofstream(path) << document();
    std::ifstream in(path);
    std::ostringstream text;
    text << in.rdbuf();
    EXPECT_EQ(text.str(), document()) << "run with WM_UPDATE_APPROVED=1, then read the difference";
}

}  // namespace
}  // namespace waymark::answers
