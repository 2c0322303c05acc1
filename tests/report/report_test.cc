#include "waymark/report/report.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "report/made_answers.h"

namespace waymark::report {
namespace {

using nlohmann::json;
using namespace test;

constexpr std::string_view small_page =
    "<html><title>Waymark report</title><script type=\"text/plain\" id=\"waymark-data\"></script></html>";

ReportOptions options_with(std::string_view page) {
    ReportOptions options;
    options.page = page;
    return options;
}

std::string written(const Answers& answers, const ReportOptions& options = options_with(small_page)) {
    ByteCollector sink;
    const auto size = write_report(answers, options, sink);
    EXPECT_TRUE(size.has_value()) << (size ? "" : size.error().message);
    if (size) {
        EXPECT_EQ(size->bytes, sink.bytes().size());
    }
    return {sink.bytes().begin(), sink.bytes().end()};
}

/// The page's view of the data: separate code decodes base64 and deflate.
json part(const std::string& file, const std::string& id) {
    const std::string open = "id=\"waymark-" + id + "\">";
    const std::size_t begin = file.find(open) + open.size(), end = file.find("</script>", begin);
    if (file.find(open) == file.npos) return {};
    const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string packed;
    std::uint32_t bits = 0;
    int have = 0;
    for (std::size_t i = begin; i < end && file[i] != '='; ++i) {
        const std::size_t digit = digits.find(file[i]);
        if (digit == digits.npos) ADD_FAILURE() << "no base64 at " << i;
        bits = bits << 6 | static_cast<std::uint32_t>(digit);
        if ((have += 6) >= 8) packed += static_cast<char>(bits >> (have -= 8) & 255);
    }
    std::string text(20'000'000, '\0');
    z_stream stream{};
    inflateInit2(&stream, -15);
    stream.next_in = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_in = static_cast<uInt>(packed.size());
    stream.next_out = reinterpret_cast<Bytef*>(text.data());
    stream.avail_out = static_cast<uInt>(text.size());
    EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
    text.resize(stream.total_out);
    inflateEnd(&stream);
    return json::parse(text);
}

std::uint64_t sum(const json& column) {
    std::uint64_t total = 0;
    for (const json& value : column) total += value.get<std::uint64_t>();
    return total;
}

TEST(Report, HoldsWhatTheAnswersSay) {
    const Answers answers = made_flow();
    const std::string file = written(answers);
    const json head = part(file, "head");
    EXPECT_EQ(head["format"], 1);
    EXPECT_EQ(head["unit"], "PTM");
    EXPECT_EQ(head["health"].size(), 2U);
    EXPECT_EQ(head["health"][0]["offset"], "0x1000");
    EXPECT_EQ(head["functions"]["name"][5], "function_5");
    const auto costs = function_costs(answers);
    for (std::size_t f = 0; f < costs.size(); ++f) {
        EXPECT_EQ(head["functions"]["self"][1][f], costs[f].self[1]);
        EXPECT_EQ(head["functions"]["inclusive"][0][f], costs[f].inclusive[0]);
    }
    const json calls = part(file, "calls"), code = part(file, "code"), timeline = part(file, "timeline");
    EXPECT_EQ(calls["function"].size(), answers.calls.size());
    EXPECT_EQ(code["instructions"]["text"].size(), answers.instructions.size());
    EXPECT_LT(code["texts"].size(), 30U);  // each text once
    EXPECT_EQ(part(file, "branches")["branches"]["taken"][3], 300);
    EXPECT_EQ(timeline["axis"]["begin"], "5000000");
    EXPECT_EQ(timeline["slices"]["begin"][0], 0);
    EXPECT_NE(file.find("<title>made – Waymark report</title>"), file.npos);
}

TEST(Report, CoverageIsOfTheProgramAndOfItsOwnCode) {
    Answers answers = made_flow(4, 20, 8);
    answers.images.push_back({"libc.so.6", "/usr/lib/libc.so.6"});
    answers.functions[2].image = 1;
    // The function never ran: its instructions are counted, but not listed, since it belongs to a system library.
    for (Instruction& i : answers.instructions)
        if (i.function == 2) i.seen = Seen::not_executed;
    answers.functions[3].source = none;
    const std::string file = written(answers);
    EXPECT_EQ(part(file, "head")["functions"]["own"], json({1, 1, 0, 0}))
        << "a library; no lines beside ones with lines";
    EXPECT_EQ(part(file, "head")["has"]["coverage"], 1);
    const json coverage = part(file, "coverage");
    const auto last = [](const json& column) { return column.back().get<std::uint64_t>(); };
    const json& all = coverage["files"]["instructions"];
    EXPECT_EQ(last(all[0]), 3 * 18U);
    EXPECT_EQ(last(all[1]), 3 * 1U + 20U);
    EXPECT_EQ(last(all[2]), 3U);
    EXPECT_EQ(coverage["files"]["functions"], 4);
    EXPECT_EQ(coverage["files"]["ran"], 3);
    EXPECT_EQ(last(coverage["own"]["instructions"][0]), 2 * 18U);
    EXPECT_EQ(coverage["functions"]["function"].size(), 4U);
    EXPECT_EQ(coverage["bound"], "");
    const json functions = part(file, "code")["instructions"]["function"];
    EXPECT_EQ(std::count(functions.begin(), functions.end(), 2), 0);
    EXPECT_EQ(std::count(functions.begin(), functions.end(), 3), 20);
    EXPECT_EQ(part(written(made_samples()), "head")["has"]["coverage"], 0) << "samples show no code that did not run";
}

// The page takes the word from the data: `waymark coverage` has the same word.
TEST(Report, SaysOfFunctionsThatRanWhatTheCommandSays) {
    Answers answers = made_flow();
    const auto expect = [&](std::string_view bound) {
        const std::string said = coverage_view(answers, {})->below.front();
        EXPECT_EQ(part(written(answers), "coverage")["bound"], bound);
        EXPECT_EQ(said.substr(0, said.find_first_of("0123456789")), bound.empty() ? "" : std::string(bound) + " ");
    };
    answers.account = {{.reason = AccountReason::decoded, .instructions = 9}};
    expect("");
    answers.account.push_back({.reason = AccountReason::overflow});
    expect("at least");
    answers.account.push_back({.reason = AccountReason::shared_address});
    expect("about");
}

TEST(Report, AddressesBeyondWhatANumberHoldsAreText) {
    Answers answers = made_flow(2, 4, 8);
    answers.functions[0].address = 0x9000'0000'1234'5678;
    answers.functions[1].address = 0x9000'0000'1234'5670;
    const json address = part(written(answers), "head")["functions"]["address"];
    EXPECT_EQ(address[0], "9000000012345678");
    EXPECT_EQ(address[1], -8);
}

TEST(Report, HoldsNoMarkupOfNames) {
    const std::string file = written(made_hostile());
    EXPECT_EQ(file.find("<img"), file.npos);
    EXPECT_EQ(file.find("onerror=\""), file.npos);
    EXPECT_NE(file.find("<title>&lt;/script&gt;"), file.npos);
    // Bytes that are not UTF-8 become U+FFFD, and the rest of the name stays.
    const std::string name = part(file, "head")["functions"]["name"][3];
    EXPECT_NE(name.find("broken \xef\xbf\xbd"), name.npos);
    EXPECT_NE(name.find("onerror"), name.npos);
}

TEST(Report, CallsThatDoNotFitAreSummedUpForTheirCaller) {
    const Answers answers = made_flow(12, 500, 8);
    ReportOptions options = options_with(small_page);
    options.most_calls = 40;
    const std::string file = written(answers, options);
    const json calls = part(file, "calls");
    EXPECT_LE(calls["function"].size(), 80U);
    for (std::size_t metric = 0; metric < 2; ++metric) {
        std::uint64_t all = 0;
        for (const CallNode& node : answers.calls) all += node.self[metric];
        EXPECT_EQ(sum(calls["self"][metric]), all);
    }
    std::int64_t parent = 0;
    for (std::size_t i = 0; i < calls["parent"].size(); ++i) {
        parent += calls["parent"][i].get<std::int64_t>();
        EXPECT_LT(parent, static_cast<std::int64_t>(i));
    }
    bool said = false;
    const json head = part(file, "head");
    for (const json& finding : head["health"])
        said = said || finding["what"].get<std::string>().find("40 most costly of 500 calls") != std::string::npos;
    EXPECT_TRUE(said);
}

TEST(Report, SlicesThatDoNotFitAreMerged) {
    const Answers answers = made_flow(12, 20, 8000);
    ReportOptions options = options_with(small_page);
    options.most_slices = 1000;
    const json timeline = part(written(answers, options), "timeline");
    const std::size_t slices = timeline["slices"]["length"].size();
    EXPECT_LE(slices, 1000U);
    EXPECT_GT(slices, 100U);
    const std::uint64_t shortest = timeline["resolution"];
    EXPECT_GT(shortest, 0U);
    for (const json& length : timeline["slices"]["length"]) EXPECT_GE(length.get<std::uint64_t>(), shortest);
    // Series keep their extremes.
    double most = 0, kept = 0;
    for (const auto& point : answers.timeline.series[0].points) most = std::max(most, point.value);
    for (const json& value : timeline["series"][0]["value"]) kept = std::max(kept, std::stod(value.get<std::string>()));
    EXPECT_NEAR(kept, most, 1e-3);
}

TEST(Report, TheTimelinesResolutionFollowsTheSizeThatIsAskedFor) {
    constexpr std::size_t all = 60'000;
    const Answers answers = made_flow(12, 20, all);
    const auto slices = [&](std::uint64_t most_bytes) {
        ReportOptions options = options_with(small_page);
        options.most_bytes = most_bytes;
        const std::string file = written(answers, options);
        EXPECT_LE(file.size(), most_bytes);
        const json timeline = part(file, "timeline")["slices"];
        // Each remaining slice represents all slices merged into it.
        return std::pair(timeline["length"].size(), sum(timeline["merged"]));
    };
    const auto small = slices(180'000), middle = slices(250'000), large = slices(2'000'000);
    EXPECT_LT(small.first, middle.first);
    EXPECT_LT(middle.first, large.first);
    EXPECT_EQ(large.first, answers.timeline.slices.size());
    // Only slices that were merged before: each call is a separate slice.
    std::uint64_t merged_before = 0;
    for (const answers::Slice& slice : answers.timeline.slices) merged_before += slice.merged;
    EXPECT_EQ(large.second, merged_before);
}

TEST(Report, CallsAreMergedOnlyIfTheirCompressedBytesDoNotFit) {
    Answers answers = made_flow(12, 20, 100);
    answers.timeline.resolution = 0;
    answers.timeline.slices.clear();
    constexpr std::uint64_t calls = 200'000;
    // A loop that calls one function: a call takes much less than a byte.
    for (std::uint64_t call = 0; call < calls; ++call)
        answers.timeline.slices.push_back({20 * call, 20 * call + 15, 0, 1, 0, 1});
    answers.timeline.axis.begin = 0;
    answers.timeline.axis.end = 20 * calls;
    ReportOptions options = options_with(small_page);
    options.most_bytes = 500'000;
    const json timeline = part(written(answers, options), "timeline");
    EXPECT_EQ(timeline["resolution"], 0);
    EXPECT_EQ(timeline["slices"]["length"].size(), calls);
}

TEST(Report, WhatIsMergedToFitLeavesLittleOfTheSizeUnused) {
    const Answers answers = made_flow(12, 20, 60'000);
    const std::size_t whole = written(answers).size();
    ReportOptions options = options_with(small_page);
    options.most_bytes = whole * 7 / 10;
    const std::size_t bytes = written(answers, options).size();
    EXPECT_LE(bytes, options.most_bytes);
    EXPECT_GT(bytes, options.most_bytes * 3 / 4) << whole;
}

TEST(Report, InstructionsThatDoNotFitAreThoseOfCheapFunctions) {
    const Answers answers = made_flow();
    ReportOptions options = options_with(small_page);
    options.most_instructions = 100;
    const json code = part(written(answers, options), "code");
    EXPECT_EQ(code["instructions"]["times"].size(), 100U);
    // The first functions ran most often.
    for (const json& f : code["instructions"]["function"]) EXPECT_LT(f.get<int>(), 5);
}

TEST(Report, StaysWithinItsBoundAndSaysWhatItLeavesOut) {
    const Answers answers = made_flow(200, 3'000, 6'000);
    const std::size_t whole = written(answers).size();
    ReportOptions options = options_with(small_page);
    options.most_bytes = whole / 3;
    ByteCollector sink;
    const auto size = write_report(answers, options, sink);
    ASSERT_TRUE(size.has_value());
    EXPECT_LE(sink.bytes().size(), options.most_bytes);
    EXPECT_GT(sink.bytes().size(), options.most_bytes / 3);
    EXPECT_GT(size->reductions, 0U);
    options.most_bytes = 1500;
    EXPECT_EQ(write_report(answers, options, sink).error().code, Errc::usage);
}

TEST(Report, BlocksStandWithTheirLinesTheHottestAreKept) {
    Answers answers = made_flow();
    // Blocks of two functions: a short block that ran often, and a long one that ran less often but executed more
    // instructions.
    answers.blocks = {{0x10000, 8, 2, 0, 100}, {0x10050, 40, 10, 1, 30}, {0x10078, 4, 1, 1, 0}};
    const json head = part(written(answers), "head");
    EXPECT_EQ(head["has"]["blocks"], 3);
    const json blocks = part(written(answers), "branches")["blocks"];
    EXPECT_EQ(blocks["address"], json({0x10000, 0x50, 0x28}));
    EXPECT_EQ(blocks["times"], json({100, 30, 0}));
    EXPECT_EQ(blocks["line"], json({1, 9, 12}));
    ReportOptions options = options_with(small_page);
    options.most_instructions = 1;
    EXPECT_EQ(part(written(answers, options), "branches")["blocks"]["times"], json({30}));
}

TEST(Report, InstructionsNameTheInlinedCallsTheyLieIn) {
    Answers answers = made_flow();
    EXPECT_FALSE(part(written(answers), "code").contains("inlined"));
    answers.inlined = {
        {none, 7, "elsewhere", "", 0, 1}, {none, 0, "outer", "_Z5outerv", 0, 3}, {1, 0, "inner", "", 1, 9}};
    answers.instructions[2].inlined = 2;
    answers.instructions[20 * 7].inlined = 0;
    const auto calls = [](const json& code) {
        json out = json::array();
        for (const json& name : code["inlined"]["name"]) out.push_back(code["texts"][name.get<std::size_t>()]);
        return out;
    };
    const json code = part(written(answers), "code");
    EXPECT_EQ(calls(code), json({"elsewhere", "outer", "inner"}));
    EXPECT_EQ(code["inlined"]["parent"], json({-1, -1, 1}));
    EXPECT_EQ(code["inlined"]["source"], json({0, 0, 1}));
    EXPECT_EQ(code["inlined"]["line"], json({1, 3, 9}));
    EXPECT_EQ(code["instructions"]["inlined"][1], -1);
    EXPECT_EQ(code["instructions"]["inlined"][2], 2);
    EXPECT_EQ(code["instructions"]["inlined"][20 * 7], 0);
    // Calls are left out together with their function.
    ReportOptions options = options_with(small_page);
    options.most_instructions = 100;
    const json less = part(written(answers, options), "code");
    EXPECT_EQ(calls(less), json({"outer", "inner"}));
    EXPECT_EQ(less["inlined"]["parent"], json({-1, 0}));
    EXPECT_EQ(less["instructions"]["inlined"][2], 1);
}

TEST(Report, CallsFromFunctionToFunctionAreThoseOfBranches) {
    Answers answers = made_flow();
    using Kind = Branch::Kind;
    const auto to = [&](Index function) { return answers.functions[function].address; };
    answers.edges = {{to(0) + 4, to(1), 0, 1, Kind::call, 5},
                     {to(0) + 8, to(1), 0, 1, Kind::indirect_call, 2},
                     {to(1) + 4, to(0) + 8, 1, 0, Kind::function_return, 7},
                     {to(2) + 4, to(3), 2, 3, Kind::unconditional, 4},      // a tail call
                     {to(2) + 8, to(3) + 4, 2, 3, Kind::unconditional, 9},  // a branch into the middle of a function:
                                                                            // no call
                     {to(4) + 8, to(4), 4, 4, Kind::conditional, 50},       // a loop
                     {to(5) + 8, to(0), 5, none, Kind::call, 1}};
    EXPECT_EQ(part(written(answers), "head")["has"]["edges"], 7);
    const json edges = part(written(answers), "branches")["edges"];
    EXPECT_EQ(edges["from"], json({0, 2}));
    EXPECT_EQ(edges["to"], json({1, 3}));
    EXPECT_EQ(edges["times"], json({7, 4}));
}

TEST(Report, TellsWhatIsExactAndInWhichUnitExceptionsAre) {
    Answers answers = made_flow();
    answers.trust = {{"tasks", "every figure", "", ""}, {"loops", "", "", "not recorded in this mode"}};
    answers.exceptions = {{"IRQ", 14, 2, 0, 5, 7, 12, 2, "cycles"}};
    const json head = part(written(answers), "head");
    EXPECT_EQ(head["trust"][0]["exact"], "every figure");
    EXPECT_EQ(head["trust"][1]["notKnown"], "not recorded in this mode");
    EXPECT_EQ(head["exceptions"][0]["unit"], "cycles");
}

TEST(Report, HasLevelsWithTheirCosts) {
    Answers answers = made_flow();
    answers.metrics.resize(1);
    const json head = part(written(answers), "head");
    ASSERT_EQ(head["levels"].size(), 2U);
    EXPECT_EQ(head["levels"][1], json({{"name", "EL0 Non-secure"}, {"entered", 41}, {"costs", {2'000'000}}}));
}

TEST(Report, ATableThatWasCutSaysHowManyRowsItHad) {
    Answers answers = made_flow();
    Table table{.columns = {Column::count("n", "n")}};
    for (std::uint64_t i = 0; i < 5; ++i) table.add({i});
    answers.tables = {table};
    EXPECT_EQ(part(written(answers), "head")["tables"][0]["of"], 5);
}

TEST(Report, EmptyAnswersAreAReportToo) {
    Answers answers;
    answers.metrics = {{"instructions", "instructions"}};
    EXPECT_EQ(part(written(answers), "head")["has"]["calls"], 0);
}

TEST(Report, SaysWhatIsMissing) {
    ByteCollector sink;
    EXPECT_EQ(write_report({}, options_with(""), sink).error().code, Errc::unsupported);
    EXPECT_EQ(write_report({}, options_with("<html></html>"), sink).error().code, Errc::usage);
    EXPECT_TRUE(sink.bytes().empty());
    // The page is there or the reason why not.
    EXPECT_NE(built_in_page().empty(), why_no_page().empty());
}

}  // namespace
}  // namespace waymark::report
