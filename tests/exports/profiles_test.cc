/// Profiles for people: folded stacks, speedscope, Firefox, pprof, Callgrind. Each read back, and by its own tool where
/// that is installed.
#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <protozero/pbf_reader.hpp>
#include <sstream>

#include "exports/gunzip.h"
#include "exports/some_answers.h"
#include "exports/tools.h"
#include "support/sanitized.h"
#include "waymark/exports/autofdo.h"
#include "waymark/exports/callgrind.h"
#include "waymark/exports/firefox.h"
#include "waymark/exports/folded.h"
#include "waymark/exports/pprof.h"
#include "waymark/exports/speedscope.h"

namespace waymark::exports {
namespace {

using nlohmann::json;
using support::gunzip;
using support::random_answers;
using support::run;
using support::sampled_answers;
using support::small_answers;
using support::written;

std::uint64_t total(const answers::Answers& a, std::size_t metric) {
    std::uint64_t sum = 0;
    for (const auto& c : a.calls) sum += c.self.at(metric);
    return sum;
}

TEST(Folded, Paths) {
    const auto answers = small_answers();
    const auto instructions = written([&](ByteSink& sink) { return write_folded(answers, {0}, sink); });
    EXPECT_EQ(instructions.text,
              "main 6\n"
              "main;sort(int*, int) 19\n"
              "main;sort(int*, int);compare 15\n"
              "main;sort(int*, int);[interrupt 6] 6\n");
    const auto cycles = written([&](ByteSink& sink) { return write_folded(answers, {1}, sink); });
    EXPECT_NE(cycles.text.find("main;sort(int*, int) 25\n"), std::string::npos);
}

TEST(Folded, FlatWithoutATreeAndSaidSo) {
    const auto answers = sampled_answers();
    const auto out = written([&](ByteSink& sink) { return write_folded(answers, {0}, sink); });
    EXPECT_EQ(out.text, "main 6\nsort(int*, int) 19\ncompare 15\n");
    EXPECT_NE(out.notes().find("flat"), std::string::npos);
}

TEST(Folded, NamesDoNotBreakLines) {
    const auto answers = random_answers(1, 0);
    const auto out = written([&](ByteSink& sink) { return write_folded(answers, {0}, sink); });
    std::istringstream lines(out.text);
    std::uint64_t sum = 0;
    for (std::string line; std::getline(lines, line);) {
        ASSERT_NE(line.rfind(' '), std::string::npos) << line;
        sum += std::stoull(line.substr(line.rfind(' ') + 1));
    }
    EXPECT_EQ(sum, total(answers, 0));
}

TEST(AllProfiles, NoCostsAtAll) {
    answers::Answers a;
    a.metrics = {{"instructions", "instructions"}};
    ByteCollector sink;
    EXPECT_FALSE(write_folded(a, {}, sink));
    EXPECT_FALSE(write_speedscope(a, {}, sink));
    EXPECT_FALSE(write_firefox(a, {}, sink));
    EXPECT_FALSE(write_pprof(a, {}, sink));
    EXPECT_FALSE(write_callgrind(a, {}, sink));
    a.metrics.clear();
    EXPECT_FALSE(write_folded(a, {}, sink));
    EXPECT_FALSE(write_speedscope(a, {}, sink));
    EXPECT_FALSE(write_firefox(a, {}, sink));
    EXPECT_FALSE(write_pprof(a, {}, sink));
    EXPECT_FALSE(write_callgrind(a, {}, sink));
}

// ---- speedscope

/// The conditions of speedscope's own import: frames exist, events are nested, and times never decrease.
void check_speedscope(const json& file) {
    ASSERT_EQ(file.at("$schema"), "https://www.speedscope.app/file-format-schema.json");
    const std::size_t frames = file.at("shared").at("frames").size();
    for (const json& profile : file.at("profiles")) {
        ASSERT_LE(profile.at("startValue").get<double>(), profile.at("endValue").get<double>());
        if (profile.at("type") == "evented") {
            std::vector<std::size_t> stack;
            double now = profile.at("startValue");
            for (const json& event : profile.at("events")) {
                const std::size_t frame = event.at("frame");
                ASSERT_LT(frame, frames);
                ASSERT_GE(event.at("at").get<double>(), now);
                now = event.at("at");
                if (event.at("type") == "O") {
                    stack.push_back(frame);
                } else {
                    ASSERT_EQ(event.at("type"), "C");
                    ASSERT_FALSE(stack.empty());
                    ASSERT_EQ(stack.back(), frame);
                    stack.pop_back();
                }
            }
            ASSERT_TRUE(stack.empty());
            ASSERT_LE(now, profile.at("endValue").get<double>());
        } else {
            ASSERT_EQ(profile.at("type"), "sampled");
            ASSERT_EQ(profile.at("samples").size(), profile.at("weights").size());
            for (const json& sample : profile.at("samples"))
                for (const json& frame : sample) ASSERT_LT(frame.get<std::size_t>(), frames);
        }
    }
}

TEST(Speedscope, TimelineAndTree) {
    const auto answers = small_answers();
    const auto out = written([&](ByteSink& sink) { return write_speedscope(answers, {1, {}}, sink); });
    const json file = json::parse(out.text);
    check_speedscope(file);
    ASSERT_EQ(file["profiles"].size(), 3U);
    const json& core = file["profiles"][0];
    EXPECT_EQ(core["name"], "core 0");
    EXPECT_EQ(core["unit"], "nanoseconds");
    EXPECT_EQ(core["endValue"], 57'000);
    EXPECT_EQ(core["events"].size(), 10U);
    EXPECT_EQ(core["events"][1], (json{{"type", "O"}, {"frame", 1}, {"at", 4000}}));
    const json& costs = file["profiles"][2];
    EXPECT_EQ(costs["name"], "cycles by call path");
    EXPECT_EQ(costs["endValue"], total(answers, 1));
    EXPECT_EQ(costs["type"], "evented");
    EXPECT_EQ(costs["events"].back()["at"], total(answers, 1));
    EXPECT_EQ(file["shared"]["frames"][1], (json{{"name", "sort(int*, int)"}, {"file", "/src/sort.c"}, {"line", 20}}));
}

/// A recursion of this depth, in which each call costs 1.
answers::Answers recursion(std::size_t depth) {
    answers::Answers a = small_answers();
    a.timeline = {};
    a.calls.resize(1);
    a.calls[0].self.assign(a.metrics.size(), 0);
    for (answers::Index i = 0; i < depth; ++i) {
        answers::CallNode node = a.calls[0];
        node.kind = answers::CallNode::Kind::call;
        node.parent = i;
        node.function = 1;
        node.self.assign(a.metrics.size(), 1);
        a.calls.push_back(node);
    }
    return a;
}

TEST(Recursion, NoFormatGrowsWithTheSquareOfItsDepth) {
    const auto bytes = [](std::size_t depth, const auto& write) {
        const auto answers = recursion(depth);
        return written([&](ByteSink& sink) { return write(answers, sink); }).text.size();
    };
    const auto folded = [](const auto& a, ByteSink& sink) { return write_folded(a, {}, sink); };
    const auto speedscope = [](const auto& a, ByteSink& sink) { return write_speedscope(a, {}, sink); };
    const auto pprof = [](const auto& a, ByteSink& sink) { return write_pprof(a, {}, sink); };
    const auto callgrind = [](const auto& a, ByteSink& sink) { return write_callgrind(a, {}, sink); };
    // Paths of more than 512 frames are cut: for deeper recursion, a format that writes paths is linear too.
    constexpr std::size_t depth = sized(4000U, 800U);
    EXPECT_LT(bytes(2 * depth, folded), bytes(depth, folded) * 5 / 2);
    const std::size_t in_speedscope = bytes(2 * depth, speedscope);
    EXPECT_LT(in_speedscope, bytes(depth, speedscope) * 5 / 2);
    EXPECT_LT(in_speedscope, 2 * depth * 120 + 4000);
    EXPECT_LT(bytes(2 * depth, pprof), bytes(depth, pprof) * 5 / 2);
    EXPECT_LT(bytes(2 * depth, callgrind), bytes(depth, callgrind) * 5 / 2);
}

TEST(Recursion, PathsThatAreTooLongAreCutInTheMiddle) {
    const auto out = written([&](ByteSink& sink) { return write_folded(recursion(600), {}, sink); });
    std::istringstream lines(out.text);
    std::uint64_t sum = 0, cut = 0;
    for (std::string line; std::getline(lines, line);) {
        sum += std::stoull(line.substr(line.rfind(' ') + 1));
        cut += line.find("frames left out]") != line.npos ? 1 : 0;
        EXPECT_LE(std::count(line.begin(), line.end(), ';'), 511);
    }
    EXPECT_EQ(sum, 600U);
    EXPECT_NE(cut, 0U);
    EXPECT_NE(out.notes().find("deeper than 512 frames"), std::string::npos) << out.notes();
}

TEST(Speedscope, AtRandomAndBounded) {
    for (std::uint64_t seed = 1; seed <= sized(5U, 2U); ++seed) {
        const auto answers = random_answers(seed, 3000);
        const auto all = written([&](ByteSink& sink) { return write_speedscope(answers, {}, sink); });
        check_speedscope(json::parse(all.text));
        const auto some = written([&](ByteSink& sink) { return write_speedscope(answers, {0, 40'000}, sink); });
        EXPECT_LE(some.text.size(), 40'000U);
        check_speedscope(json::parse(some.text));
        ByteCollector sink;
        EXPECT_FALSE(write_speedscope(answers, {0, 100}, sink));
    }
}

TEST(Speedscope, WithoutTimelineOrTree) {
    const auto answers = sampled_answers();
    const auto out = written([&](ByteSink& sink) { return write_speedscope(answers, {}, sink); });
    const json file = json::parse(out.text);
    check_speedscope(file);
    ASSERT_EQ(file["profiles"].size(), 1U);
    EXPECT_EQ(file["profiles"][0]["name"], "samples by function");
    EXPECT_NE(out.notes().find("flat"), std::string::npos);
    EXPECT_NE(out.notes().find("no timeline"), std::string::npos);
}

// ---- Firefox

/// All columns of a table have its length, and their indices are valid.
void check_table(const json& table, const std::string& name) {
    const std::size_t length = table.at("length");
    for (const auto& [key, value] : table.items())
        ASSERT_TRUE(!value.is_array() || value.size() == length) << name << "." << key;
}
void check_refers(const json& column, std::size_t size, const std::string& name) {
    for (const json& value : column)
        ASSERT_TRUE(value.is_null() || value.get<std::int64_t>() < static_cast<std::int64_t>(size)) << name;
}
void check_firefox(const json& file) {
    ASSERT_EQ(file.at("meta").at("preprocessedProfileVersion"), 48);
    ASSERT_FALSE(file.at("threads").empty());
    for (const json& thread : file.at("threads")) {
        for (const char* table :
             {"samples", "markers", "stackTable", "frameTable", "funcTable", "resourceTable", "nativeSymbols"})
            check_table(thread.at(table), table);
        const std::size_t strings = thread.at("stringArray").size();
        check_refers(thread["samples"]["stack"], thread["stackTable"]["length"], "stack");
        check_refers(thread["stackTable"]["frame"], thread["frameTable"]["length"], "frame");
        check_refers(thread["frameTable"]["func"], thread["funcTable"]["length"], "func");
        check_refers(thread["funcTable"]["name"], strings, "name");
        check_refers(thread["funcTable"]["fileName"], strings, "fileName");
        check_refers(thread["funcTable"]["resource"], thread["resourceTable"]["length"], "resource");
        check_refers(thread["resourceTable"]["lib"], file.at("libs").size(), "lib");
        check_refers(thread["resourceTable"]["name"], strings, "resource name");
        check_refers(thread["markers"]["name"], strings, "marker name");
        const json& prefix = thread["stackTable"]["prefix"];
        for (std::size_t i = 0; i < prefix.size(); ++i)
            ASSERT_TRUE(prefix[i].is_null() || prefix[i].get<std::size_t>() < i) << "a stack before its prefix";
        double last = -1;
        for (const json& time : thread["samples"]["time"]) {
            ASSERT_GE(time.get<double>(), last);
            last = time;
        }
        for (const char* key : {"pid", "tid", "name", "processType", "isMainThread", "pausedRanges", "registerTime"})
            ASSERT_TRUE(thread.contains(key)) << key;
    }
}

TEST(Firefox, TimelineAndTree) {
    const auto answers = small_answers();
    const auto out = written([&](ByteSink& sink) { return write_firefox(answers, {}, sink); });
    const json file = json::parse(out.text);
    check_firefox(file);
    ASSERT_EQ(file["threads"].size(), 3U);
    const json& core = file["threads"][0];
    EXPECT_EQ(core["name"], "core 0");
    // The stacks together have all of the 57 µs.
    double sum = 0;
    for (const json& weight : core["samples"]["weight"]) sum += weight.get<double>();
    EXPECT_NEAR(sum, 0.057, 1e-9);
    EXPECT_EQ(core["markers"]["length"], 1);
    EXPECT_EQ(core["markers"]["data"][0]["name"], "bytes lost");
    const json& costs = file["threads"][2];
    EXPECT_EQ(costs["name"], "instructions by call path");
    std::uint64_t all = 0;
    for (const json& weight : costs["samples"]["weight"]) all += weight.get<std::uint64_t>();
    EXPECT_EQ(all, total(answers, 0));
}

TEST(Firefox, AtRandomAndBounded) {
    for (std::uint64_t seed = 1; seed <= sized(5U, 2U); ++seed) {
        const auto answers = random_answers(seed, 3000);
        const auto all = written([&](ByteSink& sink) { return write_firefox(answers, {}, sink); });
        check_firefox(json::parse(all.text));
        const auto some = written([&](ByteSink& sink) { return write_firefox(answers, {0, 60'000}, sink); });
        EXPECT_LE(some.text.size(), 60'000U);
        check_firefox(json::parse(some.text));
    }
    const auto flat = written([&](ByteSink& sink) { return write_firefox(sampled_answers(), {}, sink); });
    check_firefox(json::parse(flat.text));
    EXPECT_NE(flat.notes().find("flat"), std::string::npos);
}

TEST(Firefox, ThreadsByTheNumbersInTheirNames) {
    answers::Answers a = small_answers();
    a.timeline = {};
    a.timeline.axis = {"ns", 0, 0, 100, 0, ""};
    for (const char* name : {"a[12] on cpu0", "b[12]", "a[12] on cpu1", "c[]", "d[5x] y", "e]3[", "f[3", "g[4] x",
                             "[0]", "h[99999999999999999999]", "i", "a[12]"}) {
        const auto track = static_cast<answers::Index>(a.timeline.tracks.size());
        a.timeline.tracks.push_back({name, answers::none});
        a.timeline.slices.push_back({10, 20, track, 0, 0, 1});
    }
    const json file = json::parse(written([&](ByteSink& sink) { return write_firefox(a, {}, sink); }).text);
    std::string threads;
    for (const json& t : file["threads"])
        threads += t["name"].get<std::string>() + "=" + t["tid"].dump() + (t["isMainThread"].get<bool>() ? "*" : "") +
                   " " + t["samples"]["length"].dump() + "\n";
    EXPECT_EQ(threads,
              "a[12]=12* 6\nb[12]=1 2\nc[]=2 2\nd[5x] y=3 2\ne]3[=4 2\nf[3=5 2\ng[4] x=6 2\n[0]=7 2\n"
              "h[99999999999999999999]=8 2\ni=9 2\ninstructions by call path=10 4\n");
}

TEST(Firefox, IntervalAndRange) {
    const auto interval = [](std::size_t nodes, std::uint64_t cost, std::uint64_t end) {
        answers::Answers a;
        a.metrics = {{"instructions", "instructions"}};
        a.functions = {{"f"}};
        a.calls.resize(nodes);
        for (answers::Index i = 0; i < nodes; ++i)
            a.calls[i] = {answers::none, 0, answers::CallNode::Kind::call, 1, {cost}};
        a.timeline.axis = {"ns", 0, 1000, 1000 + end, 0, ""};
        if (end != 0) {
            a.timeline.tracks = {{"t", answers::none}};
            a.timeline.slices = {{1000, 1000 + end / 2, 0, 0, 0, 1}};
        }
        const json file = json::parse(written([&](ByteSink& sink) { return write_firefox(a, {}, sink); }).text);
        const json& times = file["threads"].back()["samples"]["time"];
        return file["meta"]["interval"].dump() + " " + times.back().dump();
    };
    // Without a timeline each cost takes a nanosecond; the range is divided by the number of samples, at least 1000.
    EXPECT_EQ(interval(4, 1'000'000, 0), "0.004 3.0");
    EXPECT_EQ(interval(2000, 1'000'000, 0), "1.0 1999.0");
    EXPECT_EQ(interval(4, 1, 0), "1e-06 0.00075") << "at least a microsecond";
    EXPECT_EQ(interval(4, 1, 8'000'000), "0.008 6.0");
}

// ---- pprof

struct ReadProfile {
    std::vector<std::string> strings;
    std::map<std::uint64_t, std::uint64_t> function_names, system_names, location_functions, location_lines;
    std::vector<std::pair<std::vector<std::uint64_t>, std::vector<std::int64_t>>> samples;
    /// `compare;sort;main`, the innermost first.
    [[nodiscard]] std::map<std::string, std::vector<std::int64_t>> by_path() const {
        std::map<std::string, std::vector<std::int64_t>> out;
        for (const auto& [path, values] : samples) {
            std::string text;
            for (const std::uint64_t location : path)
                text += (text.empty() ? "" : ";") + strings.at(function_names.at(location_functions.at(location)));
            auto& sum = out[text];
            sum.resize(values.size());
            for (std::size_t i = 0; i < values.size(); ++i) sum[i] += values[i];
        }
        return out;
    }
};
ReadProfile read_profile(const std::string& bytes) {
    ReadProfile out;
    protozero::pbf_reader p(bytes);
    while (p.next()) {
        if (p.tag() == 2) {
            auto s = p.get_message();
            auto& sample = out.samples.emplace_back();
            while (s.next()) {
                if (s.tag() == 1)
                    for (const auto id : s.get_packed_uint64()) sample.first.push_back(id);
                else
                    for (const auto value : s.get_packed_int64()) sample.second.push_back(value);
            }
        } else if (p.tag() == 4) {
            auto l = p.get_message();
            std::uint64_t id = 0;
            while (l.next()) {
                if (l.tag() == 1) {
                    id = l.get_uint64();
                } else if (l.tag() == 4) {
                    auto line = l.get_message();
                    while (line.next())
                        (line.tag() == 1 ? out.location_functions : out.location_lines)[id] = line.get_uint64();
                } else {
                    l.skip();
                }
            }
        } else if (p.tag() == 5) {
            auto f = p.get_message();
            std::uint64_t id = 0;
            while (f.next()) {
                if (f.tag() == 1)
                    id = f.get_uint64();
                else if (f.tag() == 2)
                    out.function_names[id] = f.get_uint64();
                else if (f.tag() == 3)
                    out.system_names[id] = f.get_uint64();
                else
                    f.skip();
            }
        } else if (p.tag() == 6) {
            out.strings.push_back(p.get_string());
        } else {
            p.skip();
        }
    }
    return out;
}

TEST(Pprof, PathsWithAllMetrics) {
    const auto answers = small_answers();
    const auto out = written([&](ByteSink& sink) { return write_pprof(answers, {1}, sink); });
    const ReadProfile profile = read_profile(gunzip(out.text));
    ASSERT_FALSE(profile.strings.empty());
    EXPECT_EQ(profile.strings[0], "");
    const std::map<std::string, std::vector<std::int64_t>> expected{{"main", {6, 9}},
                                                                    {"sort(int*, int);main", {19, 25}},
                                                                    {"compare;sort(int*, int);main", {15, 16}},
                                                                    {"[interrupt 6];sort(int*, int);main", {6, 7}}};
    EXPECT_EQ(profile.by_path(), expected);
}

TEST(Pprof, NamesThatAreNoSymbolsHaveNoSystemName) {
    auto answers = small_answers();
    answers.functions[0].name = "<code not known>";
    answers.functions[0].linkage_name.clear();
    const auto out = written([&](ByteSink& sink) { return write_pprof(answers, {}, sink); });
    const ReadProfile profile = read_profile(gunzip(out.text));
    EXPECT_EQ(profile.strings.at(profile.function_names.at(1)), "<code not known>");
    // With a system name, pprof would cut the brackets out.
    EXPECT_FALSE(profile.system_names.contains(1));
    EXPECT_EQ(profile.strings.at(profile.system_names.at(2)), "_Z4sortPii");
}

TEST(Pprof, InstructionsWhereThereIsNoTree) {
    const auto answers = sampled_answers();
    const auto out = written([&](ByteSink& sink) { return write_pprof(answers, {}, sink); });
    const ReadProfile profile = read_profile(gunzip(out.text));
    EXPECT_EQ(profile.by_path().at("compare"), (std::vector<std::int64_t>{15, 16}));
    EXPECT_EQ(profile.samples.size(), 12U);
    EXPECT_EQ(profile.location_lines.at(profile.samples[0].first[0]), 10U);
}

TEST(Pprof, ProtocKnowsEveryField) {
    WM_NEEDS_TOOL("protoc");
    const TemporaryFolder folder;
    const auto answers = small_answers();
    const auto out = written([&](ByteSink& sink) { return write_pprof(answers, {1}, sink); });
    const auto file = folder.write("profile.pb", gunzip(out.text));
    const support::Ran ran = run("protoc --proto_path=" + shell_word(WAYMARK_TEST_DATA "/exports") +
                                 " --decode=waymark.test.Profile pprof.proto < " + shell_word(file));
    EXPECT_EQ(ran.status, 0) << ran.output;
    EXPECT_NE(ran.output.find("\"sort(int*, int)\""), std::string::npos) << ran.output;
    EXPECT_NE(ran.output.find("\"_Z4sortPii\""), std::string::npos);
    // A function without a description would appear there as a bare number.
    EXPECT_EQ(ran.output.find("\n0: "), std::string::npos);
    for (int field = 1; field < 20; ++field)
        EXPECT_EQ(ran.output.find("\n" + std::to_string(field) + ": "), std::string::npos) << ran.output;
}

// ---- Callgrind

TEST(Callgrind, CostsCallsAndJumps) {
    const auto answers = small_answers();
    const auto out = written([&](ByteSink& sink) { return write_callgrind(answers, {0}, sink); });
    for (const char* line :
         {"positions: instr line\n", "events: Ir Cycles\n", "0x8000 10 1 2\n", "calls=2 0x8010 20\n0x8004 11 40 48\n",
          "calls=5 0x8028 40\n0x8014 21 15 16\n", "jcnd=1/2 0x8004 11\n0x8008 11\n", "jcnd=3/5 0x8014 21\n0x801c 22\n",
          "fi=(2) /src/inline.h\n0x8018 7 5 5\n", "cfn=(4) [interrupt 6]\ncalls=1 0x0 0\n0x8010 20 6 7\n",
          "fn=(4)\n0x0 0 6 7\n", "totals: 46 57\n"})
        EXPECT_NE(out.text.find(line), std::string::npos) << line << "\n" << out.text;
    const auto cycles = written([&](ByteSink& sink) { return write_callgrind(answers, {1}, sink); });
    EXPECT_NE(cycles.text.find("events: Cycles Ir\n"), std::string::npos);
    EXPECT_NE(cycles.text.find("totals: 57 46\n"), std::string::npos);
}

TEST(Callgrind, FunctionsWhereThereAreNoInstructions) {
    auto answers = small_answers();
    answers.instructions.clear();
    answers.edges.clear();
    const auto out = written([&](ByteSink& sink) { return write_callgrind(answers, {0}, sink); });
    EXPECT_NE(out.text.find("totals: 46 57\n"), std::string::npos) << out.text;
    EXPECT_NE(out.text.find("calls=2 0x8010 20\n0x8000 10 40 48\n"), std::string::npos) << out.text;
    EXPECT_NE(out.notes().find("by function"), std::string::npos);
}

TEST(Callgrind, NamesAreNotToldInJumps) {
    using namespace answers;
    Answers a = small_answers();
    a.calls.clear();
    a.edges.push_back({0x800c, 0x8028, 0, 2, Branch::Kind::unconditional, 3, {}});
    std::sort(a.edges.begin(), a.edges.end(), [](const Edge& x, const Edge& y) { return x.from < y.from; });
    const auto out = written([&](ByteSink& sink) { return write_callgrind(a, {0}, sink); });
    EXPECT_NE(out.text.find("jfi=(1)\njfn=compare\njump=3 0x8028 40\n0x800c 13\n"), std::string::npos) << out.text;
    EXPECT_NE(out.text.find("\ncfn=(3) compare\n"), std::string::npos) << out.text;
}

TEST(Callgrind, EventsAreOneWord) {
    const auto event = [](const char* name) {
        answers::Answers a = small_answers();
        a.metrics[1].name = name;
        const std::string text = written([&](ByteSink& sink) { return write_callgrind(a, {0}, sink); }).text;
        const std::size_t at = text.find("events: Ir ") + 11;
        return text.substr(at, text.find('\n', at) - at);
    };
    EXPECT_EQ(event("cycles"), "Cycles");
    EXPECT_EQ(event("l1d-cache misses"), "L1dCacheMisses");
    EXPECT_EQ(event("4 wide"), "E4Wide");
    EXPECT_EQ(event("!"), "E");
    EXPECT_EQ(event("instructions"), "Ir");
}

TEST(Callgrind, RecursionIsCountedOnce) {
    using namespace answers;
    Answers a = small_answers();
    a.instructions.clear();
    a.edges.clear();
    a.calls = {{none, none, CallNode::Kind::root, 1, {0, 0}},
               {0, 0, CallNode::Kind::call, 1, {1, 1}},
               {1, 1, CallNode::Kind::call, 1, {10, 10}},
               {2, 1, CallNode::Kind::call, 1, {10, 10}},
               {3, 1, CallNode::Kind::call, 1, {10, 10}}};
    const auto out = written([&](ByteSink& sink) { return write_callgrind(a, {0}, sink); });
    EXPECT_NE(out.text.find("calls=1 0x8010 20\n0x8000 10 30 30\n"), std::string::npos) << out.text;
    EXPECT_NE(out.text.find("calls=2 0x8010 20\n0x8010 20 20 20\n"), std::string::npos) << out.text;
}

// Counts that stopped at the largest number stay there in every sum: a sum that wrapped would look like a small count.
TEST(AllProfiles, SumsOfSaturatedCountsStaySaturated) {
    constexpr std::uint64_t most = ~std::uint64_t{0};
    const std::string text = std::to_string(most);
    auto a = small_answers();
    for (auto& i : a.instructions) i.times = most, i.costs.assign(2, most);
    for (auto& c : a.calls) c.calls = most, c.self.assign(2, most);
    for (auto& e : a.edges) e.times = most, e.inclusive.assign(2, most);
    const auto callgrind = written([&](ByteSink& sink) { return write_callgrind(a, {0}, sink); });
    EXPECT_NE(callgrind.text.find("totals: " + text), std::string::npos) << callgrind.text;
    for (std::size_t at = 0; (at = callgrind.text.find("calls=", at)) != std::string::npos; ++at) {
        std::istringstream lines(callgrind.text.substr(at));
        std::string calls, cost;
        std::getline(lines, calls);
        std::getline(lines, cost);
        EXPECT_TRUE(cost.ends_with(' ' + text)) << calls << '\n' << cost;
    }
    const auto speedscope = json::parse(written([&](ByteSink& sink) { return write_speedscope(a, {0}, sink); }).text);
    for (const json& profile : speedscope["profiles"])
        if (profile["type"] == "sampled") {
            EXPECT_EQ(profile["endValue"], most);
        }
    const auto autofdo = written([&](ByteSink& sink) { return write_autofdo(a, sink); });
    std::istringstream lines(autofdo.text);
    std::size_t functions = 0;
    for (std::string line; std::getline(lines, line);) {
        // FUNCTION:TOTAL:HEAD
        if (line.starts_with(' ')) continue;
        EXPECT_NE(line.find(':' + text + ':'), std::string::npos) << line;
        ++functions;
    }
    EXPECT_EQ(functions, 3U);
}

/// Counter units: a task runs without a call, so its node has no calls. callgrind_annotate takes the line after
/// `calls=0` as own cost of the caller.
TEST(Callgrind, NoCallsLineWithoutCalls) {
    using namespace answers;
    Answers a = small_answers();
    a.instructions.clear();
    a.edges.clear();
    a.calls = {{none, none, CallNode::Kind::root, 1, {0, 0}},
               {0, 0, CallNode::Kind::call, 0, {0, 0}},
               {1, 1, CallNode::Kind::call, 0, {30, 40}},
               {2, 2, CallNode::Kind::call, 5, {16, 17}}};
    const auto out = written([&](ByteSink& sink) { return write_callgrind(a, {0}, sink); });
    EXPECT_EQ(out.text.find("calls=0"), std::string::npos) << out.text;
    EXPECT_NE(out.text.find("calls=5 0x8028 40\n0x8010 20 16 17\n"), std::string::npos) << out.text;
    EXPECT_NE(out.text.find("totals: 46 57\n"), std::string::npos) << out.text;
    EXPECT_NE(out.notes().find("no call was seen for 1 pair of caller and callee"), std::string::npos) << out.notes();
    WM_NEEDS_TOOL("callgrind_annotate");
    const TemporaryFolder folder;
    const support::Ran ran = run("callgrind_annotate --auto=no --threshold=100 --show=Ir " +
                                 shell_word(folder.write("callgrind.out", out.text)));
    EXPECT_EQ(ran.status, 0) << ran.output;
    EXPECT_NE(ran.output.find("30 (65.22%)  /src/sort.c:sort"), std::string::npos) << ran.output;
    EXPECT_NE(ran.output.find("16 (34.78%)  /src/sort.c:compare"), std::string::npos) << ran.output;
    EXPECT_EQ(ran.output.find("/src/sort.c:main"), std::string::npos) << ran.output;
}

TEST(Callgrind, AnnotateAddsUp) {
    WM_NEEDS_TOOL("callgrind_annotate");
    const TemporaryFolder folder;
    const auto answers = small_answers();
    const auto out = written([&](ByteSink& sink) { return write_callgrind(answers, {0}, sink); });
    const auto file = folder.write("callgrind.out", out.text);
    const support::Ran ran = run("callgrind_annotate --auto=no --inclusive=yes --threshold=100 " + shell_word(file));
    EXPECT_EQ(ran.status, 0) << ran.output;
    EXPECT_EQ(ran.output.find("WARNING"), std::string::npos) << ran.output;
    EXPECT_EQ(ran.output.find("Use of uninitialized"), std::string::npos) << ran.output;
    EXPECT_NE(ran.output.find("46 (100.0%) 57 (100.0%)  PROGRAM TOTALS"), std::string::npos) << ran.output;
    EXPECT_NE(ran.output.find("46 (100.0%) 57 (100.0%)  /src/sort.c:main"), std::string::npos) << ran.output;
    EXPECT_NE(ran.output.find("15 (32.61%) 16 (28.07%)  /src/sort.c:compare"), std::string::npos) << ran.output;
    const auto random = random_answers(7, 0);
    const auto more = written([&](ByteSink& sink) { return write_callgrind(random, {0}, sink); });
    const support::Ran again =
        run("callgrind_annotate --auto=no " + shell_word(folder.write("callgrind.random", more.text)));
    EXPECT_EQ(again.status, 0) << again.output;
    EXPECT_EQ(again.output.find("WARNING"), std::string::npos) << again.output;
}

}  // namespace
}  // namespace waymark::exports
