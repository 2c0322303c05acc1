// A DPU capture from its folder to elements (docs/spec/dpu.md, 5.7, 7.5 and 10).
#include "waymark/pipeline/dpu.h"

#include <gtest/gtest.h>

#include <sstream>

#include "support/temporary_folder.h"
#include "waymark/capture/byte_stream.h"
#include "waymark/dpu/encoder.h"

namespace waymark::pipeline {
namespace {

using Buffer = std::vector<std::uint8_t>;

Buffer memory(const std::string& text) {
    std::istringstream in(text);
    in >> std::hex;
    Buffer out;
    for (std::uint32_t word = 0; in >> word;) dpu::append_word(out, word, dpu::ByteOrder::big);
    return out;
}

struct Elements final : dpu::ElementSink {
    std::vector<dpu::Element> elements;
    std::vector<dpu::Reading> readings;
    void consume(const dpu::Batch& batch) override {
        elements.insert(elements.end(), batch.elements.begin(), batch.elements.end());
        readings.insert(readings.end(), batch.readings.begin(), batch.readings.end());
    }
    [[nodiscard]] std::vector<dpu::ElementKind> kinds() const {
        std::vector<dpu::ElementKind> out;
        for (const dpu::Element& element : elements) out.push_back(element.kind);
        return out;
    }
};
using Kinds = std::vector<dpu::ElementKind>;
using enum dpu::ElementKind;

/// The capture of section 10.1.
capture::DpuCapture switches() {
    capture::DpuCapture c;
    c.layout = "WL-1";
    c.registers = {{"DP_SR", 0},           {"DP_MR", 0x400},       {"DP_TC", 0x00200085},
                   {"DP_TSA", 0x20000000}, {"DP_TEA", 0x20000060}, {"DP_TW", 0x20000000}};
    c.initial = {0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF};
    c.initial_context = capture::DpuContext{false, 5, 5};
    c.lines_written = 4;
    return c;
}
const std::string switches_words = R"(
    00401011 FFFFF82E FFFFFF0E FFFFFFFE FFFFFDA6 FFFFFFE6 FFFFFFFC 00000200
    FFF0A40A 00000281 FFFFF69E FFFFFEAA FFFFFFFE FFFFFD56 FFFFFFD4 FFFFFFFC
    00402000 FFF0A20E FFF0A20F FFFFCF8E FFFFF932 FFFFFFFE FFFFF19E FFFFFF92
    FFFFFFF8 FFF0A000 FFF0AC0F FFF0A20E 000195FC 00000002 FFF0A001 FFF0A001)";

TEST(DpuTrace, FolderToElements) {
    const TemporaryFolder folder;
    capture::DpuCapture written = switches();
    written.buffer = folder.write("vtb.bin", memory(switches_words));
    ASSERT_TRUE(capture::write_dpu_folder(written, folder.path()).has_value());
    const auto capture = capture::read_dpu_folder(folder.path());
    ASSERT_TRUE(capture.has_value()) << capture.error().message;
    auto stream = capture::open_bytes(capture->buffer);
    ASSERT_TRUE(stream.has_value());
    const auto dump = capture::read_all(**stream, 1 << 20);
    ASSERT_TRUE(dump.has_value());
    const auto trace = dpu_trace(*capture);
    ASSERT_TRUE(trace.has_value()) << trace.error().message;
    Elements out;
    const auto decoded = decode_dpu(*trace, *dump, out);
    ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
    EXPECT_EQ(out.kinds(), (Kinds{task_switch, task_switch, sample, user_data, held}));
    EXPECT_EQ(out.readings[0].deltas, (dpu::Counters{1000, 120, 0, 300, 12, 1}));
    EXPECT_EQ(decoded->totals.deltas[0], 6200U);
    EXPECT_FALSE(decoded->overwritten);
    EXPECT_FALSE(decoded->cut);
}

// A cut dump: the existing part is decoded, the rest is a gap.
TEST(DpuTrace, CutDump) {
    Buffer dump = memory(switches_words);
    dump.resize(100);
    Elements out;
    const auto decoded = decode_dpu(*dpu_trace(switches()), dump, out);
    ASSERT_TRUE(decoded.has_value());
    EXPECT_EQ(out.kinds(), (Kinds{task_switch, task_switch, gap}));
    EXPECT_EQ(out.elements.back().reason, GapReason::framing);
    EXPECT_TRUE(decoded->cut);
}

// If older trace was overwritten, nothing is known at the beginning.
TEST(DpuTrace, Overwritten) {
    capture::DpuCapture capture = switches();
    capture.lines_written = 9;
    Elements out;
    const auto decoded = decode_dpu(*dpu_trace(capture), memory(switches_words), out);
    EXPECT_TRUE(decoded->overwritten);
    EXPECT_TRUE(out.readings[0].has(dpu::Reading::first));
}

TEST(DpuTrace, WithoutRegisters) {
    capture::DpuCapture capture = switches();
    capture.registers.clear();
    capture.lines_written.reset();
    Buffer dump = memory(switches_words);
    dump.resize(dump.size() + 320);
    Elements out;
    const auto trace = dpu_trace(capture);
    EXPECT_FALSE(trace->complete);
    EXPECT_FALSE(trace->periods[0].format.mode.has_value());
    const auto decoded = decode_dpu(*trace, dump, out);
    EXPECT_EQ(out.kinds(), (Kinds{task_switch, task_switch, sample, user_data, held}));
    EXPECT_EQ(decoded->unwritten_bytes, 320U);
}

// Two periods in different modes; then with the beginning of the first one overwritten.
TEST(DpuTrace, Periods) {
    const std::string first = switches_words, second = R"(
        FFF0A20F 00402011 FFF0A20E 00403000 FFF0A60F 00403008 0000001E FFF0A80F
        0040301C 00000012 00403029 FFF0A20E 00402014 FFF0AA01 FFF0AA01 FFF0AA01)";
    capture::DpuCapture capture = switches();
    capture.registers = {{"DP_SR", 0},           {"DP_MR", 0},           {"DP_TC", 0x00200003},
                         {"DP_TSA", 0x20000000}, {"DP_TEA", 0x200000E0}, {"DP_TW", 0x200000C0}};
    capture.lines_written = 6;
    capture.periods = {{0x20000000, 0x00200085, {}, 0}, {0x20000080, 0x00200003, capture::DpuContext{false, 7, 7}, 4}};
    const Buffer dump = memory(first + second);
    Elements out;
    const auto trace = dpu_trace(capture);
    ASSERT_EQ(trace->periods.size(), 2U);
    EXPECT_EQ(trace->periods[0].format.mode, dpu::TraceMode::task);
    EXPECT_EQ(trace->periods[0].start.context, (dpu::TaskContext{false, 5}));
    ASSERT_TRUE(decode_dpu(*trace, dump, out).has_value());
    EXPECT_EQ(out.kinds(), (Kinds{task_switch, task_switch, sample, user_data, held, enabled, context, pair, short_loop,
                                  long_loop, pair, closed}));
    EXPECT_EQ(out.elements[5].offset.value, 128U);

    // One line of the second period and no line of the first.
    capture.registers = {{"DP_SR", 0},           {"DP_MR", 0x400},       {"DP_TC", 0x00200003},
                         {"DP_TSA", 0x20000000}, {"DP_TEA", 0x20000000}, {"DP_TW", 0x20000000}};
    Elements last;
    const auto decoded = decode_dpu(*dpu_trace(capture), Bytes(memory(second)).subspan(32), last);
    ASSERT_TRUE(decoded.has_value());
    EXPECT_TRUE(decoded->overwritten);
    EXPECT_EQ(last.kinds(), (Kinds{gap, pair, closed}));
    EXPECT_EQ(last.elements[0].reason, GapReason::unsynchronised);
}

TEST(DpuTrace, Errors) {
    capture::DpuCapture capture = switches();
    capture.layout = "SC3400";
    const auto other = dpu_trace(capture);
    ASSERT_FALSE(other.has_value());
    EXPECT_EQ(other.error().code, Errc::unsupported);
    capture = switches();
    capture.registers.back().value = 0x30000000;
    Elements out;
    const auto decoded = decode_dpu(*dpu_trace(capture), {}, out);
    ASSERT_FALSE(decoded.has_value());
    EXPECT_EQ(decoded.error().code, Errc::bad_format);
}

// Filters apply from a place in the trace on; the last overwritten change still applies.
// Requirements: R81
TEST(DpuTrace, Filters) {
    capture::DpuCapture c = switches();
    c.registers.push_back({"DP_CR", 0x2000'0000});
    c.registers.push_back({"DP_RPID", 3});
    c.registers.push_back({"DP_RDID", 7});
    c.registers[2].value |= 0x800 | 0x20;
    auto trace = dpu_trace(c);
    ASSERT_TRUE(trace.has_value());
    ASSERT_EQ(trace->filters.size(), 1U);
    EXPECT_TRUE(trace->filters[0].idflt && trace->filters[0].shows_did);
    EXPECT_EQ(trace->filters[0].compare, dpu::IdCompare::data);
    EXPECT_EQ(trace->filters[0].rpid, 3);
    EXPECT_EQ(trace->filters[0].rdid, 7);

    c.filters = {{0, true, false, 1, 5, 0}, {9, false, false, 1, 5, 0}, {27, true, false, 1, 6, 0}};
    trace = dpu_trace(c);
    ASSERT_EQ(trace->filters.size(), 3U);
    EXPECT_EQ(trace->filters[1].offset, 36U);
    EXPECT_EQ(trace->filters[2].offset, 108U);
    // Six lines, of which the first two are gone: 16 words.
    c.lines_written = 6;
    trace = dpu_trace(c);
    ASSERT_EQ(trace->filters.size(), 2U);
    EXPECT_FALSE(trace->filters[0].idflt);
    EXPECT_EQ(trace->filters[0].offset, 0U);
    EXPECT_EQ(trace->filters[1].offset, 44U);
    EXPECT_EQ(trace->filters[1].rpid, 6);
    // With NXMODE 11 no words are written: messages determine the places.
    c.nexus = "nexus.bin";
    c.registers[2].value |= 3U << 24;
    c.filters = {{0, true, false, 1, 5, 0, 0}, {0, false, false, 1, 5, 0, 17}, {0, true, false, 1, 6, 0, 90}};
    trace = dpu_trace(c);
    ASSERT_TRUE(trace->nexus);
    ASSERT_EQ(trace->filters.size(), 3U);
    EXPECT_EQ(trace->filters[1].offset, 17U);
    EXPECT_EQ(trace->filters[2].offset, 90U);
}

// A readout: the trace that was read, piece by piece, and a place at which unread trace was overwritten. Times of maps
// are offsets of elements, whichever part of the trace exists.
TEST(DpuTrace, TimesOfModules) {
    capture::DpuCapture c = switches();
    c.buffer = "vtb.bin";
    c.modules.clock = capture::trace_bytes_clock;
    const auto module = [](std::uint64_t from, std::optional<std::uint64_t> to) {
        capture::Module m;
        m.bytes = 1;
        m.from = from;
        m.to = to;
        return m;
    };
    c.modules.modules = {module(0, 36), module(36, 100), module(100, std::nullopt)};
    using Times = std::vector<std::pair<std::uint64_t, std::optional<std::uint64_t>>>;
    const auto times = [&](std::uint64_t bytes) -> std::optional<Times> {
        const auto trace = dpu_trace(c);
        if (!trace) return std::nullopt;
        const auto found = module_times(c, *trace, bytes);
        if (!found) return std::nullopt;
        Times out;
        for (const DpuModuleTime& t : *found) out.emplace_back(t.from, t.to);
        return out;
    };
    EXPECT_EQ(times(128), (Times{{0, 36}, {36, 100}, {100, std::nullopt}}));
    // Two lines more than the buffer has: the oldest 64 bytes are gone.
    c.lines_written = 6;
    EXPECT_EQ(times(128), (Times{{0, 0}, {0, 36}, {36, std::nullopt}}));
    // Periods whose first lines are where the lines before them lead, round a ring of four; and one that is not.
    c.periods = {{0x20000000, 0x00200085, {}, 0}, {0x20000040, 0x00200085, {}, 6}};
    EXPECT_EQ(times(128), (Times{{0, 0}, {0, 36}, {36, std::nullopt}}));
    c.periods[1].dp_tw = 0x20000060;
    EXPECT_EQ(times(128), std::nullopt);
    c.periods = {{0x20000000, 0x00200085, {}, 0}, {0x20000040, 0x00200085, {}, {}}};
    EXPECT_EQ(times(128), std::nullopt);
    c.periods.clear();
    // The last line of the dump, which is not the last line of the trace, is missing.
    for (capture::Register& r : c.registers)
        if (r.name == "DP_TW") r.value = 0x20000040;
    EXPECT_EQ(times(128), (Times{{0, 0}, {0, 36}, {36, std::nullopt}}));
    EXPECT_EQ(times(96), (Times{{0, 0}, {0, 32}, {32, std::nullopt}}));
    // A clock that the trace does not have, or bytes that cannot be counted from the beginning.
    c.lines_written.reset();
    EXPECT_EQ(times(128), std::nullopt);
    c.lines_written = 4;
    c.modules.clock = capture::instructions_clock;
    EXPECT_EQ(times(128), std::nullopt);
}

TEST(DpuTrace, ReadoutWithAnOverrun) {
    capture::DpuCapture c = switches();
    c.readout = true;
    c.lines_written = 9;
    // The missing trace cuts the second task switch, and the next trace begins inside an entry.
    const Buffer words = memory(R"(
        00401011 FFFFF82E FFFFFF0E FFFFFFFE FFFFFDA6 FFFFFFE6 FFFFFFFC 00000200
        FFF0A40A 00000281 FFFFF69E FFFFFEAA FFFFFFFE FFFFFD56 FFFFFFD4 FFFFFFFC
        00000002 00402000 FFF0A20E 00401011 FFFFD82E FFFFFF0E FFFFFFFE FFFFFDA6
        FFFFFFE6 FFFFFFFC 00000200 FFF0A40A FFF0AA01 FFF0AA01 FFF0AA01 FFF0AA01)");
    c.overruns = {0x40};
    const auto trace = dpu_trace(c);
    ASSERT_TRUE(trace.has_value());
    EXPECT_EQ(trace->overruns, c.overruns);
    Elements out;
    const auto decoded = decode_dpu(*trace, words, out);
    ASSERT_TRUE(decoded.has_value());
    EXPECT_EQ(out.kinds(), (Kinds{task_switch, gap, gap, task_switch, closed}));
    ASSERT_EQ(out.readings.size(), 2U);
    EXPECT_TRUE(out.readings[1].has(dpu::Reading::lossy));
}

// Messages without a buffer: they give the same elements as the buffer would (11.3, the vectors of 11.4 in the order of
// 10.1).
TEST(DpuTrace, NexusAlone) {
    capture::DpuCapture c = switches();
    c.registers[2].value |= 3U << 24;
    c.nexus = "nexus.bin";
    const auto trace = dpu_trace(c);
    ASSERT_TRUE(trace.has_value());
    EXPECT_TRUE(trace->nexus);
    EXPECT_EQ(trace_file(c, *trace), c.nexus);
    // Beside a buffer they are decoded only if nothing is written to it.
    c.buffer = "vtb.bin";
    EXPECT_TRUE(dpu_trace(c)->nexus);
    for (const std::uint32_t other : {1U, 2U}) {
        capture::DpuCapture both = c;
        both.registers[2].value ^= other << 24;
        EXPECT_FALSE(dpu_trace(both)->nexus);
    }
    const Buffer bytes = [] {
        // Counters, sync, branch, owner; user data; an Error; the end.
        std::istringstream in(
            "1C 00 10 A0 3D E0 05 01 B0 11 31 07  24 40 05 20 80 00 23  10 40 01 20 90 00 23  08 C0 08 2B "
            "1C 00 80 04 00 80 FC 28 0F  20 00 C0 0B  84 00 07");
        in >> std::hex;
        Buffer out;
        for (unsigned byte = 0; in >> byte;) out.push_back(static_cast<std::uint8_t>(byte));
        return out;
    }();
    Elements out;
    const auto decoded = decode_dpu(*trace, bytes, out);
    ASSERT_TRUE(decoded.has_value());
    EXPECT_EQ(out.kinds(), (Kinds{task_switch, user_data, lost}));
    EXPECT_EQ(out.elements[0].from, 0x401010U);
    EXPECT_EQ(out.elements[0].to, 0x200U);
    EXPECT_EQ(out.elements[0].context, (dpu::TaskContext{true, 5}));
    EXPECT_EQ(out.elements[1].value, 0xCAFE0001U);
    EXPECT_EQ(out.readings[0].deltas, (dpu::Counters{1000, 120, 0, 300, 12, 1}));
    EXPECT_EQ(out.readings[0].values[0], 0x7FFFFC17U);
}

}  // namespace
}  // namespace waymark::pipeline
