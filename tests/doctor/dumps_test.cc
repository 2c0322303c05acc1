// What bare files are: no trace at all, trace that a tool printed as text, and trace of ETMv4 whose unit is inferred,
// so that the written snapshot decodes. Streams are written byte by byte (docs/spec/etm4.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/bytes.h"
#include "support/sanitized.h"
#include "support/temporary_folder.h"
#include "waymark/capture/capture.h"
#include "waymark/capture/snapshot.h"
#include "waymark/coresight/formatter.h"
#include "waymark/doctor/examine.h"
#include "waymark/etm4/protocol.h"
#include "waymark/flow/summary.h"
#include "waymark/mtb/protocol.h"
#include "waymark/pft/protocol.h"

namespace waymark::doctor {
namespace {

namespace fs = std::filesystem;
using FileBytesOf = std::vector<std::uint8_t>;
using coresight::TraceId;

class Dumps : public testing::Test {
protected:
    fs::path write(const std::string& name, const FileBytesOf& bytes) {
        const fs::path path = folder_.path() / name;
        std::ofstream(path, std::ios::binary)
            .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        return path;
    }
    ExaminationReport examined(const FileBytesOf& bytes, std::vector<std::string> images = {}) {
        const fs::path file = write("dump.bin", bytes);
        capture::Capture capture;
        capture.path = file;
        capture.buffers.push_back({.name = "dump.bin", .format = capture::Buffer::Format::unknown});
        capture.buffers.front().files = {file};
        auto session = pipeline::make_session(std::move(capture), {});
        EXPECT_TRUE(session.has_value());
        return examine(*session, false, {std::move(images), sample_bytes});
    }
    /// The kind of the only finding, where nothing is recognised.
    std::string no_trace(const FileBytesOf& bytes) {
        const ExaminationReport report = examined(bytes);
        EXPECT_TRUE(report.sources.empty());
        EXPECT_FALSE(report.recognised);
        EXPECT_TRUE(report.verdict.starts_with("There is no trace in it: ")) << report.verdict;
        EXPECT_EQ(report.findings.size(), 1U);
        return report.findings.empty() ? "" : report.findings.front().kind;
    }
    TemporaryFolder folder_;
};

FileBytesOf repeated(const FileBytesOf& what, std::size_t times) {
    FileBytesOf out;
    for (std::size_t i = 0; i < times; ++i) out.insert(out.end(), what.begin(), what.end());
    return out;
}
FileBytesOf characters(std::string_view text) { return {text.begin(), text.end()}; }

TEST_F(Dumps, EmptySinksHoldNoTrace) {
    EXPECT_EQ(no_trace(FileBytesOf(4096, 0xff)), "erased");
    EXPECT_EQ(no_trace(FileBytesOf(4096, 0)), "never-written");
    EXPECT_EQ(no_trace(FileBytesOf(4096, 0xa5)), "pattern");
    EXPECT_EQ(no_trace(repeated({0xde, 0xad, 0xbe, 0xef}, 1024)), "pattern");
    EXPECT_EQ(no_trace(repeated({0xff, 0xff, 0xff, 0x7f}, 1024)), "idle-port");
    EXPECT_EQ(no_trace(repeated({0xff, 0x7f}, 1024)), "idle-port");
    EXPECT_EQ(no_trace(characters("The quick brown fox jumps over the lazy dog.\n")), "text");
    FileBytesOf zip(512, 3);
    std::copy_n("PK\x03\x04", 4, zip.begin());
    EXPECT_EQ(no_trace(zip), "other-file");
}

/// Sends what an ITM sends: text on port 0 with timestamps, and synchronisation packets (docs/spec/itm.md).
FileBytesOf itm_stream(unsigned seed, unsigned lines) {
    std::mt19937 random(seed);
    FileBytesOf out;
    for (unsigned n = 0; n < lines; ++n) {
        if (n % 8 == 0) out.insert(out.end(), {0, 0, 0, 0, 0, 0x80});
        for (const char c : std::string("tick ") + std::to_string(random() % 1000) + "\n")
            out.insert(out.end(), {0x01, static_cast<std::uint8_t>(c)});
        out.insert(out.end(), {0xc0, static_cast<std::uint8_t>(random() % 128)});
    }
    return out;
}

/// Frames of one source without its ID.
FileBytesOf frames_without_ids(const FileBytesOf& data) {
    FileBytesOf out;
    for (std::size_t at = 0; at + coresight::frame_data_bytes <= data.size(); at += coresight::frame_data_bytes) {
        std::uint8_t low_bits = 0;
        for (std::size_t i = 0; i < coresight::frame_data_bytes; ++i) {
            const std::uint8_t byte = data[at + i];
            out.push_back(i % 2 == 0 ? byte & 0xfe : byte);
            if (i % 2 == 0) low_bits = static_cast<std::uint8_t>(low_bits | (byte & 1U) << i / 2);
        }
        out.push_back(low_bits);
    }
    return out;
}

FileBytesOf joined(FileBytesOf a, const FileBytesOf& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

const CaptureFinding* finding(const ExaminationReport& report, std::string_view kind) {
    const auto at = std::find_if(report.findings.begin(), report.findings.end(),
                                 [&](const CaptureFinding& f) { return f.kind == kind; });
    return at == report.findings.end() ? nullptr : &*at;
}

// The port sends half syncs while it waits, and no full sync; the recording begins at any byte.
TEST_F(Dumps, HalfSyncsAloneLeaveFramesThatBeginAnywhere) {
    FileBytesOf stream;
    coresight::Formatter formatter(stream);
    const FileBytesOf first = itm_stream(1, 200), second = itm_stream(2, 200);
    std::mt19937 random(3);
    std::size_t sent = 0;
    for (; sent + 40 <= std::min(first.size(), second.size()); sent += 40) {
        formatter.add({1}, Bytes(first).subspan(sent, 40));
        for (unsigned n = static_cast<unsigned>(random()) % 4; n > 0; --n) formatter.idle();
        formatter.add({2}, Bytes(second).subspan(sent, 40));
    }
    for (const std::size_t skip : {0U, 1U, 6U, 15U, 16U}) {
        const ExaminationReport report = examined({stream.begin() + static_cast<std::ptrdiff_t>(skip), stream.end()});
        ASSERT_EQ(report.sources.size(), 2U) << skip;
        for (const ExaminedSource& source : report.sources) {
            ASSERT_NE(source.identity.protocol, nullptr) << skip;
            EXPECT_EQ(source.identity.protocol->words().unit, "ITM");
            EXPECT_GT(source.bytes + 60, sent);
        }
        const CaptureFinding* const found = finding(report, "half-syncs");
        ASSERT_NE(found, nullptr) << skip;
        EXPECT_NE(found->found.find("frames without any sync"), std::string::npos) << found->found;
    }
}

const std::string begins = "00 00 00 00 00 00 00 00 00 00 00 80 01 00 04 85 00 00 40 00 00 00 00 00 30 ";
FileBytesOf stream(const std::string& packets, unsigned times) {
    std::string text = begins;
    for (unsigned i = 0; i < times; ++i) text += packets;
    return test::hex(text);
}

// A sink that was filled beforehand, and whose trace ends before its end.
TEST_F(Dumps, AFilledEndThatNoUnitWroteIsLeftOut) {
    const FileBytesOf data = itm_stream(1, 200);
    FileBytesOf frames;
    {
        coresight::Formatter formatter(frames);
        formatter.add({1}, data);
        formatter.flush();
    }
    for (const FileBytesOf& written : {frames, data}) {
        const ExaminationReport whole = examined(written);
        ASSERT_EQ(whole.sources.size(), 1U);
        for (const FileBytesOf& fill : {FileBytesOf{0xff}, FileBytesOf{0xcc}, FileBytesOf{0xef, 0xbe, 0xad, 0xde},
                                        FileBytesOf{0x0d, 0xf0, 0xad, 0xba, 0xce, 0xfa, 0xed, 0xfe}}) {
            const ExaminationReport report = examined(joined(written, repeated(fill, 4096 / fill.size())));
            ASSERT_EQ(report.sources.size(), 1U);
            ASSERT_NE(report.sources.front().identity.protocol, nullptr);
            EXPECT_EQ(report.sources.front().identity.protocol->words().unit, "ITM");
            EXPECT_EQ(report.sources.front().bytes, whole.sources.front().bytes);
            ASSERT_EQ(report.findings.size(), whole.findings.size() + 1);
            const CaptureFinding* const found = finding(report, "fill");
            ASSERT_NE(found, nullptr);
            EXPECT_NE(found->found.find("the last 4,096 bytes repeat"), std::string::npos) << found->found;
        }
    }
    // Packets of a loop are no fill.
    const ExaminationReport loop = examined(stream("db ", 2000));
    EXPECT_EQ(finding(loop, "fill"), nullptr);
    EXPECT_EQ(loop.sources.front().bytes, 2025U);
}

// Bytes that could not be read cost all bytes up to the next synchronisation.
TEST_F(Dumps, AHoleOfZerosLeavesTheProtocolRecognised) {
    FileBytesOf trace;
    for (unsigned part = 0; part < 5; ++part) trace = joined(trace, stream("db ", 200));
    // The buffer wrapped: the first synchronisation was overwritten.
    trace.erase(trace.begin(), trace.begin() + 20);
    std::fill_n(trace.begin() + 480, 100, 0);
    const ExaminationReport report = examined(trace);
    ASSERT_EQ(report.sources.size(), 1U);
    EXPECT_EQ(report.sources.front().identity.protocol, &etm4::row());
    EXPECT_NE(finding(report, "damaged-packets"), nullptr);
}

// Memory that a sink did not fill has random contents from power-up.
TEST_F(Dumps, WhatStandsBehindTheLastFrameIsNoTrace) {
    FileBytesOf frames;
    coresight::Formatter formatter(frames);
    const FileBytesOf trace = itm_stream(1, 200);
    for (std::size_t at = 0; at + 20 <= trace.size(); at += 20) formatter.add({0x20}, Bytes(trace).subspan(at, 20));
    frames.resize(frames.size() / coresight::frame_bytes * coresight::frame_bytes);
    std::mt19937 random(5);
    FileBytesOf rest(1500);
    for (std::uint8_t& byte : rest) byte = static_cast<std::uint8_t>(random());
    const ExaminationReport report = examined(joined(frames, rest));
    const CaptureFinding* const found = finding(report, "no-frames");
    ASSERT_NE(found, nullptr);
    // A frame of random bytes may by chance name no other source.
    EXPECT_LE(found->offset.value_or(Offset{}).value - frames.size(), 2 * coresight::frame_bytes);
    ASSERT_EQ(report.sources.size(), 1U);
    EXPECT_EQ(report.sources.front().trace_id, TraceId{0x20});
    EXPECT_EQ(finding(report, "reserved-id"), nullptr);
    EXPECT_EQ(finding(report, "damaged-frames"), nullptr);
    EXPECT_TRUE(report.account.empty() || finding(report, "damaged-packets") == nullptr);
    // A byte that is missing only moves the frames behind it.
    FileBytesOf moved = frames;
    moved.erase(moved.begin() + static_cast<std::ptrdiff_t>(moved.size() / 2));
    EXPECT_EQ(finding(examined(moved), "no-frames"), nullptr);
    EXPECT_EQ(finding(examined(frames), "no-frames"), nullptr);
}

TEST_F(Dumps, FramesWithoutAnyIdAreOfOneSource) {
    const FileBytesOf stream = itm_stream(1, 300), frames = frames_without_ids(stream);
    for (const std::size_t skip : {0U, 4U, 5U, 15U}) {
        const ExaminationReport report = examined({frames.begin() + static_cast<std::ptrdiff_t>(skip), frames.end()});
        ASSERT_EQ(report.sources.size(), 1U) << skip;
        ASSERT_NE(report.sources.front().identity.protocol, nullptr) << skip;
        EXPECT_EQ(report.sources.front().identity.protocol->words().unit, "ITM");
        const CaptureFinding* const found = finding(report, "no-id");
        ASSERT_NE(found, nullptr) << skip;
        EXPECT_NE(found->found.find("frames without any sync and without any trace ID"), std::string::npos);
        // All is read except the rest of a frame at either end.
        EXPECT_GT(report.sources.front().bytes + 32, stream.size());
        EXPECT_EQ(finding(report, "damaged-packets"), nullptr) << skip;
    }
}

TEST_F(Dumps, BytesBeforeTheFirstIdAreOfTheSourceThatTheyFit) {
    const FileBytesOf head = frames_without_ids(itm_stream(1, 300));
    const auto named = [](TraceId id, const FileBytesOf& data) {
        FileBytesOf out;
        coresight::Formatter formatter(out);
        formatter.add(id, data);
        formatter.flush();
        return out;
    };
    // The ITM sends something again later, behind another source.
    const FileBytesOf other(300, 0x55), later = itm_stream(2, 50);
    ExaminationReport report = examined(joined(joined(head, named({9}, other)), named({3}, later)));
    const CaptureFinding* found = finding(report, "no-id-yet");
    ASSERT_NE(found, nullptr);
    EXPECT_NE(found->found.find("as only 0x03 sends it later"), std::string::npos) << found->found;
    const auto itm = std::find_if(report.sources.begin(), report.sources.end(),
                                  [](const ExaminedSource& s) { return s.trace_id == TraceId{3}; });
    ASSERT_NE(itm, report.sources.end());
    EXPECT_EQ(itm->bytes, head.size() / 16 * 15 + later.size());
    // The ITM sends nothing later: an ID replaces it.
    report = examined(joined(head, named({9}, other)));
    found = finding(report, "no-id-yet");
    ASSERT_NE(found, nullptr);
    EXPECT_NE(found->found.find("0x10 stands for it"), std::string::npos) << found->found;
    // Bytes that match nothing still have a size and a name.
    report = examined(joined(frames_without_ids(FileBytesOf(3000, 0x55)), named({3}, later)));
    found = finding(report, "no-id-yet");
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->found, "3,000 bytes before the first trace ID: they fit no known protocol");
}

TEST_F(Dumps, NoiseIsNoCounterTrace) {
    std::mt19937 random(1);
    unsigned recognised = 0;
    for (unsigned file = 0; file < sized(192U, 24U); ++file) {
        FileBytesOf bytes(256 + 64 * (file % 16));
        for (std::uint8_t& byte : bytes) {
            byte = static_cast<std::uint8_t>(random());
            if (file % 3 == 1) byte |= static_cast<std::uint8_t>(random() | random());  // as unused SRAM
        }
        if (file % 3 == 2)
            for (std::size_t at = 1; at < bytes.size(); ++at)
                if (at % 4 != 0) bytes[at] = 0;  // small words
        recognised += examined(bytes).recognised ? 1U : 0U;
    }
    EXPECT_EQ(recognised, 0U);
}

// The middle of a PTM's stream, without an A-sync. Read as reversed halfwords or words, some of its bytes look like
// frames of many sources, and some of these like packets of an ITM.
TEST_F(Dumps, AStreamWithoutSynchronisationIsNoOtherUnits) {
    const FileBytesOf stream = waymark::test::hex(
        "918384801011110796d7808280088a5788578857ac578a578857d0a65788578a578857dc8e5788578a57dcc0878384801096d780828008"
        "8a57"
        "dcc0918384801011110796d7808280088a578857ac578a57dc8e5788578a57dcc0878384801096d7808280088a578857dcc65788578a57"
        "dcc0"
        "91838480101111115f84d78082800894579457945794579457945794579457945794579457945794579457945794579457945794579457"
        "94579457"
        "ace5838480108872c7018580feff4f1508c900010029f90396cd018a4dac4d8a4dac4d8a4dac4d8a4dac4d8a4dac4d8a4dac4d8a4dac4d"
        "8a4dac4d"
        "8a4dac4d8a4dac4d8a4ddc8e4d884d884d884d884d884d884d8a4d884d884d884d884d884ddc8e4d884d884d884d8a4d884d884ddc8e4d"
        "884d8a4d"
        "884ddcc0870396cd01884d8a4ddcc091030796cd01884d884d8a4d884d884ddc8e4d884d8a4ddcc0870396cd01884d8a4ddcc091031107"
        "96cd0188"
        "4d884d884d884d884d884d8a4d884d884d884d884d884ddc8e4d884d884d884d8a4d884d884ddc8e4d884d8a4d884ddcc0870396cd018a"
        "4ddcc091"
        "030796cd01884d884d8a4d884d884ddc8e4d884d8a4ddcc0870396cd01884d8a4ddcc091031111930484cd01944d944d944d944d944d94"
        "4d944d94"
        "4d944d944d944d944d944d944d944d944d944d944d944d944d944d944d944dac99048c72c7018580feff4f1508c900010029a90484d180"
        "82800872"
        "538580feff4f15");
    const ExaminationReport report = examined(stream);
    EXPECT_FALSE(report.recognised) << report.verdict;
    for (const CaptureFinding& finding : report.findings) EXPECT_NE(finding.kind, "byte-order");
}

// Forty calls and returns at 0x400000: each function is called by BL and returns with RET.
constexpr std::uint64_t code_address = 0x400000;
constexpr std::uint32_t nop = 0xd503201f, ret = 0xd65f03c0;
constexpr std::uint32_t branch(int bytes) { return 0x14000000U | (static_cast<std::uint32_t>(bytes / 4) & 0x3ffffffU); }
constexpr std::uint32_t call(int bytes) { return branch(bytes) | 0x80000000U; }
FileBytesOf words(const std::vector<std::uint32_t>& all) {
    FileBytesOf out;
    for (const std::uint32_t word : all)
        for (unsigned i = 0; i < 4; ++i) out.push_back(static_cast<std::uint8_t>(word >> 8 * i));
    return out;
}
FileBytesOf calls() {
    std::vector<std::uint32_t> code;
    for (int i = 0; i < 40; ++i) code.push_back(call(0x400 - 4 * i));
    code.push_back(branch(0));
    code.resize(256, nop);
    code.push_back(nop);
    code.push_back(ret);
    return words(code);
}
std::string fact(const std::vector<InferredField>& facts, std::string_view what) {
    for (const InferredField& f : facts)
        if (f.what == what) return f.value + ", " + std::string(name(f.certainty));
    return "none";
}

TEST_F(Dumps, AnEtmIsConfiguredAndItsSnapshotDecodes) {
    // Returns whose addresses are not traced: only the program shows the return stack.
    const std::string image = write("code.bin", calls()).string() + "@0x400000";
    const FileBytesOf trace = stream("db ", 40);
    ExaminationReport report = examined(trace);
    ASSERT_EQ(report.sources.size(), 1U);
    EXPECT_EQ(report.sources.front().identity.protocol, &etm4::row());
    EXPECT_EQ(fact(report.sources.front().program_facts, "return stack"), "no, assumed");
    report = examined(trace, {image});
    EXPECT_EQ(fact(report.sources.front().program_facts, "return stack"), "yes, proven");
    const fs::path out = folder_.path() / "snapshot";
    ASSERT_TRUE(write_inferred(report, out).has_value());
    const auto decoded = decode_written(out);
    ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
    EXPECT_EQ(decoded->totals.ranges, 80U);
    EXPECT_EQ(decoded->contradictions, 0U);
    const auto written = capture::read_snapshot(out);
    ASSERT_TRUE(written.has_value());
    EXPECT_EQ(capture::find_register(written->sources.front().registers, "TRCIDR0")->value >> 15 & 3U, 0U);  // QSUPP
}

// With Q elements, a missing address is no contradiction: doctor chooses the stack that leaves fewer places unknown.
TEST_F(Dumps, AReturnStackIsFoundBesideQElements) {
    const std::string image = write("code.bin", calls()).string() + "@0x400000";
    // Three calls and returns, and a Q element (type 5) of five instructions to the second call.
    const ExaminationReport report = examined(stream("db db db a5 01 05 ", 20), {image});
    ASSERT_EQ(report.sources.size(), 1U);
    EXPECT_EQ(fact(report.sources.front().identity.facts, "Q elements"), "yes, proven");
    EXPECT_EQ(fact(report.sources.front().program_facts, "return stack"), "yes, likely");
    const fs::path out = folder_.path() / "snapshot";
    ASSERT_TRUE(write_inferred(report, out).has_value());
    const auto decoded = decode_written(out);
    ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
    EXPECT_EQ(decoded->totals.ranges, 120U);
    EXPECT_EQ(decoded->totals.unplaced, 0U);
}

TEST_F(Dumps, CommitsShowThatTheUnitSpeculates) {
    std::vector<std::uint32_t> code;
    for (int i = 0; i < 64; ++i) code.insert(code.end(), {nop, nop, nop, branch(4)});
    const std::string image = write("code.bin", words(code)).string() + "@0x400000";
    const ExaminationReport report = examined(stream("f7 f7 2d 02 ", 30), {image});
    ASSERT_TRUE(report.sources.front().image.has_value()) << report.verdict;
    const fs::path out = folder_.path() / "snapshot";
    ASSERT_TRUE(write_inferred(report, out).has_value());
    EXPECT_EQ(decode_written(out)->totals.ranges, 60U);
    EXPECT_EQ(decode_written(out)->totals.instructions, 240U);
}

// A boot loader and firmware: neither explains the trace alone.
TEST_F(Dumps, SeveralImagesAreTakenAsOneProgram) {
    const FileBytesOf code = calls();
    const auto half = code.begin() + 0x200;
    const std::vector<std::string> images{write("low.bin", {code.begin(), half}).string() + "@0x400000",
                                          write("high.bin", {half, code.end()}).string() + "@0x400200"};
    const ExaminationReport report = examined(stream("db ", 40), images);
    ASSERT_TRUE(report.sources.front().image.has_value()) << report.verdict;
    const ImageVerdict& verdict = report.images[*report.sources.front().image];
    EXPECT_EQ(verdict.arguments(), images);
    EXPECT_EQ(verdict.trial.contradictions, 0U);
    EXPECT_EQ(report.count(Severity::error) + report.count(Severity::warning), 0U) << report.verdict;
    const fs::path out = folder_.path() / "together";
    ASSERT_TRUE(write_inferred(report, out).has_value());
    EXPECT_EQ(decode_written(out)->totals.ranges, verdict.trial.totals.ranges);
}

std::string digits(std::uint64_t value, unsigned width) {
    static constexpr std::string_view hex = "0123456789abcdef";
    std::string out(width, '0');
    for (unsigned i = 0; i < width; ++i) out[width - 1 - i] = hex[value >> 4 * i & 15U];
    return out;
}

TEST_F(Dumps, RepeatedNumbersAreBounded) {
    std::string text = "$1 = {";
    for (unsigned i = 0; i < 60; ++i) text += "0x" + std::to_string(i) + " <repeats 1048576 times>, ";
    const ExaminationReport report = examined(characters(text + "}\n"));
    EXPECT_TRUE(report.sources.empty());
    ASSERT_FALSE(report.buffers.empty());
    EXPECT_LE(report.buffers.front().bytes, std::uint64_t{1} << 24);
    // One long line of numbers with and without 0x.
    std::string mixed;
    for (unsigned i = 0; i < 20'000; ++i) mixed += "0x1 2 ";
    EXPECT_TRUE(examined(characters(mixed)).sources.empty());
    // One long line of digits that may all be characters, too.
    for (const std::string end : {"\n", "x\n"}) {
        std::string columns = "0x20000000: ";
        for (unsigned i = 0; i < 350'000; ++i) columns += "a  ";
        EXPECT_TRUE(examined(characters(columns + end)).sources.empty());
    }
}

TEST_F(Dumps, TextThatHoldsTraceIsReadAsTheTrace) {
    FileBytesOf bytes = stream("f7 db ", 60);
    while (bytes.size() % 16 != 0) bytes.push_back(0xf7);
    const auto word = [&](std::size_t at, bool big) {
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < 4; ++i) value |= std::uint64_t{bytes[at + i]} << 8 * (big ? 3 - i : i);
        return digits(value, 8);
    };
    std::string xxd, dump, debugger, jlink, coe = "memory_initialization_radix=16;\nmemory_initialization_vector=\n",
                                            verilog = "// from the simulator\n@00000000\n", bits;
    for (std::size_t at = 0; at < bytes.size(); at += 16) {
        xxd += digits(at, 8) + ":";
        dump += digits(at, 8) + " ";
        debugger += "0x" + digits(0x20000000 + at, 8) + ":";
        jlink += digits(0x20000000 + at, 8) + " =";
        for (std::size_t i = at; i < at + 16; ++i) {
            xxd += (i % 2 == 0 ? " " : "") + digits(bytes[i], 2);
            dump += " " + digits(bytes[i], 2);
            for (int bit = 7; bit >= 0; --bit) bits += (bytes[i] >> bit & 1) != 0 ? '1' : '0';
            bits += '\n';
        }
        for (std::size_t i = at; i < at + 16; i += 4) {
            debugger += "\t0x" + word(i, false);
            jlink += " " + word(i, false);
            coe += word(i, false) + (i + 4 == bytes.size() ? ";\n" : ",\n");
            verilog += word(i, false) + "\n";
        }
        xxd += "  ................\n";
        dump += "  |................|\n";
        debugger += "\n";
        jlink += " \n";
    }
    // Words as gdb and scripts print them: without leading zeros, equal words once, with headings and line numbers.
    std::vector<std::string> values;
    for (std::size_t at = 0; at < bytes.size(); at += 4) {
        const std::string all = word(at, false);
        values.push_back("0x" + all.substr(std::min(all.find_first_not_of('0'), all.size() - 1)));
    }
    std::string array = "(gdb) p/x *(unsigned (*)[64])0x20000000\n$1 = {", pairs;
    for (std::size_t i = 0; i < values.size();) {
        std::size_t same = 1;
        while (i + same < values.size() && values[i + same] == values[i]) ++same;
        array += values[i] + (same > 1 ? " <repeats " + std::to_string(same) + " times>" : "") + ", ";
        i += same;
    }
    array += "}\n(gdb) \n";
    for (std::size_t i = 0; i + 1 < values.size(); i += 2)
        pairs += "[" + std::to_string(i / 2) + "] source=" + values[i] + " -> destination=" + values[i + 1] + "\n";
    std::string halves, single;
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        const auto shown = [](unsigned value) {
            return "0x" + digits(value, value > 0xff ? 4 : value > 0xf ? 2 : 1) + ", ";
        };
        single += shown(bytes[at]);
        if (at % 2 != 0) halves += shown(bytes[at] * 256U + bytes[at - 1]);
    }
    for (const auto& [what, text] : {std::pair{"xxd", xxd},
                                     {"halfwords of gdb", halves},
                                     {"bytes of gdb", single},
                                     {"an array of gdb", array},
                                     {"pairs", pairs},
                                     {"hexdump -C", dump},
                                     {"a debugger", debugger},
                                     {"J-Link Commander", jlink},
                                     {".coe", coe},
                                     {"$readmemh", verilog},
                                     {"bits", bits}}) {
        SCOPED_TRACE(what);
        const ExaminationReport report = examined(characters(text));
        ASSERT_EQ(report.sources.size(), 1U) << report.verdict;
        EXPECT_EQ(report.sources.front().identity.protocol, &etm4::row());
        EXPECT_EQ(finding(report, "text-lacks-bytes"), nullptr);
        ASSERT_NE(report.buffers.front().decoded, nullptr);
        EXPECT_EQ(*report.buffers.front().decoded, bytes);
        ASSERT_FALSE(report.findings.empty());
        EXPECT_EQ(report.findings.front().kind, "text-of-bytes");
    }
    FileBytesOf swapped = bytes;
    for (std::size_t at = 0; at < swapped.size(); at += 4) {
        std::swap(swapped[at], swapped[at + 3]);
        std::swap(swapped[at + 1], swapped[at + 2]);
    }
    const ExaminationReport report = examined(swapped);
    ASSERT_EQ(report.sources.size(), 1U);
    EXPECT_EQ(report.sources.front().identity.protocol, &etm4::row());
    ASSERT_NE(report.buffers.front().decoded, nullptr);
    EXPECT_EQ(*report.buffers.front().decoded, bytes);
}

// What debuggers other than gdb print, and files for flash tools. Words that begin with 0b are no bits.
TEST_F(Dumps, EveryDebuggersTextIsReadAsTheTrace) {
    FileBytesOf bytes = stream("f7 db ", 60);
    bytes.insert(bytes.end(), {0xf7, 0xf7, 0x0b, 0xf7, 0xf7, 0xf7, 0x0b});
    while (bytes.size() % 16 != 0) bytes.push_back(0xf7);
    ASSERT_EQ(bytes.size() % 16, 0U);
    const auto word = [&](std::size_t at) {
        return digits(bytes[at + 3] << 24U | bytes[at + 2] << 16U | bytes[at + 1] << 8U | bytes[at], 8);
    };
    std::string mdw, mdb, link, link8, md, rd, lldb, t32 = "   address|_0____4____8____C_0123456789ABCDEF\n", hex, s19;
    for (std::size_t at = 0; at < bytes.size(); at += 16) {
        const std::string address = digits(0x20000000 + at, 8);
        std::string words, single, upper, shown;
        unsigned sum = 16 + static_cast<unsigned>(at >> 8) + static_cast<unsigned>(at & 0xff);
        for (std::size_t i = at; i < at + 16; ++i) {
            if (i % 4 == 0) words += (i == at ? "" : " ") + word(i);
            single += (i == at ? "" : " ") + digits(bytes[i], 2);
            upper += digits(bytes[i], 2);
            sum += bytes[i];
            shown += i % 3 == 0 ? "  " : i % 5 == 0 ? "a" : ".";
        }
        mdw += "0x" + address + ": " + words + " \n";
        mdb += "0x" + address + ": " + single + " \n";
        link += address + " = " + words + "\n";
        link8 += address + " = " + single.substr(0, 23) + "  " + single.substr(24) + "\n";
        md += address + ": " + words + "    " + shown + "\n";
        rd += address + ":  " + words + "    |" + shown + "|\n";
        lldb += "0x" + address + ": " + single + "  " + shown + "\n";
        t32 += "SD:" + address + "|" + (at == 0 ? ">" : " ") + words + " ................\n";
        hex += ":10" + digits(at, 4) + "00" + upper + digits((0x100 - (sum & 0xff)) & 0xff, 2) + "\r\n";
        // The record with an address of four bytes has the length 15 instead of 10, and 20 for the address in its sum.
        s19 += "S315" + address + upper + digits(~(sum + 5 + 0x20) & 0xff, 2) + "\n";
    }
    hex += ":00000001FF\r\n";
    s19 = "S00600004844521B\n" + s19 + "S70520000000DA\n";
    for (const auto& [what, text] : {std::pair{"mdw of OpenOCD", mdw},
                                     {"mdb of OpenOCD", mdb},
                                     {"mem32 of a J-Link", link},
                                     {"mem8 of a J-Link", link8},
                                     {"md of U-Boot", md},
                                     {"rw of pyOCD", rd},
                                     {"memory read of lldb", lldb},
                                     {"TRACE32", t32},
                                     {"Intel HEX", hex},
                                     {"Motorola S-records", s19}}) {
        SCOPED_TRACE(what);
        const ExaminationReport report = examined(characters(text));
        ASSERT_EQ(report.sources.size(), 1U) << report.verdict;
        EXPECT_EQ(report.sources.front().identity.protocol, &etm4::row());
        ASSERT_NE(report.buffers.front().decoded, nullptr);
        EXPECT_EQ(*report.buffers.front().decoded, bytes);
    }
    // A record with a wrong sum is no record.
    s19[s19.size() - 40] = s19[s19.size() - 40] == '0' ? '1' : '0';
    EXPECT_TRUE(examined(characters(s19)).sources.empty());
}

// Texts as terminals, editors and other tools change them, and files of logic analysers and scripts.
TEST_F(Dumps, ATextOfAnyFormIsReadAsTheTrace) {
    FileBytesOf bytes = stream("f7 db ", 60);
    while (bytes.size() % 16 != 0) bytes.push_back(0xf7);
    std::string lines, coloured, kernel, words, bare_words, colons, c_string, octal, json, table;
    for (std::size_t at = 0; at < bytes.size(); at += 4) {
        const std::string word =
            digits(bytes[at + 3] << 24U | bytes[at + 2] << 16U | bytes[at + 1] << 8U | bytes[at], 8);
        words += (words.empty() ? "const uint32_t etb[] = {" : ", ") + ("0x" + word) + "u";
        bare_words += "0x" + word + "\n";
        if (at % 16 == 0) {
            lines += digits(at, 8) + ":";
            coloured += "\x1b[32m" + digits(at, 8) + "\x1b[0m:";
            kernel += "Nov 30 12:00:01 board kernel: [   12." + digits(at, 6) + "] etb: ";
        }
        for (std::size_t i = at; i < at + 4; ++i) {
            for (std::string* const text : {&lines, &coloured, &kernel}) *text += " " + digits(bytes[i], 2);
            colons += (i == 0 ? "" : ":") + digits(bytes[i], 2);
            c_string += "\\x" + digits(bytes[i], 2);
            octal += "\\";
            for (const unsigned shift : {6U, 3U, 0U}) octal += static_cast<char>('0' + (bytes[i] >> shift & 7U));
            json += (i == 0 ? "" : ", ") + std::to_string(bytes[i]);
            table += "\"SWO\",\"data\"," + std::to_string(i) + ".5,8e-06,0x" + digits(bytes[i], 2) + "\n";
        }
        if (at % 16 == 12)
            for (std::string* const text : {&lines, &coloured, &kernel}) *text += "\n";
    }
    const auto with_ends = [&](const std::string& end) {
        std::string out;
        for (const char c : lines) out += c == '\n' ? end : std::string(1, c);
        return out;
    };
    const auto wide = [&](bool big, bool marked) {
        std::string out = marked ? big ? "\xfe\xff" : "\xff\xfe" : "";
        for (const char c : lines) out += big ? std::string{'\0', c} : std::string{c, '\0'};
        return out;
    };
    for (const auto& [what, text] :
         {std::pair{"lines that end with CR and LF", with_ends("\r\n")},
          {"lines that end with CR", with_ends("\r")},
          {"a byte order mark", "\xef\xbb\xbf" + lines},
          {"UTF-16", wide(false, true)},
          {"UTF-16 of the other byte order", wide(true, true)},
          {"UTF-16 without a mark", wide(false, false)},
          {"colours", coloured},
          {"the kernel's log", kernel},
          {"an array of C", words + "};\n"},
          {"a word in each line", bare_words},
          {"pairs with colons", colons},
          {"a string of C", "static const char etb[] =\n    \"" + c_string + "\";\n"},
          {"a string with octal escapes", "\"" + octal + "\""},
          {"an object of JSON", "{\"name\": \"ETB\", \"data\": [" + json + "], \"at\": [1, 2]}"},
          {"a table", "name,type,start_time,duration,data\n" + table}}) {
        SCOPED_TRACE(what);
        const ExaminationReport report = examined(characters(text));
        ASSERT_EQ(report.sources.size(), 1U) << report.verdict;
        EXPECT_EQ(report.sources.front().identity.protocol, &etm4::row());
        ASSERT_NE(report.buffers.front().decoded, nullptr);
        EXPECT_EQ(*report.buffers.front().decoded, bytes);
    }
    // Words whose halves were exchanged.
    for (const std::size_t half : {2U, 4U}) {
        FileBytesOf exchanged = bytes;
        for (std::size_t at = 0; at < exchanged.size(); at += 2 * half)
            std::swap_ranges(exchanged.begin() + static_cast<std::ptrdiff_t>(at),
                             exchanged.begin() + static_cast<std::ptrdiff_t>(at + half),
                             exchanged.begin() + static_cast<std::ptrdiff_t>(at + half));
        const ExaminationReport report = examined(exchanged);
        ASSERT_NE(report.buffers.front().decoded, nullptr) << half;
        EXPECT_EQ(*report.buffers.front().decoded, bytes) << half;
    }
    // A terminal's log without numbers.
    std::string log;
    for (unsigned i = 0; i < 300; ++i) log += "\x1b[1mbuild\x1b[0m step " + std::to_string(i) + " of all is done\a\r\n";
    EXPECT_EQ(no_trace(characters(log)), "text");
}

TEST_F(Dumps, AnIdleUnitIsANote) {
    // A sync with an address and no context, as units send while nothing is traced (section 4).
    const std::string idle = "00 00 00 00 00 00 00 00 00 00 00 80 01 01 00 9d 30 43 8e 08 00 80 ff ff ";
    const std::string image = write("code.bin", calls()).string() + "@0x400000";
    ExaminationReport report = examined(test::hex(idle + idle), {image});
    ASSERT_EQ(report.findings.size(), 1U) << report.findings[1].kind;
    EXPECT_EQ(report.findings.front().kind, "idle-source");
    EXPECT_EQ(report.findings.front().severity, Severity::note);
    // Such a sync before the trace ends no head recovery.
    FileBytesOf trace = test::hex(idle);
    const FileBytesOf rest = stream("db ", 40);
    trace.insert(trace.end(), rest.begin(), rest.end());
    report = examined(trace, {image});
    ASSERT_TRUE(report.sources.front().head.has_value());
    EXPECT_EQ(report.sources.front().head->outcome, follow::HeadOutcome::no_head);
}

// However many CPUs ran nothing, one note says so, and which CPUs; the verdict counts them all.
TEST_F(Dumps, IdleUnitsAreOneNote) {
    const FileBytesOf idle = test::hex("00 00 00 00 00 00 00 00 00 00 00 80 01 01 00 9d 30 43 8e 08 00 80 ff ff ");
    for (const unsigned units : {2U, 3U, 5U}) {
        FileBytesOf frames;
        coresight::Formatter formatter(frames);
        for (unsigned round = 0; round < 20; ++round)
            for (unsigned i = 0; i < units; ++i) formatter.add({static_cast<std::uint8_t>(0x10 + i)}, idle);
        formatter.flush();
        const ExaminationReport report = examined(frames, {write("code.bin", calls()).string() + "@0x400000"});
        ASSERT_EQ(report.sources.size(), units);
        ASSERT_EQ(report.findings.size(), 1U);
        EXPECT_EQ(report.findings.front().kind, "idle-source");
        EXPECT_NE(report.findings.front().found.find("source_11: 480 bytes"), std::string::npos)
            << report.findings.front().found;
        EXPECT_EQ(report.verdict, "Nothing is wrong with this capture, but it does not show that a core ran.");
    }
}

// Texts whose bytes cannot be recovered are named.
TEST_F(Dumps, ATextWithoutTheBytesSaysWhatItIs) {
    const auto named = [&](const std::string& text) {
        EXPECT_EQ(no_trace(characters(text)), "text");
        return examined(characters(text)).findings.front().found;
    };
    std::string lines = "$timescale 1 us $end\n$var wire 1 ! swo $end\n$enddefinitions $end\n";
    for (unsigned i = 0; i < 200; ++i) lines += "#" + std::to_string(i * 10) + "\n" + (i % 3 == 0 ? "1!\n" : "0!\n");
    EXPECT_NE(named(lines).find("levels of lines over time (VCD)"), std::string::npos);
    EXPECT_NE(named("0000000 nul nul nul nul nul nul nul nul nul nul nul nul soh nul nul eot\n").find("od -a"),
              std::string::npos);
}

// A file whose bytes look like frames of an unknown source, and end within one.
TEST_F(Dumps, WhatIsNotRecognisedIsNotCalledCut) {
    FileBytesOf bytes;
    std::mt19937 random(1);
    for (std::size_t i = 0; i < 1000; ++i)
        bytes.push_back(static_cast<std::uint8_t>(i % 16 == 0    ? 0x21U
                                                  : i % 16 == 15 ? 0U
                                                                 : random() & (i % 2 == 0 ? 0xfeU : 0xffU)));
    const ExaminationReport report = examined(bytes);
    EXPECT_FALSE(report.recognised);
    EXPECT_FALSE(report.cut);
    for (const CaptureFinding& f : report.findings) EXPECT_EQ(f.kind, "no-synchronisation");
}

// For a dump shorter than the distance between two synchronisations, the finding gives this reason.
TEST_F(Dumps, WithoutASynchronisationSaysSo) {
    FileBytesOf trace = stream("f7 db ", 200);
    trace.erase(trace.begin(), trace.begin() + 14);
    const ExaminationReport report = examined(trace);
    EXPECT_FALSE(report.recognised);
    EXPECT_TRUE(
        report.verdict.starts_with("No trace protocol that Waymark knows was recognised, since no "
                                   "synchronisation is in it;"))
        << report.verdict;
    const auto reason = [](const ExaminationReport& of) {
        const auto found = std::find_if(of.findings.begin(), of.findings.end(),
                                        [](const CaptureFinding& f) { return f.kind == "no-synchronisation"; });
        return found == of.findings.end() ? std::string() : found->cause + "; " + found->advice;
    };
    EXPECT_TRUE(reason(report).starts_with("the dump is shorter than the distance between two synchronisations"));
    EXPECT_NE(reason(report).find("; save the whole sink; "), std::string::npos);
    // A longer dump comes from a unit that sends none.
    std::mt19937 random(1);
    trace.resize(8000);
    for (std::uint8_t& byte : trace) byte = static_cast<std::uint8_t>(random());
    EXPECT_TRUE(reason(examined(trace)).starts_with("the unit synchronises only where it is enabled"));
}

// A capture of SWO begins anywhere: the rest of the first packet is no damage.
TEST_F(Dumps, AnItmStreamMayBeginAmidAPacket) {
    FileBytesOf trace = test::hex("1f 80 1f 80 ff 00");
    const FileBytesOf values = test::hex("47 aa b8 00 08 8f 01 00 00 00 c0 f7 c9 04");
    for (unsigned i = 0; i < 40; ++i) trace.insert(trace.end(), values.begin(), values.end());
    const auto warned = [&] {
        std::string out;
        for (const CaptureFinding& f : examined(trace).findings)
            if (f.severity <= Severity::warning) out += f.kind + " " + std::to_string(f.offset->value) + ";";
        return out;
    };
    EXPECT_EQ(warned(), "");
    trace.insert(trace.begin() + 6 + 14 * 20, 0);
    EXPECT_EQ(warned(), "damaged-packets " + std::to_string(6 + 14 * 20) + ";");
}

// Erased memory amid the stream reads as packets of a kind that no unit sends.
TEST_F(Dumps, ErasedMemoryInAnItmStreamIsLost) {
    FileBytesOf trace;
    const FileBytesOf values = test::hex("47 aa b8 00 08 8f 01 00 00 00 c0 f7 c9 04");
    for (unsigned i = 0; i < 40; ++i) trace.insert(trace.end(), values.begin(), values.end());
    trace.insert(trace.begin() + 14 * 20, 20, 0xff);
    const ExaminationReport report = examined(trace);
    const CaptureFinding* const reserved = finding(report, "reserved-packets");
    ASSERT_NE(reserved, nullptr) << report.verdict;
    EXPECT_EQ(reserved->found, "4 packets (20 bytes) of kinds that no unit sends");
    EXPECT_EQ(reserved->offset, Offset{14 * 20});
    EXPECT_NE(report.verdict.find("in part"), std::string::npos) << report.verdict;
}

// The trace of a port that is idle most of the time: its first 64 KiB contain no frame.
TEST_F(Dumps, APortThatIsIdleAtFirstAndInBurstsLosesNothing) {
    FileBytesOf frames, port;
    coresight::Formatter formatter(frames);
    const FileBytesOf trace = stream("f7 db ", 400);
    // The ID is repeated in each group of four frames, so that both readings have all bytes.
    for (std::size_t at = 0; at < trace.size(); at += 58) {
        formatter.repeat_id();
        formatter.add({0x10}, Bytes(trace).subspan(at, std::min<std::size_t>(58, trace.size() - at)));
    }
    formatter.flush();
    for (std::size_t at = 0; at < frames.size(); at += 16) {
        if (at % 64 == 0) port.resize(port.size() + 80000);
        const std::size_t idle = port.size() - (at % 64 == 0 ? 80000 : 0);
        for (std::size_t i = idle; i < port.size(); ++i) port[i] = i % 4 == 3 ? 0x7f : 0xff;
        port.insert(port.end(), frames.begin() + static_cast<std::ptrdiff_t>(at),
                    frames.begin() + static_cast<std::ptrdiff_t>(std::min(at + 16, frames.size())));
    }
    const ExaminationReport report = examined(port);
    ASSERT_EQ(report.buffers.size(), 1U);
    EXPECT_EQ(report.buffers.front().format, capture::Buffer::Format::dstream_coresight);
    ASSERT_EQ(report.sources.size(), 1U) << report.verdict;
    EXPECT_EQ(report.sources.front().bytes, trace.size());
}

TEST_F(Dumps, AThumbBitInAnAddressIsNoticed) {
    const auto half = [](std::initializer_list<unsigned> all) {
        FileBytesOf out;
        for (const unsigned h : all)
            out.insert(out.end(), {static_cast<std::uint8_t>(h), static_cast<std::uint8_t>(h >> 8)});
        return out;
    };
    // movs r0, #10; 1: subs r0, #1; bne 1b; bl f; b .; f: bx lr
    const fs::path code = write("firmware.bin", half({0x200a, 0x3801, 0xd1fd, 0xf000, 0xf801, 0xe7fe, 0x4770}));
    const FileBytesOf trace =
        test::hex("00 00 00 00 00 00 00 00 00 00 00 80 01 00 04 83 5e 69 02 70 00 f7 f7 f7 f7 f7 f7 f7 f7 f7 f6 ");
    const ExaminationReport even = examined(trace, {code.string() + "@0x700269bc"});
    ASSERT_EQ(even.images.size(), 1U);
    EXPECT_EQ(even.images.front().kind, ImageVerdict::Kind::matches) << even.verdict;
    const ExaminationReport odd = examined(trace, {code.string() + "@0x700269bd"});
    ASSERT_EQ(odd.images.size(), 1U);
    EXPECT_EQ(odd.images.front().argument, code.string() + "@0x700269bc");
    ASSERT_FALSE(odd.findings.empty());
    EXPECT_EQ(odd.findings.front().kind, "thumb-bit");
}

// A core of the M profile interrupts a load of several registers, and returns into it.
TEST_F(Dumps, AReturnIntoAnInstructionIsNoContradiction) {
    const FileBytesOf code = test::hex("b0 e8 fe 01 fe e7 00 bf 00 bf 00 bf 00 bf 00 bf 00 bf 00 bf 70 47 00 bf ");
    const std::string image = write("code.bin", code).string() + "@0x10000140";
    const ExaminationReport report = examined(
        test::hex(
            "00 00 00 00 00 00 00 00 00 00 00 80 01 00 04 83 20 01 00 10 00 06 05 96 21 83 2a 01 00 10 03 f7 07 83 "
            "20 01 00 10 00 f7 2d 04 00 03 "),
        {image});
    ASSERT_EQ(report.images.size(), 1U);
    EXPECT_EQ(report.images.front().trial.contradictions, 0U) << report.verdict;
    EXPECT_GT(report.images.front().trial.totals.ranges, 0U);
}

/// RFC 4648, with lines of `width` characters.
std::string base64_of(const FileBytesOf& bytes, std::size_t width, std::string_view last_two = "+/") {
    std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    digits += last_two;
    std::string all, out;
    for (std::size_t at = 0; at < bytes.size(); at += 3) {
        const auto byte = [&](std::size_t i) -> std::uint32_t { return at + i < bytes.size() ? bytes[at + i] : 0U; };
        const std::uint32_t value = byte(0) << 16U | byte(1) << 8U | byte(2);
        const std::size_t left = std::min<std::size_t>(3, bytes.size() - at);
        for (std::size_t i = 0; i < 4; ++i) all += i <= left ? digits[value >> (18 - 6 * i) & 63U] : '=';
    }
    for (std::size_t at = 0; at < all.size(); at += width) out += all.substr(at, width) + "\n";
    return out;
}

/// The lines of od for these bytes, 16 in each: the address, and each number as `number` prints it.
std::string od_of(const FileBytesOf& bytes, std::size_t size, auto&& number) {
    const auto octal = [](std::size_t value) {
        std::string out(7, '0');
        for (std::size_t at = 7; at-- > 0; value /= 8) out[at] = static_cast<char>('0' + value % 8);
        return out + " ";
    };
    std::string out;
    for (std::size_t at = 0; at < bytes.size(); at += 16) {
        out += octal(at);
        for (std::size_t i = at; i < std::min(at + 16, bytes.size()); i += size)
            out += " " + number(bytes[i] + (size == 2 ? bytes[i + 1] * 256U : 0U));
        out += "\n";
    }
    return out + octal(bytes.size()) + "\n";
}

/// A cell of `od -c`, behind its space.
std::string cell_of(unsigned value) {
    constexpr std::string_view escapes{"\0\a\b\t\n\v\f\r", 8}, letters = "0abtnvfr";
    if (const auto at = escapes.find(static_cast<char>(value)); at != escapes.npos)
        return std::string(" \\") + letters[at];
    if (value >= ' ' && value <= '~') return std::string("  ") + static_cast<char>(value);
    std::string out;
    for (const unsigned shift : {6U, 3U, 0U}) out += static_cast<char>('0' + (value >> shift & 7U));
    return out;
}

std::string uuencode_of(const FileBytesOf& bytes) {
    constexpr std::size_t line = 45;
    const auto six = [](unsigned value) {
        return static_cast<char>((value & 0x3fU) == 0 ? '`' : ' ' + (value & 0x3fU));
    };
    std::string out;
    for (std::size_t at = 0; at < bytes.size(); at += line) {
        const std::size_t end = std::min(at + line, bytes.size());
        out += six(static_cast<unsigned>(end - at));
        for (std::size_t i = at; i < end; i += 3) {
            unsigned value = 0;
            for (std::size_t k = i; k < i + 3; ++k) value = value << 8 | (k < end ? bytes[k] : 0U);
            for (const unsigned shift : {18U, 12U, 6U, 0U}) out += six(value >> shift);
        }
        out += "\n";
    }
    return out;
}

std::string each_line(const std::string& text, const std::string& before, const std::string& behind) {
    std::string out = before;
    for (std::size_t at = 0; at < text.size(); ++at)
        out += text[at] != '\n' ? std::string(1, text[at]) : behind + "\n" + (at + 1 < text.size() ? before : "");
    return out;
}

// What scripts print of a buffer that they read: lists, literals and base64.
TEST_F(Dumps, ListsOfALanguageAndBase64AreReadAsTheTrace) {
    FileBytesOf bytes = stream("f7 db ", 60);
    bytes.push_back(0xf7);
    while (bytes.size() % 4 != 0) bytes.push_back(0xf7);
    const auto list = [&](std::size_t size, bool has_sign) {
        std::string out;
        for (std::size_t at = 0; at < bytes.size(); at += size) {
            std::int64_t value = 0;
            for (std::size_t i = 0; i < size; ++i) value |= std::int64_t{bytes[at + i]} << 8 * i;
            if (has_sign && value > 127) value -= 256;
            out += (at == 0 ? "" : ", ") + std::to_string(value);
        }
        return out;
    };
    std::string columns, od;
    for (std::size_t at = 0; at < bytes.size(); at += 4) {
        columns += (at % 8 == 0 ? "0x" + digits(0x20000000 + at, 8) + " <etb+" + std::to_string(at) + ">:" : "");
        od += (at % 8 == 0 ? digits(at, 6) : "");
        for (std::size_t i = at; i < at + 4; ++i) {
            columns += "\t" + std::to_string(bytes[i] > 127 ? bytes[i] - 256 : int{bytes[i]});
            od += " " + digits(bytes[i], 2);
        }
        if (at % 8 == 4 || at + 4 == bytes.size()) {
            columns += "\n";
            od += "  >fe 7\"ab<\n";  // characters that are digits, too
        }
    }
    // Behind an address od prints one space.
    std::string cells = od_of(bytes, 1, [](unsigned value) { return cell_of(value); });
    constexpr std::size_t address = 7;
    for (std::size_t at = 0; at < cells.size(); at = cells.find('\n', at) + 1) cells.erase(at + address, 1);
    std::string literal = "b'";
    for (const std::uint8_t byte : bytes)
        literal += byte == 0      ? std::string("\\x00")
                   : byte == '\n' ? std::string("\\n")
                   : byte == '\'' ? std::string("\\'")
                   : byte == '\\' ? std::string("\\\\")
                   : byte >= 0x7f ? "\\x" + digits(byte, 2)
                   : byte < 0x20  ? "\\x" + digits(byte, 2)
                                  : std::string(1, static_cast<char>(byte));
    literal += "'";
    for (const auto& [what, text] :
         {std::pair{"a list of Python", "[" + list(1, false) + "]\n"},
          {"a list with a name", "trace = [" + list(1, false) + "]\n"},
          {"an array of C", "static const uint8_t etb[] = {" + list(1, false) + ",\n};\n"},
          {"signed bytes of Java", "[" + list(1, true) + "]"},
          {"words in a list", "(" + list(4, false) + ")\n"},
          {"JSON", "{\"etb\": [" + list(4, false) + "]}\n"},
          {"x/8db of gdb", columns},
          {"od -t x1z", od},
          {"a literal of Python", literal + "\n"},
          {"a bytearray", "bytearray(" + literal + ")\n"},
          {"base64", base64_of(bytes, 76)},
          {"base64 in one line", base64_of(bytes, 1 << 20)},
          {"base64 for names of files", base64_of(bytes, 64, "-_")},
          {"uuencode", "Here it is.\n\nbegin 644 etb.bin\n" + uuencode_of(bytes) + "`\nend\n"},
          {"od -c", cells},
          {"od -t x1z in a mail", "A quotation:\n" + each_line(od, "> ", "")},
          {"od -t x1z in a page", "<html><body><pre>" + od + "</pre></body></html>\n"},
          {"od -t x1z in lines of a page", "<!DOCTYPE html>\n" + each_line(od, "<code>", "</code>")},
          {"base64 of uuencode", "begin-base64 644 etb.bin\n" + base64_of(bytes, 60) + "====\n"}}) {
        SCOPED_TRACE(what);
        const ExaminationReport report = examined(characters(text));
        ASSERT_EQ(report.sources.size(), 1U) << report.verdict;
        EXPECT_EQ(report.sources.front().identity.protocol, &etm4::row());
        ASSERT_NE(report.buffers.front().decoded, nullptr);
        EXPECT_EQ(*report.buffers.front().decoded, bytes);
        ASSERT_FALSE(report.findings.empty());
        EXPECT_EQ(report.findings.front().kind, "text-of-bytes");
    }
    // The bits of each byte as a line of another order or level gives them.
    FileBytesOf turned = bytes, inverted = bytes;
    for (std::uint8_t& byte : inverted) byte = static_cast<std::uint8_t>(~byte);
    for (std::uint8_t& byte : turned) {
        unsigned value = 0;
        for (unsigned bit = 0; bit < 8; ++bit) value = value << 1 | (byte >> bit & 1U);
        byte = static_cast<std::uint8_t>(value);
    }
    for (const FileBytesOf& read : {turned, inverted}) {
        const ExaminationReport report = examined(read);
        ASSERT_NE(report.buffers.front().decoded, nullptr) << report.verdict;
        EXPECT_EQ(*report.buffers.front().decoded, bytes);
        EXPECT_EQ(report.findings.front().kind, "byte-order");
    }
    // Text that only looks like these formats.
    EXPECT_EQ(no_trace(characters("begin 644 a\nwith a sentence, and others,\nand end\n")), "text");
    EXPECT_EQ(no_trace(characters("[1, 2, 3]\n")), "text");
    EXPECT_EQ(no_trace(characters("The list (see below) has [1, 2, 3, four] and more.\n")), "text");
    EXPECT_EQ(no_trace(characters("b'ends in the middle of \\x0")), "text");
    EXPECT_EQ(no_trace(characters("AbsolutelyNoBase64ButALongWordOfFortyCharactersOrMore+/AndSoOn\nshort\nwords\n")),
              "text");
}

// od without options prints words of 16 bits in octal digits, and addresses that advance by 20.
TEST_F(Dumps, TheDistanceOfAddressesShowsHowOdPrintsNumbers) {
    FileBytesOf bytes = stream("f7 db ", 60);
    while (bytes.size() % 16 != 0) bytes.push_back(0xf7);
    const auto octal = [](unsigned value, std::size_t width) {
        std::string out(width, '0');
        for (std::size_t at = width; at-- > 0; value /= 8) out[at] = static_cast<char>('0' + value % 8);
        return out;
    };
    std::string bare;
    for (std::size_t i = 0; i < bytes.size(); ++i) bare += std::to_string(bytes[i]) + (i % 16 == 15 ? "\n" : "  ");
    for (const auto& [what, text] :
         {std::pair{"od", od_of(bytes, 2, [&](unsigned value) { return octal(value, 6); })},
          {"od -b", od_of(bytes, 1, [&](unsigned value) { return octal(value, 3); })},
          {"od -tu1", od_of(bytes, 1, [&](unsigned value) { return std::to_string(value); })},
          {"od -td1",
           od_of(bytes, 1,
                 [&](unsigned value) { return std::to_string(static_cast<int>(value) - (value > 127 ? 256 : 0)); })},
          {"od -An -tu1", bare}}) {
        SCOPED_TRACE(what);
        const ExaminationReport report = examined(characters(text));
        ASSERT_EQ(report.sources.size(), 1U) << report.verdict;
        ASSERT_NE(report.buffers.front().decoded, nullptr);
        EXPECT_EQ(*report.buffers.front().decoded, bytes);
    }
}

TEST_F(Dumps, AbbreviatedLinesAreWrittenOutAndMissingOnesReported) {
    FileBytesOf bytes = stream("f7 db ", 60);
    while (bytes.size() % 16 != 0) bytes.push_back(0xf7);
    const std::size_t head = bytes.size();
    bytes.insert(bytes.end(), 160, 0);
    const std::string all = od_of(bytes, 1, [](unsigned value) { return digits(value, 2); });
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < all.size(); at = all.find('\n', at) + 1)
        lines.push_back(all.substr(at, all.find('\n', at) + 1 - at));
    const auto text_without = [&](std::size_t first, std::size_t count, const std::string& instead) {
        std::string out;
        for (std::size_t i = 0; i < lines.size(); ++i)
            out += i == first ? instead : i > first && i < first + count ? std::string() : lines[i];
        return characters(out);
    };
    const auto lacks = [](const ExaminationReport& report) {
        for (const CaptureFinding& f : report.findings)
            if (f.kind == "text-lacks-bytes") return f.found;
        return std::string();
    };
    const ExaminationReport repeated = examined(text_without(head / 16 + 1, 9, "*\n"));
    ASSERT_NE(repeated.buffers.front().decoded, nullptr);
    EXPECT_EQ(*repeated.buffers.front().decoded, bytes);
    EXPECT_EQ(lacks(repeated), "");

    const ExaminationReport gap = examined(text_without(2, 2, ""));
    EXPECT_EQ(lacks(gap),
              "the text lacks bytes: addresses that do not follow: 32 bytes between the lines of addresses "
              "0000020 and 0000100");
    std::string unreadable = lines[3];
    unreadable.replace(9, 2, "xx");
    EXPECT_EQ(lacks(examined(text_without(3, 1, unreadable))),
              "the text lacks bytes: what is no number: 'xx' behind address 0000060");
}

TEST_F(Dumps, AListThatIsNoBytesSaysWhy) {
    std::string list = "[";
    for (unsigned i = 0; i < 300; ++i) list += std::to_string(i * 7 % 256) + ", ";
    const auto found = [&](const std::string& text) {
        const ExaminationReport report = examined(characters(text));
        EXPECT_TRUE(report.sources.empty());
        return report.findings.empty() ? std::string() : report.findings.front().found;
    };
    EXPECT_TRUE(found(list + "300, 5]").ends_with(": number 301 of the list is 300 and does not fit into a byte"));
    EXPECT_TRUE(found(list + "-300, 5]").ends_with(": number 301 of the list is -300 and does not fit into a byte"));
    EXPECT_TRUE(found(list + "99999999999999999999]")
                    .ends_with(": number 301 of the list is 99999999999999999999 and "
                               "does not fit into a byte"));
    EXPECT_TRUE(found(list + ", 5]").ends_with(": number 301 of the list is missing"));
    EXPECT_TRUE(found(list + "5").ends_with(": a list without its closing ']'"));
}

/// A main loop with a jump, an interrupt, and the return from it to `exc_return`, eight times.
FileBytesOf interrupted_loop(std::uint32_t exc_return) {
    constexpr std::uint32_t atomic = 1;
    std::vector<std::uint32_t> all;
    for (unsigned i = 0; i < 8; ++i)
        all.insert(all.end(),
                   {0x120, 0x200, 0x210 | atomic, 0x300, 0x310, exc_return, exc_return | atomic, 0x210, 0x230, 0x100});
    all.resize(128);  // zeros: the buffer did not wrap
    return words(all);
}

TEST_F(Dumps, AnMtbNamesACoreOnlyIfItsReturnsDo) {
    const auto core_type = [&](std::uint32_t exc_return, const std::string& name) {
        const ExaminationReport report = examined(interrupted_loop(exc_return));
        EXPECT_EQ(report.sources.size(), 1U) << report.verdict;
        if (report.sources.size() != 1) return std::string();
        const fs::path out = folder_.path() / name;
        EXPECT_TRUE(write_inferred(report, out).has_value());
        const auto written = capture::read_snapshot(out);
        EXPECT_TRUE(written.has_value());
        return fact(report.sources.front().identity.facts, "core") + "; " + written->cores.front().type;
    };
    // A Non-secure stack, which only ARMv8-M has; and the value that all cores have.
    EXPECT_EQ(core_type(0xffffffbc, "v8"), "ARMv8-M, proven; ARMv8-M");
    EXPECT_EQ(core_type(0xfffffff8, "any"), "ARMv6-M, assumed; ARMv6-M");
}

// Zeros of an I-sync and the words turned round make a synchronisation of an ITM by chance. The reversed A-sync of a
// PTM is none.
TEST_F(Dumps, OneSynchronisationAmidDamageProvesNothing) {
    FileBytesOf trace = test::hex(
        "00 00 00 00 00 01 10 29 00 80 00 94 80 00 00 00 03 03 03 03 03 61 a3 c1 21 01 08 69 eb 01 41 01 10 f3 41 21 "
        "01 08 61 eb 01 41 01 10 fb 41 21 01 08");
    const FileBytesOf loop = test::hex("21 eb 01 41 01 10 fb 41 21 01 08");
    for (unsigned i = 0; i < 20; ++i) trace.insert(trace.end(), loop.begin(), loop.end());
    const ExaminationReport report = examined(trace);
    ASSERT_EQ(report.sources.size(), 1U) << report.verdict;
    EXPECT_EQ(report.sources.front().identity.protocol, &pft::row());
    EXPECT_NE(finding(report, "byte-order"), nullptr);
}

// A debugger that prints words as numbers exchanges their bytes.
TEST_F(Dumps, WordsOfAnMtbInReverseOrderAreRecognised) {
    const FileBytesOf bytes = interrupted_loop(0xfffffff8);
    FileBytesOf swapped = bytes;
    for (std::size_t at = 0; at + 4 <= swapped.size(); at += 4)
        std::reverse(swapped.begin() + static_cast<std::ptrdiff_t>(at),
                     swapped.begin() + static_cast<std::ptrdiff_t>(at) + 4);
    const ExaminationReport report = examined(swapped);
    ASSERT_EQ(report.sources.size(), 1U) << report.verdict;
    EXPECT_EQ(report.sources.front().identity.protocol, &mtb::row());
    EXPECT_NE(finding(report, "byte-order"), nullptr);
    ASSERT_NE(report.buffers.front().decoded, nullptr);
    EXPECT_EQ(*report.buffers.front().decoded, bytes);
}

}  // namespace
}  // namespace waymark::doctor
