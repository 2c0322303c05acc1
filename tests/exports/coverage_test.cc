/// Coverage and profiles for compilers: lcov, Cobertura, AutoFDO, BOLT; read by their own tools if these are installed.
#include "../../src/exports/coverage.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "../../src/exports/look_up.h"
#include "../../src/exports/timeline.h"
#include "exports/some_answers.h"
#include "exports/tools.h"
#include "waymark/exports/autofdo.h"
#include "waymark/exports/bolt.h"
#include "waymark/exports/callgrind.h"
#include "waymark/exports/cobertura.h"
#include "waymark/exports/lcov.h"
#include "waymark/exports/tables.h"

namespace waymark::exports {
namespace {

using support::random_answers;
using support::run;
using support::sampled_answers;
using support::small_answers;
using support::written;

TEST(Lcov, LinesFunctionsBranches) {
    const auto answers = small_answers();
    const auto out = written([&](ByteSink& sink) { return write_lcov(answers, {}, sink); });
    EXPECT_EQ(out.text,
              "TN:\nSF:/src/sort.c\n# not observed: 25\n"
              "FN:10,main\nFN:20,_Z4sortPii\nFN:40,compare\n"
              "FNDA:1,main\nFNDA:2,_Z4sortPii\nFNDA:5,compare\nFNF:3\nFNH:3\n"
              "BRDA:11,0,0,1\nBRDA:11,0,1,1\nBRDA:22,0,0,3\nBRDA:22,0,1,2\nBRF:4\nBRH:4\n"
              "DA:10,1\nDA:11,2\nDA:13,1\nDA:20,2\nDA:21,5\nDA:22,5\nDA:24,2\nDA:25,0\nDA:40,5\nDA:41,5\nDA:42,5\n"
              "DA:44,0\nLF:12\nLH:10\nend_of_record\n"
              "TN:\nSF:/src/inline.h\nFNF:0\nFNH:0\nDA:7,5\nLF:1\nLH:1\nend_of_record\n");
    EXPECT_NE(out.notes().find("1 line was not observed"), std::string::npos) << out.notes();
}

TEST(Lcov, WhatWasNotObservedIsNamed) {
    auto answers = small_answers();
    const auto branch = std::find_if(answers.branches.begin(), answers.branches.end(), [](const answers::Branch& b) {
        return b.kind == answers::Branch::Kind::conditional && b.line == 22;
    });
    ASSERT_NE(branch, answers.branches.end());
    branch->not_taken = 0;
    branch->seen_not_taken = answers::Seen::not_executed;
    const auto lcov = [&] { return written([&](ByteSink& sink) { return write_lcov(answers, {}, sink); }); };
    EXPECT_EQ(lcov().text.find("branches not observed"), std::string::npos);
    branch->seen_not_taken = answers::Seen::not_observed;
    EXPECT_NE(lcov().text.find("# branches not observed: 22,0,1\n"), std::string::npos) << lcov().text;
    EXPECT_NE(lcov().notes().find("1 direction of branches was not observed"), std::string::npos) << lcov().notes();
    const auto cobertura = written([&](ByteSink& sink) { return write_cobertura(answers, {}, sink); });
    EXPECT_NE(cobertura.text.find("<!-- conditions not observed: 22 -->"), std::string::npos);
}

TEST(Lcov, ABranchThatDidNotRunIsNamedByItsLine) {
    auto answers = small_answers();
    for (answers::Branch& b : answers.branches)
        if (b.line == 22) {
            b.taken = b.not_taken = 0;
            b.seen_taken = b.seen_not_taken = answers::Seen::not_observed;
        }
    const auto out = written([&](ByteSink& sink) { return write_lcov(answers, {}, sink); });
    EXPECT_EQ(out.text.find("branches not observed"), std::string::npos) << out.text;
}

TEST(Coverage, OfEachFunctionCountsItsOwnLines) {
    const auto coverage = coverage_of(small_answers(), {});
    ASSERT_TRUE(coverage) << coverage.error().message;
    ASSERT_EQ(coverage->files.size(), 2U);
    std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> lines;
    for (const CoveredFunction& f : coverage->files[0].functions) lines[f.name] = {f.lines_hit, f.lines};
    EXPECT_EQ(lines["main"], std::pair(std::uint64_t{3}, std::uint64_t{3}));
    EXPECT_EQ(lines["_Z4sortPii"], std::pair(std::uint64_t{4}, std::uint64_t{5}));
    EXPECT_EQ(lines["compare"], std::pair(std::uint64_t{3}, std::uint64_t{4}));
}

TEST(Coverage, HeadersOfLibrariesAreLeftOutUnlessTheirFolderIsNamed) {
    auto answers = small_answers();
    answers.sources[1].path = "/usr/include/c++/12/bits/stl_algo.h";
    const auto files = [&](const CoveredSources& options) {
        const auto coverage = coverage_of(answers, options);
        if (!coverage) return coverage.error().message;
        std::string out;
        for (const CoveredFile& f : coverage->files) out += f.path + " ";
        for (const std::string& header : coverage->headers) out += "without " + header;
        return out;
    };
    EXPECT_EQ(files({}), "/src/sort.c without /usr/include/c++/12/bits/stl_algo.h");
    EXPECT_EQ(files({.source_roots = {"/usr"}}), "/usr/include/c++/12/bits/stl_algo.h ");
    EXPECT_EQ(files({.only = {"stl_algo.h"}}), "/usr/include/c++/12/bits/stl_algo.h ");
    EXPECT_TRUE(
        files({.source_roots = {"/elsewhere"}})
            .starts_with("no source file is below /elsewhere; the program's are elsewhere, such as /src/sort.c:"));
}

TEST(Timelines, TimesAreNanoseconds) {
    answers::TimeAxis axis;
    axis.unit = "ticks";
    axis.ticks_per_second = 3;
    EXPECT_EQ(Nanoseconds(axis)(10), 3'333'333'333U);
    axis.ticks_per_second = 1'000'000'000;
    EXPECT_EQ(Nanoseconds(axis)(123'456'789'123), 123'456'789'123U);
    axis.ticks_per_second = 0;
    EXPECT_EQ(Nanoseconds(axis)(10), 10U);
}

TEST(Profiles, PathsOfManyFramesKeepBothEnds) {
    answers::Answers a;
    a.calls.resize(600);
    for (answers::Index i = 0; i < a.calls.size(); ++i) a.calls[i].parent = i == 0 ? answers::none : i - 1;
    CutPaths paths(a);
    std::vector<answers::Index> nodes;
    std::size_t omitted = 0;
    const auto walk = [&](answers::Index node) {
        nodes.clear();
        omitted = 0;
        paths.walk(
            node, [&](answers::Index each) { nodes.push_back(each); },
            [&](std::size_t frames) {
                omitted = frames;
                nodes.push_back(answers::none);
            });
    };
    walk(2);
    EXPECT_EQ(nodes, (std::vector<answers::Index>{2, 1, 0}));
    walk(511);
    EXPECT_EQ(nodes.size(), 512U);
    EXPECT_EQ(nodes.back(), 0U);
    EXPECT_EQ(omitted, 0U);
    EXPECT_EQ(paths.note(), "");
    walk(599);
    ASSERT_EQ(nodes.size(), 512U) << "with the node that stands for the nodes left out";
    EXPECT_EQ(nodes.front(), 599U);
    EXPECT_EQ(nodes[254], 345U);
    EXPECT_EQ(nodes[255], answers::none);
    EXPECT_EQ(nodes[256], 255U);
    EXPECT_EQ(nodes.back(), 0U);
    EXPECT_EQ(omitted, 600U - 511U);
    EXPECT_NE(paths.note(), "");
}

TEST(Lcov, TheLineOfAFunctionMayHaveRunAsItsCodeMay) {
    auto answers = small_answers();
    // All code of `compare` comes from a header, and readers require a count for the line that declares it.
    std::erase_if(answers.lines, [](const answers::Line& l) { return l.line >= 40; });
    std::erase_if(answers.branches, [](const answers::Branch& b) { return b.line >= 40; });
    answers.edges.clear();
    answers.calls.clear();
    for (answers::Instruction& i : answers.instructions)
        if (i.function == 2) {
            i.source = 1;
            i.line = 7;
            i.times = 0;
            i.costs = {0, 0};
            i.seen = answers::Seen::not_observed;
        }
    const auto out = written([&](ByteSink& sink) { return write_lcov(answers, {}, sink); });
    EXPECT_NE(out.text.find("# not observed: 25, 40\n"), std::string::npos) << out.text;
    EXPECT_NE(out.text.find("\nDA:40,0\n"), std::string::npos) << out.text;
}

TEST(Lcov, SamplesAreNoCoverage) {
    ByteCollector sink;
    const auto result = write_lcov(sampled_answers(), {}, sink);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Errc::not_found);
    EXPECT_NE(result.error().message.find("samples"), std::string::npos);
    EXPECT_FALSE(write_cobertura(sampled_answers(), {}, sink));
}

TEST(Lcov, WithoutLinesItSaysWhatToGive) {
    auto answers = small_answers();
    answers.lines.clear();
    ByteCollector sink;
    const auto result = write_lcov(answers, {}, sink);
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().message.find("--symbols"), std::string::npos);
}

TEST(Lcov, ItsToolsReadIt) {
    WM_NEEDS_TOOL("genhtml");
    const TemporaryFolder folder;
    auto answers = small_answers();
    std::string text;
    for (int i = 1; i < 60; ++i) text += "// line " + std::to_string(i) + "\n";
    for (auto& source : answers.sources) source.path = folder.write(source.path.substr(1), text).string();
    const auto out = written([&](ByteSink& sink) { return write_lcov(answers, {}, sink); });
    const auto file = folder.write("coverage.info", out.text);
    const support::Ran summary = run("lcov --rc lcov_branch_coverage=1 --summary " + shell_word(file));
    EXPECT_EQ(summary.status, 0) << summary.output;
    EXPECT_NE(summary.output.find("84.6% (11 of 13 lines)"), std::string::npos) << summary.output;
    EXPECT_NE(summary.output.find("100.0% (3 of 3 functions)"), std::string::npos) << summary.output;
    EXPECT_NE(summary.output.find("100.0% (4 of 4 branches)"), std::string::npos) << summary.output;
    const support::Ran html =
        run("genhtml --branch-coverage -o " + shell_word(folder.path() / "html") + " " + shell_word(file));
    EXPECT_EQ(html.status, 0) << html.output;
    EXPECT_EQ(html.output.find("WARNING"), std::string::npos) << html.output;
    EXPECT_TRUE(std::filesystem::exists(folder.path() / "html" / "index.html"));
}

TEST(Cobertura, HasTheShapeOfItsDtd) {
    WM_NEEDS_TOOL("python3");
    const TemporaryFolder folder;
    auto answers = small_answers();
    answers.functions[2].name = "operator<<(\"&\")";
    const auto out = written([&](ByteSink& sink) { return write_cobertura(answers, {1'700'000'000}, sink); });
    const auto file = folder.write("coverage.xml", out.text);
    const support::Ran ran =
        run("python3 " + shell_word(WAYMARK_SOURCE_DIR "/tests/exports/cobertura_check.py") + " " + shell_word(file));
    EXPECT_EQ(ran.status, 0) << ran.output;
    EXPECT_EQ(ran.output, "13 lines, 11 covered, 4 branches, 4 covered, 3 methods\n");
    EXPECT_NE(out.text.find("<!-- not observed: 25 -->"), std::string::npos);
    EXPECT_NE(
        out.text.find("            <line number=\"22\" hits=\"5\" branch=\"true\" condition-coverage=\"100% (2/2)\">\n"
                      "              <conditions>\n"
                      "                <condition number=\"0\" type=\"jump\" coverage=\"100%\"/>\n"
                      "              </conditions>\n"
                      "            </line>\n"),
        std::string::npos)
        << out.text;
    EXPECT_NE(out.notes().find("not observed"), std::string::npos);
    // Readers join a source and a name.
    EXPECT_NE(out.text.find("<source>/</source>"), std::string::npos) << out.text;
    EXPECT_NE(out.text.find("filename=\"src/sort.c\""), std::string::npos) << out.text;
}

TEST(Autofdo, LinesFromWhereTheFunctionBegins) {
    const auto answers = small_answers();
    const auto out = written([&](ByteSink& sink) { return write_autofdo(answers, sink); });
    EXPECT_EQ(out.text,
              "compare:15:5\n 0: 5\n 1: 5\n 2: 5\n 4: 0\n"
              "_Z4sortPii:14:2\n 0: 2\n 1: 5 compare:5\n 2: 5\n 4: 2\n"
              "main:4:1\n 0: 1\n 1: 2 _Z4sortPii:2\n 3: 1\n");
    EXPECT_NE(out.notes().find("87.5%"), std::string::npos) << out.notes();
    EXPECT_NE(out.notes().find("inlined"), std::string::npos) << out.notes();
}

/// In `sort`, which is declared at line 19 and compiled by LLVM: `less` is inlined twice on line 21, and `key` in it.
answers::Answers answers_with_inlined_calls() {
    using namespace answers;
    Answers a = small_answers();
    a.functions[1].declared_name = "_Z4sortPii";
    a.functions[1].declared_source = 0;
    a.functions[1].declared_line = 19;
    a.functions[1].by_llvm = true;
    // Base discriminators 0 and 2; a base of 40 takes two bytes.
    a.inlined = {{none, 1, "less(int, int)", "_Z4lessii", 0, 21, 0, 5},
                 {none, 1, "less(int, int)", "_Z4lessii", 0, 21, 2U << 1, 5},
                 {1, 1, "key", "", 1, 6, (40U & 0x1f) << 1 | 0x40U | (40U >> 5) << 7, 3}};
    for (const auto& [at, inlined, line] :
         {std::tuple(4, 0U, 5U), std::tuple(5, 0U, 7U), std::tuple(6, 1U, 7U), std::tuple(7, 2U, 4U)}) {
        a.instructions[static_cast<std::size_t>(at)].inlined = inlined;
        a.instructions[static_cast<std::size_t>(at)].source = 1;
        a.instructions[static_cast<std::size_t>(at)].line = line;
    }
    // Unrolled 4 times: no base, so a set bit, then the factor.
    a.instructions[7].discriminator = 1U | (4U << 1) << 1;
    return a;
}

TEST(Autofdo, InlinedCallsAreNested) {
    auto answers = answers_with_inlined_calls();
    const auto out = written([&](ByteSink& sink) { return write_autofdo(answers, sink); });
    const std::string sort =
        "_Z4sortPii:34:2\n 5: 2\n"
        " 2: _Z4lessii:7\n  0: 2\n  2: 5 compare:5\n"
        " 2.2: _Z4lessii:25\n  2: 5\n  1.40: key:20\n   1: 20\n";
    EXPECT_NE(out.text.find(sort), std::string::npos) << out.text;
    // Other compilers number the pieces of a line in other ways.
    answers.functions[1].by_llvm = false;
    const auto other = written([&](ByteSink& sink) { return write_autofdo(answers, sink); });
    EXPECT_NE(other.text.find(" 2: _Z4lessii:12\n  0: 2\n  2: 5 compare:5\n  1: key:5\n"), std::string::npos)
        << other.text;
    // A compiler cannot find functions without a linkage name.
    answers.inlined[0].linkage_name.clear();
    const auto nameless = written([&](ByteSink& sink) { return write_autofdo(answers, sink); });
    EXPECT_EQ(nameless.text.find("less(int"), std::string::npos) << nameless.text;
    EXPECT_NE(nameless.notes().find("has no linkage name"), std::string::npos) << nameless.notes();
}

// Addresses of samples are relative to their files, so two files may have equal ones.
TEST(Exports, RowsOfAnotherFileAtTheSameAddressAreItsOwn) {
    using namespace answers;
    Answers a = small_answers();
    a.calls.clear();
    a.blocks.clear();
    a.images.push_back({"libother.so", "", ""});
    a.functions.push_back({"other", "other", 1, 0x8000, 64, 0, 100, false});
    // Before `main`'s: rows of one address have no other order.
    a.instructions.insert(a.instructions.begin(), {0x8008, 4, isa::Isa::a64, {}, 4, 0, 101, 0, {9, 9}, "nop"});
    std::sort(a.instructions.begin(), a.instructions.end(),
              [](const Instruction& x, const Instruction& y) { return x.address < y.address; });
    Branch branch;
    branch.address = 0x8008;
    branch.target = 0x8020;
    branch.kind = Branch::Kind::conditional;
    branch.function = 4;
    branch.taken = 9;
    branch.mispredicted = 9;
    a.branches.insert(a.branches.begin(), branch);
    std::stable_sort(a.branches.begin(), a.branches.end(),
                     [](const Branch& x, const Branch& y) { return x.address < y.address; });
    const auto bolt = written([&](ByteSink& sink) { return write_bolt(a, {"sort.elf"}, sink); });
    // There, the branch of main was not mispredicted, and execution continued once.
    EXPECT_NE(bolt.text.find("B 8008 8004 1 0\n"), std::string::npos) << bolt.text;
    const auto callgrind = written([&](ByteSink& sink) { return write_callgrind(a, {}, sink); });
    const auto count = [&](std::string_view part) {
        std::size_t times = 0;
        for (std::size_t at = 0; (at = callgrind.text.find(part, at)) != std::string::npos; ++at) ++times;
        return times;
    };
    EXPECT_EQ(count("jcnd=9/9 0x8020"), 1U) << callgrind.text;
    EXPECT_EQ(count("jcnd=1/2 0x8004"), 1U) << callgrind.text;
    const auto costs = written([&](ByteSink& sink) { return write_csv(a, *find_table("instruction_costs"), sink); });
    EXPECT_NE(costs.text.find("0x8008,0,9,4\n"), std::string::npos) << costs.text;
    EXPECT_NE(costs.text.find("0x8008,0,2,0\n"), std::string::npos) << costs.text;
}

TEST(Autofdo, LlvmMergesIt) {
    WM_NEEDS_TOOL("llvm-profdata");
    const TemporaryFolder folder;
    const auto answers = small_answers();
    const auto out = written([&](ByteSink& sink) { return write_autofdo(answers, sink); });
    const auto file = folder.write("profile.txt", out.text);
    const std::string merged = (folder.path() / "merged.prof").string();
    const support::Ran merge = run("llvm-profdata merge --sample " + shell_word(file) + " -o " + shell_word(merged));
    ASSERT_EQ(merge.status, 0) << merge.output;
    const support::Ran show = run("llvm-profdata show --sample " + shell_word(merged));
    EXPECT_EQ(show.status, 0) << show.output;
    EXPECT_NE(show.output.find("Function: _Z4sortPii: 14, 2, 4 sampled lines"), std::string::npos) << show.output;
    EXPECT_NE(show.output.find("1: 5, calls: compare:5"), std::string::npos) << show.output;
    for (const auto& any : {random_answers(5, 0), sampled_answers(), answers_with_inlined_calls()}) {
        const auto more = written([&](ByteSink& sink) { return write_autofdo(any, sink); });
        const support::Ran again = run("llvm-profdata merge --sample " +
                                       shell_word(folder.write("more.txt", more.text)) + " -o " + shell_word(merged));
        EXPECT_EQ(again.status, 0) << again.output << more.text;
    }
}

TEST(Bolt, BranchesAndRuns) {
    const auto answers = small_answers();
    const auto out = written([&](ByteSink& sink) { return write_bolt(answers, {}, sink); });
    EXPECT_EQ(out.text,
              "B 8004 8010 2 0\nB 8008 8004 1 0\nB 8014 8028 5 0\nB 801c 8014 3 0\nB 8020 8008 2 0\nB 8030 8018 5 0\n"
              "F 8000 8004 1\nF 8004 8004 1\nF 8008 8008 2\nF 800c 800c 1\nF 8010 8014 2\nF 8014 8014 3\n"
              "F 8018 801c 5\nF 8020 8020 2\nF 8028 8030 5\n"
              "F 8008 800c 1\nF 801c 8020 2\n");
    EXPECT_NE(out.notes().find("32-bit"), std::string::npos);
    EXPECT_NE(out.notes().find("sort.elf"), std::string::npos);
}

TEST(Bolt, MispredictionsOfSamples) {
    const auto answers = sampled_answers();
    const auto out = written([&](ByteSink& sink) { return write_bolt(answers, {"sort.elf"}, sink); });
    EXPECT_NE(out.text.find("B 8014 8028 5 2\n"), std::string::npos) << out.text;
    EXPECT_EQ(out.text.find("F "), out.text.find("F 8008 800c 1")) << out.text;
    EXPECT_EQ(out.notes().find("32-bit"), std::string::npos);
    ByteCollector sink;
    // The profile is for the program, even if other code ran more often.
    answers::Answers with_library = answers;
    with_library.images.push_back({"libc.so.6"});
    with_library.functions.push_back({"memcpy", "memcpy", static_cast<answers::Index>(with_library.images.size() - 1)});
    const auto memcpy = static_cast<answers::Index>(with_library.functions.size() - 1);
    with_library.edges.push_back({0x90000, 0x90010, memcpy, memcpy, answers::Branch::Kind::conditional, 1000000, {}});
    EXPECT_EQ(written([&](ByteSink& s) { return write_bolt(with_library, {}, s); }).text, out.text);
    const auto other = write_bolt(answers, {"libc.so"}, sink);
    ASSERT_FALSE(other);
    EXPECT_NE(other.error().message.find("sort.elf"), std::string::npos);
}

// ---- names that a compiler knows

TEST(Autofdo, NamesOfFunctionsAndTheirOrder) {
    struct Named {
        const char *name, *linkage, *declared;
        std::uint64_t times;
    };
    const auto profile = [](const std::vector<Named>& all) {
        answers::Answers a;
        a.metrics = {{"instructions", "instructions"}};
        a.sources = {{"/a.c", {}}};
        for (const Named& n : all) {
            const auto i = static_cast<answers::Index>(a.functions.size());
            a.functions.push_back(
                {n.name, n.linkage, answers::none, 0x1000U + i * 16, 16, 0, 10, false, n.declared, 0, 10});
            a.instructions.push_back(
                {0x1000U + i * 16, 4, isa::Isa::a64, answers::Seen::executed, i, 0, 12, n.times, {}, ""});
        }
        ByteCollector sink;
        const auto report = write_autofdo(a, sink);
        if (!report) return std::string("none");
        return std::string(sink.bytes().begin(), sink.bytes().end());
    };
    for (const char* name : {"f", "_Z1fv", "f_1", "a.b", "a$b", "F9"})
        EXPECT_EQ(profile({{"f()", name, "", 3}}), std::string(name) + ":3:3\n 2: 3\n");
    for (const char* none : {"9f", "a b", "a:b", "a<b>", "[unknown]", "f()", "caf\xc3\xa9"})
        EXPECT_EQ(profile({{none, "", "", 3}}), "none") << none;
    EXPECT_EQ(profile({{"f", "", "", 3}}), "f:3:3\n 2: 3\n") << "the name, if there is no symbol";
    EXPECT_EQ(profile({{"puts", "puts@plt", "", 3}}), "puts:3:3\n 2: 3\n");
    EXPECT_EQ(profile({{"m", "memcpy@@GLIBC_2.17", "", 3}}), "memcpy:3:3\n 2: 3\n");
    EXPECT_EQ(profile({{"f", "f.isra.0", "", 3}}), "f:3:3\n 2: 3\n") << "a clone counts for its function";
    EXPECT_EQ(profile({{"f", "f.part.0", "", 3}}), "f:3:0\n 2: 3\n") << "a part is not entered";
    EXPECT_EQ(profile({{"f", "f.cold", "", 3}}), "f:3:0\n 2: 3\n");
    EXPECT_EQ(profile({{"f", "other", "declared", 3}}), "declared:3:3\n 2: 3\n");
    EXPECT_EQ(profile({{"f", "other", "not a name", 3}}), "none");
    EXPECT_EQ(profile({{"c", "", "", 2}, {"a", "", "", 5}, {"b", "", "", 2}}),
              "a:5:5\n 2: 5\nb:2:2\n 2: 2\nc:2:2\n 2: 2\n")
        << "the hottest first, then by name";
    EXPECT_EQ(profile({{"f", "f", "", 3}, {"f", "f.isra.0", "", 5}}), "f:5:8\n 2: 5\n")
        << "of two copies of a line the more frequent";
}

TEST(Autofdo, LinesAreOffsetsOfSixteenBits) {
    const auto offset = [](std::uint32_t declared, std::uint32_t line) {
        answers::Answers a;
        a.metrics = {{"instructions", "instructions"}};
        a.sources = {{"/a.c", {}}, {"/b.c", {}}};
        a.functions.push_back({"f", "f", answers::none, 0x1000, 16, 0, 100, false, "", 0, declared});
        a.instructions.push_back({0x1000, 4, isa::Isa::a64, answers::Seen::executed, 0, 0, line, 1, {}, ""});
        ByteCollector sink;
        const auto report = write_autofdo(a, sink);
        return report ? std::string(sink.bytes().begin(), sink.bytes().end()) : std::string("none");
    };
    EXPECT_EQ(offset(10, 10), "f:1:1\n 0: 1\n");
    EXPECT_EQ(offset(10, 65545), "f:1:1\n 65535: 1\n");
    EXPECT_EQ(offset(10, 65546), "f:1:1\n 0: 1\n");
    EXPECT_EQ(offset(10, 9), "f:1:1\n 65535: 1\n") << "before a declaration, as by #line";
    EXPECT_EQ(offset(0, 100), "f:1:1\n 0: 1\n") << "from the first line";
    EXPECT_EQ(offset(0, 99), "none") << "of something else";
    EXPECT_EQ(offset(10, 0), "none");
}

// ---- names of files

/// Answers with one line in each of these files.
answers::Answers files_at(const std::vector<std::string>& paths) {
    answers::Answers a;
    a.metrics = {{"instructions", "instructions"}};
    for (answers::Index i = 0; i < paths.size(); ++i) {
        a.sources.push_back({paths[i], {}});
        a.lines.push_back({i, 1, answers::Seen::executed, answers::none, 1, {1}});
    }
    return a;
}

TEST(CoveredFiles, HeadersOfLibrariesByTheirFolders) {
    const auto left_out = [](const std::string& path) {
        const auto coverage = coverage_of(files_at({"/own.c", path}), {});
        EXPECT_TRUE(coverage);
        EXPECT_EQ(coverage->files.size() + coverage->headers.size(), 2U);
        return !coverage->headers.empty();
    };
    for (const char* path : {"/opt/include/c++/12/vector", "/usr/include/stdio.h", "/usr/lib/clang/14/include/x.h",
                             "/usr/lib/gcc/arm/12/y.h", "/usr/local/include/z.h"})
        EXPECT_TRUE(left_out(path)) << path;
    for (const char* path : {"/opt/include/x.h", "/usr/src/include/x.h", "/usr/local/src/include/x.h", "/usr/share/x.c",
                             "/home/usr/include/x.h", "include/x.h"})
        EXPECT_FALSE(left_out(path)) << path;
}

TEST(CoveredFiles, NamesBelowRootsAndAfterPrefixes) {
    const auto named = [](const std::string& path, const CoveredSources& options) {
        const auto coverage = coverage_of(files_at({path}), options);
        if (!coverage) return std::string("none");
        const CoveredFile& f = coverage->files.at(0);
        return f.path + " " + f.root + " " + f.name;
    };
    EXPECT_EQ(named("/a/b/c.c", {}), "/a/b/c.c  /a/b/c.c");
    EXPECT_EQ(named("/a/b/c.c", {.source_roots = {"/x", "/a"}}), "/a/b/c.c /a b/c.c");
    EXPECT_EQ(named("/a/b/c.c", {.source_roots = {"/a///"}}), "/a/b/c.c /a/// b/c.c");
    EXPECT_EQ(named("/a/b/c.c", {.source_roots = {"/"}}), "/a/b/c.c / a/b/c.c");
    EXPECT_EQ(named("/a/b/c.c", {.source_roots = {"/a/b", "/a"}}), "/a/b/c.c /a/b c.c") << "the first";
    EXPECT_EQ(named("/ab/c.c", {.source_roots = {"/a"}}), "none") << "whole components";
    EXPECT_EQ(named("/a", {.source_roots = {"/a"}}), "none");
    EXPECT_EQ(named("/a/../b/./c.c", {.source_roots = {"/b"}}), "/a/../b/./c.c /b c.c");
    EXPECT_EQ(named("/a/b/c.c", {.prefixes = {{"/a/b/c.c", "/no"}, {"/a", "/x/"}, {"/a/b", "/y"}}}),
              "/x/b/c.c  /x/b/c.c");
    EXPECT_EQ(named("/a/../b/c.c", {.prefixes = {{"/b", "z"}}}), "z/c.c  z/c.c");
    EXPECT_EQ(named("b/c.c", {.source_roots = {"/x"}, .prefixes = {{"b", "/x/y"}}}), "/x/y/c.c /x y/c.c");
}

TEST(CoveredFiles, FoldersOfCobertura) {
    const auto text = written([](ByteSink& sink) {
                          return write_cobertura(files_at({"/a.c", "b.c", "/c/d.c", "//e.c"}), {0, {}}, sink);
                      }).text;
    for (const char* part :
         {"<source>.</source>\n    <source>/</source>\n", "<package name=\".\" ",
          "<class name=\"b.c\" filename=\"b.c\" ", "<package name=\"/\" ", "<class name=\"a.c\" filename=\"a.c\" ",
          "<package name=\"/c\" ", "<class name=\"d.c\" filename=\"c/d.c\" ", "<class name=\"e.c\" filename=\"e.c\" ",
          " timestamp=\"0\""})
        EXPECT_NE(text.find(part), std::string::npos) << part << text;
}

TEST(CoveredFiles, WhichNeedEndLines) {
    const auto needs = [](std::vector<std::pair<std::uint32_t, std::uint64_t>> functions,
                          std::vector<std::pair<std::uint32_t, std::uint64_t>> lines, const char* name = "f") {
        CoveredFile file;
        for (const auto& [line, entries] : functions) {
            CoveredFunction f;
            f.name = name;
            f.line = line;
            f.entries = entries;
            file.functions.push_back(f);
        }
        for (const auto& [line, times] : lines)
            file.lines.push_back({0,
                                  line,
                                  times != 0 ? answers::Seen::executed : answers::Seen::not_executed,
                                  answers::none,
                                  times,
                                  {}});
        return file.needs_end_lines();
    };
    EXPECT_FALSE(needs({{10, 1}, {20, 0}}, {{10, 1}, {20, 0}}));
    EXPECT_TRUE(needs({{10, 1}, {20, 0}}, {{10, 1}, {20, 0}, {30, 1}})) << "lcov takes 30 for a part of 20";
    EXPECT_TRUE(needs({{10, 0}}, {{10, 1}}));
    EXPECT_FALSE(needs({{10, 0}}, {{9, 1}})) << "it is before all functions";
    EXPECT_FALSE(needs({{10, 0}, {10, 1}}, {{12, 1}})) << "one of two at one line ran";
    EXPECT_FALSE(needs({{10, 0}}, {{12, 1}}, "a::{lambda(int)#1}"));
    EXPECT_FALSE(needs({}, {{12, 1}}));
    EXPECT_FALSE(needs({{10, 0}}, {{12, 0}}));
}

TEST(CoveredFiles, CountsOfLinesAndBranches) {
    answers::Line line{0, 1, answers::Seen::executed, answers::none, 0, {}};
    EXPECT_EQ(hits(line), 1U) << "its count is not known";
    line.times = 7;
    EXPECT_EQ(hits(line), 7U);
    line.seen = answers::Seen::not_observed;
    EXPECT_EQ(hits(line), 0U);
    answers::Branch branch;
    EXPECT_EQ(outcomes(branch), 0U);
    branch.taken = 5;
    EXPECT_EQ(outcomes(branch), 1U);
    branch.not_taken = 1;
    EXPECT_EQ(outcomes(branch), 2U);
    branch.taken = 0;
    EXPECT_EQ(outcomes(branch), 1U);
}

}  // namespace
}  // namespace waymark::exports
