/// Whole outputs: every format of detailed answers, byte by byte, with its notes, beside approved text in
/// tests/exports/whole. Binary formats are unpacked to text. WM_UPDATE_APPROVED=1 writes the text: review it like
/// code.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <protozero/pbf_reader.hpp>
#include <set>

#include "exports/gunzip.h"
#include "exports/some_answers.h"
#include "exports/tools.h"
#include "support/approved.h"
#include "support/detailed_answers.h"
#include "waymark/exports/autofdo.h"
#include "waymark/exports/bolt.h"
#include "waymark/exports/branch_list.h"
#include "waymark/exports/callgrind.h"
#include "waymark/exports/cobertura.h"
#include "waymark/exports/firefox.h"
#include "waymark/exports/folded.h"
#include "waymark/exports/image_profile.h"
#include "waymark/exports/lcov.h"
#include "waymark/exports/perfetto.h"
#include "waymark/exports/pprof.h"
#include "waymark/exports/speedscope.h"
#include "waymark/exports/tables.h"
#include "waymark/exports/write.h"

namespace waymark::exports {
namespace {

using answers::Answers;

// ---- protobuf as text

/// Fields whose values are messages or packed numbers, as paths of field numbers: `4.4`.
struct Shape {
    std::set<std::string> messages{}, packed{}, bytes{};
};
const Shape pprof_shape{{"1", "2", "3", "4", "4.4", "5"}, {"2.1", "2.2"}};
const Shape perfetto_shape{
    {"1", "1.6", "1.6.1", "1.11", "1.11.4", "1.12", "1.12.2", "1.59", "1.59.11", "1.60", "1.60.3", "1.60.8"}};
const Shape branch_list_shape{{"2", "2.3", "2.3.2", "2.5", "2.6"}, {}, {"2.3.2.1"}};

std::string as_text(protozero::pbf_reader message, const Shape& shape, const std::string& path = {}) {
    std::string out;
    const auto hex = [](std::string_view bytes) {
        std::string digits;
        for (const char c : bytes) digits += fmt::format("{:02x}", static_cast<unsigned char>(c));
        return digits;
    };
    while (message.next()) {
        const std::string at = path.empty() ? std::to_string(message.tag()) : fmt::format("{}.{}", path, message.tag());
        if (!path.empty() && !out.empty()) out += " ";
        out += std::to_string(message.tag());
        switch (message.wire_type()) {
            case protozero::pbf_wire_type::varint:
                out += fmt::format(":{}", static_cast<std::int64_t>(message.get_uint64()));
                break;
            case protozero::pbf_wire_type::fixed64: out += fmt::format(":{}", message.get_double()); break;
            default:
                if (shape.messages.contains(at)) {
                    out += " {" + as_text(message.get_message(), shape, at) + "}";
                } else if (shape.packed.contains(at)) {
                    for (const std::uint64_t n : message.get_packed_uint64()) out += fmt::format(" {}", n);
                    out += ";";
                } else {
                    const auto view = message.get_view();
                    const std::string_view bytes(view.data(), view.size());
                    out += shape.bytes.contains(at) ? ":" + hex(bytes) : fmt::format(":\"{}\"", bytes);
                }
        }
        if (path.empty()) out += "\n";
    }
    return out;
}

// ---- approved text

using Write = std::function<Result<ExportReport>(ByteSink&)>;
using Show = std::function<std::string(const std::string&)>;

/// Outputs, each with its notes.
class Outputs {
public:
    void add(std::string_view name, const Write& write, const Show& show = {}) {
        std::ostream& out = approved_.add(name);
        ByteCollector collector;
        const auto report = write(collector);
        if (!report) {
            out << "error: " << report.error().message << '\n';
            return;
        }
        const std::string text(collector.bytes().begin(), collector.bytes().end());
        EXPECT_EQ(report->bytes, text.size()) << name;
        out << (show ? show(text) : text);
        for (const std::string& note : report->notes) out << "note: " << note << '\n';
    }
    void check(const std::string& name) const { approved_.check("exports/whole/" + name); }

private:
    support::Approved approved_;
};

/// Adds every output of one file that depends on costs or times.
void add_profiles(Outputs& out, const Answers& a, std::size_t metric = 0) {
    const auto gunzipped = [](const std::string& bytes) {
        return as_text(protozero::pbf_reader(support::gunzip(bytes)), pprof_shape);
    };
    out.add("folded", [&](ByteSink& sink) { return write_folded(a, {metric}, sink); });
    out.add("callgrind", [&](ByteSink& sink) { return write_callgrind(a, {metric}, sink); });
    out.add(
        "pprof", [&](ByteSink& sink) { return write_pprof(a, {metric}, sink); }, gunzipped);
    out.add("speedscope", [&](ByteSink& sink) { return write_speedscope(a, {metric, {}}, sink); });
    out.add("firefox", [&](ByteSink& sink) { return write_firefox(a, {metric, {}}, sink); });
}
void add_perfetto(Outputs& out, const Answers& a) {
    out.add(
        "perfetto", [&](ByteSink& sink) { return write_perfetto(a, {1'000'000}, sink); },
        [](const std::string& bytes) { return as_text(protozero::pbf_reader(bytes), perfetto_shape); });
}
void add_coverage(Outputs& out, const Answers& a, const CoveredSources& options = {}) {
    out.add("lcov", [&](ByteSink& sink) { return write_lcov(a, options, sink); });
    out.add("cobertura", [&](ByteSink& sink) { return write_cobertura(a, {1'700'000'000, options}, sink); });
}
void add_llvm_profile(Outputs& out, const Answers& a) {
    out.add("llvm-profile", [&](ByteSink& sink) { return write_autofdo(a, sink); });
}
void add_compiler_profiles(Outputs& out, const Answers& a, const std::string& image = {}) {
    for (const bool loaded : {false, true})
        out.add(loaded ? "autofdo-text, as loaded" : "autofdo-text",
                [&](ByteSink& sink) { return write_autofdo_text(a, {.image = image, .as_loaded = loaded}, sink); });
    out.add("profgen", [&](ByteSink& sink) { return write_profgen(a, {image}, sink); });
    out.add("profgen-script", [&](ByteSink& sink) { return write_profgen_script(a, {image}, sink); });
    for (const bool traces : {false, true})
        out.add(traces ? "bolt, with traces" : "bolt", [&](ByteSink& sink) {
            return write_bolt(a, {image, traces}, sink);
        });
    out.add(
        "branch-list", [&](ByteSink& sink) { return write_branch_list(a, BranchListVersion::old, sink, image); },
        [](const std::string& bytes) { return as_text(protozero::pbf_reader(bytes), branch_list_shape); });
}

TEST(WholeProfiles, Paths) {
    Outputs out;
    add_profiles(out, support::detailed_answers());
    add_perfetto(out, support::detailed_answers());
    // Waiting, which is the cost of no instruction.
    Answers waiting = support::detailed_answers();
    waiting.calls[4].self = {30, 50, 2, 0};
    waiting.calls[6].self = {1, 90, 0, 0};
    out.add("callgrind with waiting", [&](ByteSink& sink) { return write_callgrind(waiting, {0}, sink); });
    // One call whose cost is not known: all calls are then from the tree.
    Answers mixed = support::detailed_answers();
    mixed.edges[1].inclusive.clear();
    out.add("callgrind with a call of unknown cost", [&](ByteSink& sink) { return write_callgrind(mixed, {0}, sink); });
    out.check("profiles.txt");
}

TEST(WholeProfiles, ByAnotherMetric) {
    Outputs out;
    const Answers a = support::detailed_answers();
    for (const std::size_t metric : {2U, 4U}) add_profiles(out, a, metric);
    out.add("speedscope of bytes", [&](ByteSink& sink) { return write_speedscope(a, {3, {}}, sink); });
    out.check("profiles_by_metric.txt");
}

TEST(WholeProfiles, WithoutCallsOrTimeline) {
    Outputs out;
    Answers a = support::detailed_answers();
    a.calls.clear();
    a.timeline.slices.clear();
    add_profiles(out, a);
    add_perfetto(out, a);
    a.timeline = {};
    add_perfetto(out, a);
    for (answers::Edge& e : a.edges) e.inclusive.clear();
    a.account.clear();
    add_profiles(out, a);
    a.instructions.clear();
    add_profiles(out, a);
    out.check("profiles_flat.txt");
}

TEST(WholeProfiles, OfFunctions) {
    Outputs out;
    Answers a = support::detailed_answers();
    a.instructions.clear();
    a.timeline.axis = {"readings", 0, 100, 400, 0, ""};
    add_profiles(out, a);
    add_perfetto(out, a);
    out.check("profiles_of_functions.txt");
}

TEST(WholeTimelines, OfLimitedSize) {
    Outputs out;
    const Answers a = support::detailed_answers();
    const auto perfetto_text = [](const std::string& bytes) {
        return as_text(protozero::pbf_reader(bytes), perfetto_shape);
    };
    for (const std::uint64_t most : {10U, 1'100U})
        out.add(
            fmt::format("perfetto of {} bytes", most), [&](ByteSink& sink) { return write_perfetto(a, {most}, sink); },
            perfetto_text);
    out.add(
        "perfetto in proportion", [&](ByteSink& sink) { return write_perfetto(a, {}, sink); }, perfetto_text);
    Answers proportion = a;
    proportion.trace_bytes = 430;
    out.add(
        "perfetto in proportion", [&](ByteSink& sink) { return write_perfetto(proportion, {}, sink); }, perfetto_text);
    for (const std::uint64_t most : {10U, 2'300U})
        out.add(fmt::format("speedscope of {} bytes", most), [&](ByteSink& sink) {
            return write_speedscope(a, {0, most}, sink);
        });
    for (const std::uint64_t most : {10U, 8'800U})
        out.add(fmt::format("firefox of {} bytes", most), [&](ByteSink& sink) {
            return write_firefox(a, {0, most}, sink);
        });
    proportion.trace_bytes = 2;
    out.add(
        "perfetto of a short trace", [&](ByteSink& sink) { return write_perfetto(proportion, {}, sink); },
        perfetto_text);
    out.check("timelines.txt");
}

TEST(WholeCoverage, Options) {
    Outputs out;
    const Answers a = support::detailed_answers();
    add_coverage(out, a);
    add_coverage(out, a, {.only = {"work(int)"}});
    add_coverage(out, a, {.source_roots = {"/src/", "/usr"}, .end_lines = true});
    add_coverage(out, a, {.source_roots = {"/s"}});
    add_coverage(out, a,
                 {.source_roots = {"/"}, .prefixes = {{"/srcs", "/no"}, {"/src", "/home/x/../y"}, {"/src", "/no"}}});
    add_coverage(out, a, {.only = {"no such"}});
    out.check("coverage.txt");
}

TEST(WholeCoverage, OfLinesAlone) {
    Outputs out;
    Answers a = support::detailed_answers();
    a.instructions.clear();
    a.account.clear();
    add_coverage(out, a);
    a.calls.clear();
    add_coverage(out, a);
    std::erase_if(a.lines, [](const answers::Line& l) { return l.source != 3; });
    add_coverage(out, a);
    a.lines.clear();
    add_coverage(out, a);
    a.unit = "DPU";
    add_coverage(out, a);
    out.check("coverage_of_lines.txt");
}

TEST(WholeCompilerProfiles, OfEachImage) {
    Outputs out;
    Answers a = support::detailed_answers();
    add_llvm_profile(out, a);
    for (const char* image : {"", "libm.so.6", "[kernel.kallsyms]", "/opt/blob", "0a1b2c", "0a1b2", "none"})
        add_compiler_profiles(out, a, image);
    a.images[0].build_id.clear();
    a.images[0].recorded.clear();
    a.images[3].recorded.clear();
    a.calls.clear();
    a.jumps.clear();
    add_llvm_profile(out, a);
    add_compiler_profiles(out, a);
    out.check("compilers.txt");
}

TEST(WholeCompilerProfiles, WithoutRanges) {
    Outputs out;
    Answers a = support::detailed_answers();
    a.ranges.clear();
    a.jumps.clear();
    for (const char* image : {"", "libm.so.6", "/opt/blob"}) add_compiler_profiles(out, a, image);
    a.blocks.clear();
    a.branches.clear();
    add_compiler_profiles(out, a);
    a.edges.clear();
    add_compiler_profiles(out, a);
    out.check("compilers_without_ranges.txt");
}

/// Samples: no counts of executions, and branches with their mispredictions.
Answers detailed_samples() {
    Answers a = support::detailed_answers();
    a.unit = "SPE";
    a.metrics = {{"samples", "samples", false, ""}, {"latency cycles", "cycles", false, "of loads"}};
    a.calls.clear();
    a.timeline = {};
    a.blocks.clear();
    a.loops.clear();
    a.ranges.clear();
    a.jumps.clear();
    for (auto& i : a.instructions) {
        if (i.costs.empty()) i.costs = {i.times, 1};
        i.costs.resize(2);
        i.times = 0;
        i.isa = isa::Isa::a64;
    }
    for (auto& l : a.lines) l.times = 0;
    for (auto& b : a.branches) b.mispredicted = b.taken / 2;
    for (auto& e : a.edges) e.inclusive.clear();
    a.functions[2].by_llvm = false;
    return a;
}

TEST(WholeExports, Samples) {
    Outputs out;
    Answers a = detailed_samples();
    add_profiles(out, a);
    add_profiles(out, a, 1);
    add_coverage(out, a);
    add_llvm_profile(out, a);
    for (const char* image : {"", "blob", "[kernel.kallsyms]"}) add_compiler_profiles(out, a, image);
    a.images[0].segments.clear();
    add_compiler_profiles(out, a);
    out.check("samples.txt");
}

TEST(WholeExports, NothingAtAll) {
    Outputs out;
    Answers a;
    a.metrics = {{"instructions", "instructions"}};
    add_profiles(out, a);
    add_perfetto(out, a);
    add_coverage(out, a);
    add_llvm_profile(out, a);
    add_compiler_profiles(out, a);
    a.images = {{.name = "ld-linux.so.3"}, {.name = "libc.so"}, {.name = "libm.so.6"}};
    a.ranges = {{1, 0x10, 0x14, isa::Isa::a32, 2, 1, 1, 0}, {2, 0x10, 0x14, isa::Isa::a32, 2, 1, 1, 0}};
    add_compiler_profiles(out, a);
    out.check("nothing.txt");
}

TEST(WholeTables, AsCsvAndJson) {
    Outputs out;
    const Answers a = support::detailed_answers(), samples = detailed_samples();
    Answers flat = a;
    flat.calls.clear();
    for (const TableInfo& table : tables()) {
        const auto csv_of = [&](const Answers& of) {
            return [&](ByteSink& sink) -> Result<ExportReport> { return write_csv(of, table, sink); };
        };
        out.add(table.name, csv_of(a));
        if (table.name == "functions" || table.name == "function_costs") {
            out.add(std::string(table.name) + " without calls", csv_of(flat));
            out.add(std::string(table.name) + " of samples", csv_of(samples));
        }
        if (table.name == "functions" || table.name == "points" || table.name == "branches")
            out.add(std::string(table.name) + " as JSON lines",
                    [&](ByteSink& sink) -> Result<ExportReport> { return write_jsonl(a, table, sink); });
    }
    out.check("tables.txt");
}

// ---- the choice of a format

std::string text_of(const std::function<Result<ExportReport>(ByteSink&)>& write) {
    return support::written(write).text;
}

TEST(Write, EachFormatGetsItsOptions) {
    const Answers a = support::detailed_answers();
    WriteOptions o;
    o.metric = 1;
    o.most_bytes = 20'000;
    o.image = "libm.so.6";
    o.bolt_traces = true;
    o.autofdo_as_loaded = true;
    o.branch_list_version = BranchListVersion::compressed;
    o.coverage = {.only = {"work(int)"}, .end_lines = true};
    ASSERT_EQ(setenv("SOURCE_DATE_EPOCH", "1700000000", 1), 0);
    const std::vector<std::pair<const char*, Write>> wanted{
        {"perfetto", [&](ByteSink& sink) { return write_perfetto(a, {20'000}, sink); }},
        {"firefox",
         [&](ByteSink& sink) {
             return write_firefox(a, {1, 20'000}, sink);
         }},
        {"speedscope",
         [&](ByteSink& sink) {
             return write_speedscope(a, {1, 20'000}, sink);
         }},
        {"folded", [&](ByteSink& sink) { return write_folded(a, {1}, sink); }},
        {"pprof", [&](ByteSink& sink) { return write_pprof(a, {1}, sink); }},
        {"callgrind", [&](ByteSink& sink) { return write_callgrind(a, {1}, sink); }},
        {"lcov", [&](ByteSink& sink) { return write_lcov(a, o.coverage, sink); }},
        {"cobertura",
         [&](ByteSink& sink) {
             return write_cobertura(a, {1'700'000'000, o.coverage}, sink);
         }},
        {"llvm-profile", [&](ByteSink& sink) { return write_autofdo(a, sink); }},
        {"autofdo-text",
         [&](ByteSink& sink) { return write_autofdo_text(a, {.image = "libm.so.6", .as_loaded = true}, sink); }},
        {"profgen", [&](ByteSink& sink) { return write_profgen(a, {"libm.so.6"}, sink); }},
        {"profgen-script", [&](ByteSink& sink) { return write_profgen_script(a, {"libm.so.6"}, sink); }},
        {"bolt",
         [&](ByteSink& sink) {
             return write_bolt(a, {"libm.so.6", true}, sink);
         }},
        {"branch-list",
         [&](ByteSink& sink) { return write_branch_list(a, BranchListVersion::compressed, sink, "libm.so.6"); }}};
    std::set<std::string> different;
    for (const auto& each : wanted) {
        const char* const name = each.first;
        const std::string text = text_of([&](ByteSink& sink) { return write(*find_format(name), a, o, sink); });
        EXPECT_EQ(text, text_of(each.second)) << name;
        EXPECT_TRUE(different.insert(text).second) << name;
    }
    // By default, formats of one image write the program's, and as it lies in its file.
    for (const char* name : {"autofdo-text", "bolt"})
        EXPECT_NE(text_of([&](ByteSink& sink) { return write(*find_format(name), a, o, sink); }),
                  text_of([&](ByteSink& sink) { return write(*find_format(name), a, {}, sink); }));
    unsetenv("SOURCE_DATE_EPOCH");
    const std::string now = text_of([&](ByteSink& sink) { return write(*find_format("cobertura"), a, o, sink); });
    const std::size_t at = now.find("timestamp=\"") + std::string_view("timestamp=\"").size();
    EXPECT_NEAR(std::stod(now.substr(at)) / 1000, static_cast<double>(std::time(nullptr)), 60);
}

TEST(Write, MessagesShowNoCode) {
    Answers a;
    a.capture = "log";
    a.metrics = {{"samples", "samples"}};
    a.account = {{.reason = answers::AccountReason::decoded}};
    const auto message = [&](const char* name) {
        ByteCollector sink;
        const auto report = write(*find_format(name), a, {}, sink);
        return report ? std::string("written") : report.error().message;
    };
    EXPECT_EQ(message("folded"),
              "log: messages do not show which code ran, and --to folded needs costs; stacks need a call tree; "
              "waymark messages lists them");
    EXPECT_TRUE(message("perfetto").starts_with("log: messages do not show which code ran, and --to perfetto needs"));
    a.timeline.tracks = {{"channel", answers::none}};
    for (int part = 0; part < 3; ++part) {
        if (part == 0) a.timeline.marks = {{1, 1, 0, answers::TimelineMark::Kind::user_data, "x"}};
        if (part == 1) a.timeline.series = {{"s", "", 0, {{1, 2}}}};
        if (part == 2) a.timeline.slices = {{1, 2, 0, 0, 0, 1}};
        EXPECT_EQ(message("perfetto"), "written") << part;
        EXPECT_FALSE(message("firefox").starts_with("log:")) << part;
        EXPECT_FALSE(message("speedscope").starts_with("log:")) << part;
        EXPECT_TRUE(message("folded").starts_with("log:")) << part;
        a.timeline.marks.clear();
        a.timeline.series.clear();
        a.timeline.slices.clear();
    }
}

TEST(Formats, WhatEachIsAndNeeds) {
    Outputs out;
    for (const Format& f : formats())
        out.add(f.name, [&](ByteSink&) -> Result<ExportReport> {
            return Error{Errc::usage, fmt::format("{} {} {} {} {} {}", f.extension, f.calls, f.timeline, f.instructions,
                                                  f.ranges, find_format(f.name) == &f)};
        });
    out.check("formats.txt");
    EXPECT_EQ(find_format("autofdo"), find_format("llvm-profile"));
    EXPECT_EQ(find_format(""), nullptr);
}

TEST(Metrics, MessagesNameThem) {
    const Answers a = support::detailed_answers();
    const auto message = [&](std::string_view name, const Answers& of) {
        const auto found = exports::find_metric(of, name);
        return found ? std::to_string(*found) : found.error().message;
    };
    EXPECT_EQ(message("", a), "0");
    EXPECT_EQ(message("2 kinds", a), "3");
    EXPECT_EQ(message("bus", a), "2");
    EXPECT_EQ(message("cycles", a), "1");
    EXPECT_EQ(message("s", a),
              "--metric 's' is not the name of one alone; there are: instructions, cycles, bus time, 2 kinds");
    EXPECT_EQ(message("x", a), "--metric 'x' is not counted; there are: instructions, cycles, bus time, 2 kinds");
    EXPECT_EQ(message("", {}), "nothing was counted, so there is no metric");
}

}  // namespace
}  // namespace waymark::exports
