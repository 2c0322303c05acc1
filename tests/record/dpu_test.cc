/// Blocks and accesses in the plugin's format → a capture of a DPU and its truth, read again. Costs are counted by
/// hand: an instruction takes one cycle, a taken branch two more, a stay in the operating system ten.
#include "waymark/record_dpu/dpu.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "support/temporary_folder.h"
#include "waymark/pipeline/dpu.h"
#include "waymark/record_dpu/dpu_truth.h"

namespace waymark::record {
namespace {

constexpr std::uint32_t nop = 0xe320f000, svc = 0xef000000, bx_lr = 0xe12fff1e, bl = 0xeb000000, back_3 = 0x1afffffb;
constexpr std::uint32_t code = 0x8000, function = 0x9000, write_call = words::system_call | 4;

class Definitions {
public:
    void block(std::uint32_t id, std::uint32_t address, const std::vector<std::uint32_t>& instructions) {
        static const std::string text = "nop ";
        BlockPart part;
        part.id = id;
        part.address = address;
        part.instructions = static_cast<std::uint32_t>(instructions.size());
        part.code_bytes = part.instructions * 4;
        part.text_bytes = static_cast<std::uint32_t>(text.size());
        part.words = static_cast<std::uint32_t>(sizeof part / 4 + instructions.size() + 1);
        const std::size_t at = words.size();
        words.resize(at + part.words);
        auto* to = reinterpret_cast<std::uint8_t*>(words.data() + at);
        std::memcpy(to, &part, sizeof part);
        std::memcpy(to + sizeof part, instructions.data(), part.code_bytes);
        std::memcpy(to + sizeof part + part.code_bytes, text.data(), text.size());
    }
    std::vector<std::uint32_t> words;
};

/// Blocks: 1 calls 2, which returns to 3, which makes a system call and continues at 4, which makes another. 5 is a
/// loop.
Definitions program() {
    Definitions d;
    d.block(1, code, {nop, nop, bl | (function - (code + 8) - 8) >> 2});
    d.block(2, function, {nop, bx_lr});
    d.block(3, code + 12, {nop, svc});
    d.block(4, code + 20, {nop, svc});
    d.block(5, code + 0x100, {nop, nop, nop, back_3});
    d.block(6, code + 0x110, {nop, svc});
    return d;
}
constexpr std::uint64_t os_cycles = 10, call_cycles = 3 + 2, return_cycles = 2 + 2, rest_cycles = 2;

struct Elements final : dpu::ElementSink {
    void consume(const dpu::Batch& batch) override {
        for (const dpu::Element& e : batch.elements) {
            all.push_back(e);
            if (e.has_reading()) readings.push_back(batch.readings[e.value]);
        }
    }
    [[nodiscard]] std::vector<dpu::Element> of(dpu::ElementKind kind) const {
        std::vector<dpu::Element> out;
        std::copy_if(all.begin(), all.end(), std::back_inserter(out),
                     [&](const dpu::Element& e) { return e.kind == kind; });
        return out;
    }
    std::vector<dpu::Element> all;
    std::vector<dpu::Reading> readings;
    capture::DpuCapture capture;
    bool overwritten = false;
};

class DpuRecorderTest : public testing::Test {
protected:
    [[nodiscard]] std::filesystem::path folder() const { return temporary_.path() / "out"; }

    std::unique_ptr<DpuRecorder> make(DpuOptions options = {}) {
        options.folder = folder();
        options.command = {"./program"};
        options.core.miss_cycles = 0;
        options.core.os_cycles = os_cycles;
        const Status resolved = resolve(options);
        EXPECT_TRUE(resolved.has_value()) << resolved.error().message;
        auto recorder = DpuRecorder::create(options);
        EXPECT_TRUE(recorder.has_value()) << recorder.error().message;
        (*recorder)->definitions(program().words);
        return std::move(*recorder);
    }
    [[nodiscard]] Elements decode() const {
        Elements out;
        auto capture = capture::read_dpu_folder(folder());
        EXPECT_TRUE(capture.has_value());
        if (!capture) return out;
        EXPECT_TRUE(capture->problems.empty()) << capture::to_string(capture->problems.front());
        out.capture = *capture;
        const auto trace = pipeline::dpu_trace(*capture);
        EXPECT_TRUE(trace.has_value());
        std::ifstream in(capture->buffer, std::ios::binary);
        const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
        const auto decoded =
            pipeline::decode_dpu(*trace, Bytes(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()), out);
        EXPECT_TRUE(decoded.has_value());
        if (decoded) out.overwritten = decoded->overwritten;
        return out;
    }
    [[nodiscard]] DpuTruth truth() const {
        const auto read = read_dpu_truth(folder());
        EXPECT_TRUE(read.has_value()) << read.error().message;
        return read ? *read : DpuTruth{};
    }
    TemporaryFolder temporary_;
};

constexpr DpuTruth::Context user2{false, 2}, os2{true, 2}, user3{false, 3};
constexpr std::size_t cycles = 0;
static_assert(truth_wires[cycles] == dpu::EventWire::cycles);

TEST_F(DpuRecorderTest, EachCycleBelongsToTheCallThatLedToIt) {
    const auto recorder = make();
    recorder->execution(1, std::vector<std::uint32_t>{1, 2, 3, write_call, 4, write_call, words::thread_end});
    ASSERT_TRUE(recorder->finish(whole_run).has_value());
    EXPECT_EQ(recorder->recorded().instructions, 9U);
    EXPECT_EQ(recorder->recorded().cycles, call_cycles + return_cycles + 2 * rest_cycles + 2 * os_cycles);

    const DpuTruth t = truth();
    EXPECT_TRUE(t.complete && t.traced);
    EXPECT_EQ(t.first, (DpuTruth::Start{user2, code}));
    ASSERT_EQ(t.contexts.size(), 2U);
    EXPECT_EQ(t.contexts.at(user2).times, 2U) << "the first stay counts too";
    EXPECT_EQ(t.contexts.at(os2).times, 2U);
    EXPECT_EQ(t.contexts.at(user2).happened.count[cycles], call_cycles + return_cycles + 2 * rest_cycles);
    EXPECT_EQ(t.contexts.at(os2).happened.count[cycles], 2 * os_cycles);
    EXPECT_EQ(t.intervals.at({user2, code}).happened.count[cycles], call_cycles);
    EXPECT_EQ(t.intervals.at({user2, function}).happened.count[cycles], return_cycles);
    EXPECT_EQ(t.changes.at({"call", code + 8}), (DpuTruth::Change{1, function}));
    EXPECT_EQ(t.changes.at({"return", function + 4}), (DpuTruth::Change{1, code + 12}));

    const Elements decoded = decode();
    const auto flow = decoded.of(dpu::ElementKind::flow);
    ASSERT_EQ(flow.size(), 5U);
    EXPECT_EQ(flow[0].from, code + 8);
    EXPECT_EQ(flow[0].to, function);
    EXPECT_EQ(flow[1].to, code + 12);
    EXPECT_TRUE(flow[2].context.supervisor);
    EXPECT_EQ(flow[3].to, code + 20);
    constexpr std::array<std::uint64_t, 5> want{call_cycles, return_cycles, rest_cycles, os_cycles, rest_cycles};
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_EQ(decoded.readings[i].deltas[0], want[i]) << i;
    ASSERT_TRUE(decoded.capture.final.has_value());
    EXPECT_EQ(decoded.readings.back().values[0] - decoded.capture.final->at(0), os_cycles) << "the tail";
}

TEST_F(DpuRecorderTest, ThreadsAreTasksOfOneCore) {
    const auto recorder = make({.mode = dpu::TraceMode::task});
    for (int i = 0; i < 50; ++i) {
        recorder->execution(1, std::vector<std::uint32_t>{1, 2, 3, write_call});
        recorder->execution(2, std::vector<std::uint32_t>{4, write_call});
    }
    ASSERT_TRUE(recorder->finish(whole_run).has_value());
    EXPECT_EQ(recorder->recorded().threads, 2U);
    const DpuTruth t = truth();
    EXPECT_EQ(t.contexts.at(user2).times, 50U);
    EXPECT_EQ(t.contexts.at(user3).times, 50U);
    EXPECT_EQ(t.contexts.at(user3).happened.count[cycles], 50 * rest_cycles);

    std::map<DpuTruth::Context, std::uint64_t> decoded, stays{{user2, 1}};
    const Elements elements = decode();
    DpuTruth::Context running = user2;
    for (std::size_t i = 0; i < elements.readings.size(); ++i) {
        decoded[running] += elements.readings[i].deltas[0];
        const dpu::TaskContext next = elements.of(dpu::ElementKind::task_switch)[i].context;
        running = {next.supervisor, next.id};
        ++stays[running];
    }
    decoded[running] += elements.readings.back().values[0] - elements.capture.final->at(0);
    ASSERT_EQ(t.contexts.size(), decoded.size());
    for (const auto& [context, sum] : t.contexts) {
        EXPECT_EQ(decoded[context], sum.happened.count[cycles]);
        EXPECT_EQ(stays[context], sum.times);
    }
}

TEST_F(DpuRecorderTest, LoopsAreOneEntry) {
    const auto recorder = make({.mode = dpu::TraceMode::eonce_comp});
    std::vector<std::uint32_t> run(20, 5);
    run.insert(run.end(), {6, write_call});
    recorder->execution(1, run);
    ASSERT_TRUE(recorder->finish(whole_run).has_value());
    const auto loops = decode().of(dpu::ElementKind::long_loop);
    ASSERT_EQ(loops.size(), 1U);
    EXPECT_EQ(loops[0].from, code + 0x10c);
    EXPECT_EQ(loops[0].value, 19U);
    EXPECT_EQ(truth().changes.at({"long-loop", code + 0x10c}).times, 19U);
}

TEST_F(DpuRecorderTest, UserDataAreInOrder) {
    const auto recorder = make();
    const auto datum = [](std::uint32_t value) {
        return std::vector<std::uint32_t>{3,
                                          words::system_call | words::user_data_call,
                                          words::half | (value & 0xffff),
                                          words::half | value >> 16,
                                          4,
                                          write_call};
    };
    recorder->execution(1, datum(0xcafe0001));
    recorder->execution(2, datum(0x12345678));
    ASSERT_TRUE(recorder->finish(whole_run).has_value());
    const auto data = decode().of(dpu::ElementKind::user_data);
    ASSERT_EQ(data.size(), 2U);
    EXPECT_EQ(data[0].value, 0xcafe0001U);
    EXPECT_EQ(data[1].value, 0x12345678U);
    EXPECT_EQ(truth().user_data,
              (std::vector<std::pair<std::uint8_t, std::uint32_t>>{{2, 0xcafe0001}, {3, 0x12345678}}));
}

TEST_F(DpuRecorderTest, TheTruthSaysWhatEndedTheRecording) {
    const auto recorder = make({.limit_instructions = 8});
    recorder->execution(1, std::vector<std::uint32_t>{1, 2, 3, write_call, 4, write_call, 1, 2, 3});
    EXPECT_TRUE(recorder->stopped());
    EXPECT_TRUE(recorder->recorded().limited);
    ASSERT_TRUE(recorder->finish("by --limit").has_value());
    EXPECT_FALSE(truth().complete);
    EXPECT_EQ(truth().ended, "by --limit");
    const auto& parameters = decode().capture.parameters;
    EXPECT_NE(
        std::find(parameters.begin(), parameters.end(), std::pair<std::string, std::string>("ended", "by --limit")),
        parameters.end());
}

TEST_F(DpuRecorderTest, ARingKeepsTheEnd) {
    const auto recorder = make({.buffer_bytes = 64});
    for (int i = 0; i < 20; ++i) recorder->execution(1, std::vector<std::uint32_t>{1, 2, 3, write_call, 4, write_call});
    ASSERT_TRUE(recorder->finish(whole_run).has_value());
    EXPECT_EQ(recorder->recorded().buffer, 2U);
    EXPECT_GT(recorder->recorded().lines, 2U);
    const Elements decoded = decode();
    EXPECT_TRUE(decoded.overwritten);
    EXPECT_FALSE(decoded.readings.empty());
}

TEST_F(DpuRecorderTest, WhatCountsOnlyAPartIsNotPromised) {
    DpuOptions options;
    const auto program = dpu::read_program(
        "DP_TSA 0x20000000\nDP_TEA 0x20000fe0\nDP_TW 0x20000000\n"
        "DP_TAC TENM=immediate CEG=2 CMODE=trace TCEN=1\nDP_TBC TENM=immediate CEGP=user CEG=7 CMODE=trace TCEN=1\n"
        "DP_TC TMODE=FLOW EN=1\n@9 DP_TC 0\n");
    ASSERT_TRUE(program.has_value());
    options.program = *program;
    const auto recorder = make(options);
    recorder->execution(1, std::vector<std::uint32_t>{1, 2, 3, write_call, 4, write_call});
    ASSERT_TRUE(recorder->finish(whole_run).has_value());
    const DpuTruth t = truth();
    EXPECT_FALSE(t.traced);
    EXPECT_EQ(t.counters[0], cycles);
    EXPECT_FALSE(t.counters[3].has_value()) << "DC_HIT in user state alone";
}

TEST_F(DpuRecorderTest, NothingRecordedLeavesNothing) {
    const auto recorder = make();
    EXPECT_TRUE(std::filesystem::exists(folder()));
    recorder->discard();
    EXPECT_FALSE(std::filesystem::exists(folder()));
}

TEST_F(DpuRecorderTest, AFolderThatWasThereStays) {
    std::filesystem::create_directories(folder());
    make()->discard();
    EXPECT_TRUE(std::filesystem::is_empty(folder()));
}

std::string refusal(const std::string& text, DpuOptions options = {}) {
    const auto program = dpu::read_program(text);
    EXPECT_TRUE(program.has_value());
    if (!program) return {};
    options.program = *program;
    const Status resolved = resolve(options);
    return resolved ? fmt::format("{}", options.warnings.empty() ? "" : options.warnings.front())
                    : resolved.error().message;
}

TEST(DpuOptions, WhatCanOnlyGiveAnEmptyTraceIsRefused) {
    const std::string buffer =
        "DP_TSA 0x20000000\nDP_TEA 0x20000fe0\nDP_TW 0x20000000\nDP_TAC TENM=immediate CEG=2 CMODE=trace TCEN=1\n";
    const auto has = [](const std::string& text, std::string_view part) { return text.find(part) != text.npos; };
    EXPECT_TRUE(has(refusal(buffer + "DP_TC TMODE=SWSAMPLE EN=1"), "--sample-every"));
    EXPECT_EQ(refusal(buffer + "DP_TC TMODE=SWSAMPLE EN=1", {.sample_every = 100}), "");
    EXPECT_EQ(refusal(buffer + "DP_TC TMODE=SWSAMPLE EN=1\n@50 DP_TC TMODE=SWSAMPLE SAMPLE=1 EN=1"), "");
    EXPECT_TRUE(has(refusal(buffer + "DP_TC TMODE=EDCA5 EN=1"), "--edca 5=SYMBOL"));
    EXPECT_EQ(refusal(buffer + "DP_TC TMODE=EDCA5 EN=1", {.watchpoints = {{5, {code}}}}), "");
    EXPECT_TRUE(has(refusal("DP_TSA 0\nDP_TEA 0xffffffe0\nDP_TW 0\nDP_TC TMODE=USER EN=1"), "larger than"));
    EXPECT_TRUE(has(refusal(buffer + "DP_TBC TENM=EDCA2 CEG=7 CMODE=trace TCEN=1\nDP_TC TMODE=FLOW EN=1"),
                    "EDCA2, which watches nothing"));
    EXPECT_TRUE(has(refusal(buffer + "DP_TBC TENM=immediate CEG=18 CMODE=trace TCEN=1\nDP_TC TMODE=FLOW EN=1"),
                    "--mark SYMBOL"));
    EXPECT_TRUE(has(refusal("DP_TC TMODE=FLOW EN=1\nDP_TSA 0x20000000"), "before DP_TEA and DP_TW"));
}

TEST(DpuTruthText, OtherFilesAreRefused) {
    EXPECT_EQ(dpu_truth_from_text("waymark-truth 1\n", "t").error().code, Errc::bad_format);
    EXPECT_EQ(dpu_truth_from_text("", "t").error().code, Errc::bad_format);
    EXPECT_EQ(dpu_truth_from_text("wires CYCLES\ntotal x\n", "t").error().message.substr(0, 4), "t:2:");
    const auto some = dpu_truth_from_text("complete no\nwires STALL_ALL CYCLES\ntotal 1 2\nuser-data 3 0x10\n", "t");
    ASSERT_TRUE(some.has_value());
    EXPECT_EQ(some->total.count[cycles], 2U) << "columns are found by their names";
    EXPECT_FALSE(some->complete);
}

}  // namespace
}  // namespace waymark::record
