/// Each kind of damage: how much, where, and in which words.
#include "waymark/pipeline/damage.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "pipeline/whole_test.h"
#include "support/temporary_folder.h"
#include "waymark/pipeline/session.h"

namespace waymark::pipeline {
namespace {

using coresight::TraceId;
using flow::Conflict;
using Kind = Damage::Kind;
using Format = capture::Buffer::Format;

/// One damage in a line: what a program gets, then the sentence.
std::string line(const Damage& d) {
    const auto number = [](const std::optional<std::uint64_t>& n) { return n ? std::to_string(*n) : std::string("-"); };
    const char* const severity = d.severity == Severity::error     ? "error"
                                 : d.severity == Severity::warning ? "warning"
                                                                   : "note";
    return std::string(severity) + " at " + std::to_string(d.first.value) + " x" + std::to_string(d.times) + " bytes " +
           number(d.bytes) + " instructions " + number(d.instructions) + " ranges " + number(d.ranges) + ": " +
           d.sentence;
}
std::vector<std::string> lines(const std::vector<Damage>& all) {
    std::vector<std::string> out;
    for (const Damage& d : all) out.push_back(line(d));
    std::string others;  // what the lines do not contain
    for (const Damage& d : all)
        others += fmt::format("kind {}, buffer {}, source {}, of {}\n found: {}\n means: {}\n",
                              static_cast<int>(d.kind), d.buffer, d.source, d.of, d.found, d.means);
    WholeTest::write(others);
    return out;
}
using Lines = std::vector<std::string>;

class BufferDamage : public WholeTest {};

/// A buffer of frames in which nothing is damaged.
struct Frames {
    capture::Buffer buffer{.name = "ETB"};
    BufferReport report;
    Frames() {
        report.name = "ETB";
        report.buffer = &buffer;
        report.bytes = 1600;
        report.framed = true;
    }
    Frames(const Frames&) = delete;
    void lose(GapReason reason, std::uint64_t first, std::uint64_t bytes) {
        report.frames.lost[static_cast<unsigned>(reason)] += bytes;
        report.gaps.push_back({{first}, {first + bytes}, reason});
    }
};

TEST_F(BufferDamage, OfStrays) {
    Frames f;
    EXPECT_TRUE(damage_in(f.report).empty());
    f.report.strays = {{TraceId{0x70}, 20, 1, {300}},     {TraceId{0x72}, 1, 2, {100}},
                       {TraceId{0x00}, 5, 1, {7}},        {TraceId{0x7d}, 1, 1, {9}},
                       {TraceId{0x33}, 4, 1, {50}, true}, {TraceId{0x34}, 4000, 3, {60}}};
    const std::vector<Damage> all = damage_in(f.report);
    const std::string missing =
        ": frames are damaged there, and these bytes are missing from the source that sent them";
    EXPECT_EQ(
        lines(all),
        (Lines{"warning at 100 x3 bytes 21 instructions - ranges -: buffer ETB: 21 bytes in 3 stretches, first at "
               "offset 0x64, have reserved trace IDs (0x70, 0x72)" +
                   missing,
               "warning at 9 x1 bytes 1 instructions - ranges -: buffer ETB: 1 byte in 1 stretch, first at offset "
               "0x9, have the trace ID of a trigger or flush, but are neither (0x7d)" +
                   missing,
               "warning at 7 x1 bytes 5 instructions - ranges -: buffer ETB: 5 bytes in 1 stretch, first at offset "
               "0x7, are padding (trace ID 0x00) that is not zero" +
                   missing,
               "warning at 50 x1 bytes 4 instructions - ranges -: buffer ETB: 4 bytes in 1 stretch, first at "
               "offset 0x32, have trace IDs that no described source has (0x33)" +
                   missing + ", or a source is not described",
               "warning at 60 x3 bytes 4000 instructions - ranges -: buffer ETB: 4,000 bytes, first at offset "
               "0x3c, of trace IDs that no described source has (0x34); " +
                   all.back().means}));
    const Kind kinds[] = {Kind::reserved_ids, Kind::trigger_ids, Kind::padding, Kind::damaged_ids,
                          Kind::undescribed_ids};
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].kind, kinds[i]);
    EXPECT_EQ(all[0].found, "21 bytes in 3 stretches have reserved trace IDs (0x70, 0x72)");
    EXPECT_EQ(all[0].buffer, "ETB");
}

TEST_F(BufferDamage, OfFrames) {
    Frames f;
    f.lose(GapReason::framing, 32, 16);
    f.lose(GapReason::framing, 64, 32);
    f.report.frames.damaged_frames = 3;
    EXPECT_EQ(
        lines(damage_in(f.report)),
        Lines{"warning at 32 x2 bytes 48 instructions - ranges -: buffer ETB: 48 bytes lost from offset 0x20 on: 3 "
              "frames have the forbidden ID 0x7f; the file is damaged, or not of format coresight"});
    EXPECT_EQ(damage_in(f.report)[0].kind, Kind::lost_frames);
    f.report.gaps.clear();  // more than are kept
    f.report.frames.damaged_frames = 0;
    f.report.frames.sync_losses = 1;
    f.buffer.format = Format::dstream_coresight;
    EXPECT_EQ(
        lines(damage_in(f.report)),
        Lines{"warning at 0 x1 bytes 48 instructions - ranges -: buffer ETB: 48 bytes lost: the place of the frames "
              "was lost once; the file is damaged, or not of format dstream_coresight"});

    Frames unknown;
    unknown.lose(GapReason::unsynchronised, 0, 5);
    EXPECT_EQ(lines(damage_in(unknown.report)),
              Lines{"warning at 0 x1 bytes 5 instructions - ranges -: buffer ETB: no frame sync in 5 bytes from offset "
                    "0x0 on, so their frames are not known; the bytes may be framed otherwise"});
    unknown.report.frames.fsyncs = 1;
    EXPECT_EQ(damage_in(unknown.report)[0].means, "normal where recording began inside a frame");
    EXPECT_EQ(damage_in(unknown.report)[0].kind, Kind::no_frame_sync);
}

TEST_F(BufferDamage, OfItsEnd) {
    Frames f;
    f.lose(GapReason::incomplete_packet, 1600, 3);
    f.report.strays = {{TraceId{0x70}, 1, 1, {0}}};
    const std::string end =
        "buffer ETB: its end from offset 0x640 on (3 bytes) is no whole frame; the file was cut, or is ";
    std::vector<Damage> all = damage_in(f.report);
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[0].kind, Kind::cut);
    EXPECT_EQ(line(all[0]), "error at 1600 x1 bytes 3 instructions - ranges -: " + end + "not of format coresight");
    EXPECT_EQ(line(*cut_of(f.report)), line(all[0]));
    f.buffer.format = Format::dstream_coresight;
    EXPECT_FALSE(cut_of(f.report)) << "such a stream may end anywhere";
    all = damage_in(f.report);
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[1].kind, Kind::partial_frame) << "behind the others";
    EXPECT_EQ(line(all[1]),
              "warning at 1600 x1 bytes 3 instructions - ranges -: " + end + "not of format dstream_coresight");
    f.report.framed = false;
    EXPECT_TRUE(damage_in(f.report).empty());

    Frames whole;
    EXPECT_FALSE(cut_of(whole.report));
    whole.buffer.length = 1600;
    EXPECT_FALSE(cut_of(whole.report));
    whole.buffer.length = 1601;
    EXPECT_EQ(
        line(*cut_of(whole.report)),
        "error at 1600 x1 bytes 1 instructions - ranges -: buffer ETB: 1 byte of the 1,601 bytes that were written "
        "are missing at its end (length in trace.ini); the file was cut");
    EXPECT_EQ(cut_of(whole.report)->kind, Kind::cut);
    EXPECT_EQ(lines(damage_in(whole.report)).size(), 1U);
    whole.buffer.length = 1000;
    EXPECT_EQ(line(*cut_of(whole.report)),
              "error at 1600 x1 bytes - instructions - ranges -: buffer ETB: 1,000 bytes were written to it (length in "
              "trace.ini), but it holds 1,600; it is another file, or the capture is a mixture of two");
    EXPECT_FALSE(error_of(whole.report));
    whole.report.error = Error{Errc::unreadable, "t.bin: an error of the disk"};
    EXPECT_FALSE(cut_of(whole.report)) << "it was not read to its end";
    EXPECT_EQ(error_of(whole.report), "buffer ETB: t.bin: an error of the disk (1,600 bytes read)");
    whole.report.bytes = 0;
    EXPECT_EQ(error_of(whole.report), "buffer ETB: t.bin: an error of the disk");
}

/// A PTM with the image `code.bin` at 0x8000, and an ITM.
class SourceDamage : public WholeTest {
protected:
    SourceDamage() {
        capture::RawOptions raw;
        raw.source_type = "PTM1.1";
        raw.registers = {{"ETMCR", 0}, {"ETMCCER", 0}, {"ETMIDR", 0x411cf312}, {"ETMTRACEIDR", 0x10}};
        capture::Capture c = capture::raw_capture(folder_.write("t.bin", std::string(64, '\0')), raw);
        c.sources.front().name = "PTM";
        c.buffers.front().sources = {"PTM"};
        for (const auto& [name, type, id] : {std::tuple("ITM", "ITM", 0x20), {"HTM", "HTM", 0x30}, {"X", "", 0x40}}) {
            capture::Source& source = c.sources.emplace_back();
            source.name = name;
            source.type = type;
            source.registers = {{"ITMTCR", std::uint64_t(id) << 16}, {"TRACEIDR", std::uint64_t(id)}};
            c.buffers.front().sources.push_back(name);
        }
        c.dumps.push_back({"", folder_.write("code.bin", "\xfe\xff\xff\xea"), {0x8000}, 0, {}, ""});
        auto session = make_session(std::move(c), {});
        EXPECT_TRUE(session.has_value());
        session_ = std::move(*session);
        stream_.source = &session_->sources.front();
        stream_.buffer = "ETB";
    }
    Lines of(const flow::Troubles& troubles, std::uint64_t ranges = 0) {
        Lines out = lines(damage_in(stream_, troubles, ranges));
        for (std::string& one : out) one = without_folder(one);
        return out;
    }
    [[nodiscard]] std::string without_folder(std::string text) const {
        const std::string folder = folder_.path().string() + "/";
        if (const std::size_t at = text.find(folder); at != text.npos) text.erase(at, folder.size());
        return text;
    }
    static flow::Troubles gap(GapReason reason, flow::Trouble trouble) {
        flow::Troubles out;
        out.gaps[static_cast<unsigned>(reason)] = trouble;
        return out;
    }
    static flow::Troubles conflict(Conflict kind, flow::Trouble trouble) {
        flow::Troubles out;
        out.contradictions[static_cast<unsigned>(kind)] = trouble;
        return out;
    }
    TemporaryFolder folder_;
    std::optional<Session> session_;
    StreamReport stream_;
};

TEST_F(SourceDamage, OfPackets) {
    EXPECT_EQ(of({}), Lines{});
    const std::string in_force =
        ". The bytes are damaged, or ETMCR and ETMCCER are not the values in force while tracing";
    EXPECT_EQ(
        of(gap(GapReason::reserved_header, {.times = 2, .bytes = 30, .offset = 29})),
        Lines{"error at 29 x2 bytes 30 instructions - ranges -: source 0x10 PTM: reserved header: 30 bytes lost in 2 "
              "stretches up to the next A-sync, first at offset 0x1d of buffer ETB" +
              in_force});
    EXPECT_EQ(
        of(gap(GapReason::malformed_packet, {.times = 1, .bytes = 1, .offset = 0})),
        Lines{"error at 0 x1 bytes 1 instructions - ranges -: source 0x10 PTM: malformed packet: 1 byte lost in 1 "
              "stretch up to the next A-sync, first at offset 0x0 of buffer ETB" +
              in_force});
    EXPECT_EQ(
        of(gap(GapReason::framing, {.times = 1, .bytes = 3, .offset = 16})),
        Lines{"warning at 16 x1 bytes 3 instructions - ranges -: source 0x10 PTM: 3 bytes of packets that were cut "
              "in two where frames were lost, first at offset 0x10 of buffer ETB"});
    EXPECT_EQ(
        of(gap(GapReason::missing, {.times = 1, .bytes = 3, .offset = 16})),
        Lines{"warning at 16 x1 bytes 3 instructions - ranges -: source 0x10 PTM: 3 bytes of packets that were cut "
              "in two where trace is missing, first at offset 0x10 of buffer ETB"});
    EXPECT_EQ(of(gap(GapReason::missing, {.times = 1, .offset = 16})), Lines{});
    EXPECT_EQ(of(gap(GapReason::incomplete_packet, {.times = 1, .bytes = 2, .offset = 62})),
              Lines{"note at 62 x1 bytes 2 instructions - ranges -: source 0x10 PTM: 1 packet is cut off (2 bytes), at "
                    "offset 0x3e of buffer ETB: normal where recording stopped; otherwise the file was cut"});
    EXPECT_EQ(of(gap(GapReason::incomplete_packet, {.times = 2, .bytes = 2, .offset = 30})),
              Lines{"note at 30 x2 bytes 2 instructions - ranges -: source 0x10 PTM: 2 packets are cut off (2 bytes), "
                    "first at offset 0x1e of buffer ETB: normal where recording stopped; otherwise the file was cut"});
    EXPECT_EQ(
        of(gap(GapReason::unsynchronised, {.times = 1, .bytes = 9})),
        Lines{"warning at 0 x1 bytes 9 instructions - ranges -: source 0x10 PTM: the trace begins inside a packet: 9 "
              "bytes before the first synchronisation. What ran there, and before, is not known, first at offset "
              "0x0 of buffer ETB"});
}

TEST_F(SourceDamage, HasAKind) {
    const auto kind = [&](const flow::Troubles& troubles) { return damage_in(stream_, troubles, 0).at(0).kind; };
    const flow::Trouble one{.times = 1, .bytes = 1, .amount = 1};
    for (const auto& [reason, expected] : {std::pair(GapReason::reserved_header, Kind::lost_packets),
                                           {GapReason::malformed_packet, Kind::lost_packets},
                                           {GapReason::framing, Kind::cut_packets},
                                           {GapReason::missing, Kind::cut_packets},
                                           {GapReason::incomplete_packet, Kind::last_packet},
                                           {GapReason::unsynchronised, Kind::unsynchronised}})
        EXPECT_EQ(kind(gap(reason, one)), expected) << name(reason);
    for (const auto& [member, expected] : {std::pair(&flow::Troubles::no_memory, Kind::no_image),
                                           {&flow::Troubles::overflows, Kind::overflow},
                                           {&flow::Troubles::unplaced, Kind::unplaced},
                                           {&flow::Troubles::untraced, Kind::untraced},
                                           {&flow::Troubles::uncommitted, Kind::uncommitted},
                                           {&flow::Troubles::long_walks, Kind::no_branch}}) {
        flow::Troubles troubles;
        troubles.*member = one;
        EXPECT_EQ(kind(troubles), expected);
    }
    EXPECT_EQ(kind(conflict(Conflict::vmid_missing, one)), Kind::contradiction);
}

TEST_F(SourceDamage, OfASourceThatFellSilent) {
    stream_.silent_from = Offset{40};
    stream_.bytes_of_others = 2000;
    const std::string silence =
        "warning at 40 x1 bytes - instructions - ranges -: source 0x10 PTM: it sends nothing more in the middle of a "
        "packet "
        "at offset 0x28 of buffer ETB, while 2,000 bytes of other sources follow: what it sent later may have gone to "
        "their trace IDs";
    EXPECT_EQ(of(gap(GapReason::incomplete_packet, {.times = 1, .bytes = 2})), Lines{silence})
        << "its last packet is no other damage";
    EXPECT_EQ(of(gap(GapReason::framing, {.times = 1, .bytes = 2})).size(), 2U);
    EXPECT_EQ(damage_in(stream_, {}, 0)[0].kind, Kind::silence);
}

TEST_F(SourceDamage, OfCodeThatIsNotKnown) {
    flow::Troubles t;
    t.no_memory = {.times = 3, .offset = 5, .address = 0x9000};
    const std::string sentence =
        ": source 0x10 PTM: execution led to code without an image 3 times, first to 0x00009000 at offset 0x5 of "
        "buffer ETB; "
        "give what is there with --image FILE[@ADDRESS]";
    EXPECT_EQ(of(t), Lines{"warning at 5 x3 bytes - instructions - ranges -" + sentence});
    t.without_code = 12;
    EXPECT_EQ(of(t), Lines{"warning at 5 x3 bytes - instructions - ranges 12" + sentence});
    t = {};
    t.without_code = 12;
    EXPECT_EQ(of(t), Lines{});
    t = {};
    t.long_walks = {.times = 1, .offset = 8, .address = 0x8000};
    EXPECT_EQ(of(t),
              Lines{"warning at 8 x1 bytes - instructions - ranges -: source 0x10 PTM: once no branch follows for "
                    "more than 64 KiB, first from 0x00008000 on, at offset 0x8 of buffer ETB: code.bin is empty "
                    "there or not the program that ran (give the right one with --image)"});
    t = {};
    t.unplaced = {.times = 2, .offset = 6, .amount = 1000};
    EXPECT_EQ(of(t),
              Lines{"warning at 6 x2 bytes - instructions - ranges 1000: source 0x10 PTM: flow is unknown in 2 "
                    "stretches: 1,000 waypoints without an address, first at offset 0x6 of buffer ETB; no figure "
                    "contains what ran there"});
    t = {};
    t.untraced = {.times = 2, .offset = 6, .amount = 70};
    EXPECT_EQ(of(t),
              Lines{"warning at 6 x2 bytes - instructions 70 ranges -: source 0x10 PTM: the trace omits the way "
                    "through 2 stretches: 70 instructions ran there unseen, first at offset 0x6 of buffer ETB; turn "
                    "Q elements off (TRCCONFIGR.QE) to see all that runs"});
    t.untraced_unsized = 1;
    EXPECT_EQ(damage_in(stream_, t, 0)[0].instructions, std::nullopt);
    EXPECT_EQ(
        damage_in(stream_, t, 0)[0].found,
        "the trace omits the way through 2 stretches: 70 instructions, and an unknown number in 1 stretch of these ran "
        "there unseen");
    t.untraced.amount = 0;
    EXPECT_EQ(damage_in(stream_, t, 0)[0].means, "units leave out what ran between the last waypoint and a reset");
    t = {};
    t.uncommitted = {.times = 1, .offset = 6, .amount = 5};
    EXPECT_EQ(of(t),
              Lines{"warning at 6 x1 bytes - instructions - ranges 5: source 0x10 PTM: 5 P0 elements are neither "
                    "committed nor cancelled where flow ends: left out, first at offset 0x6 of buffer ETB; whether "
                    "these ran is unknown"});
    t = {};
    t.overflows = {.times = 2, .offset = 6};
    EXPECT_EQ(of(t),
              Lines{"warning at 6 x2 bytes - instructions - ranges -: source 0x10 PTM: the unit's FIFO overflowed "
                    "2 times: stretches of execution are missing, first at offset 0x6 of buffer ETB; trace less "
                    "(address filters, no cycle counts or branch broadcasting), or raise the trace clock"});
}

TEST_F(SourceDamage, OfContradictions) {
    const auto means = [&](std::uint64_t times, std::uint64_t ranges) {
        const auto all = damage_in(
            stream_, conflict(Conflict::branch_disagrees, {.times = times, .offset = 4, .address = 0x8000}), ranges);
        EXPECT_EQ(all.size(), 1U);
        EXPECT_EQ(all.at(0).kind, Kind::contradiction);
        EXPECT_EQ(all.at(0).severity, Severity::error);
        EXPECT_EQ(all.at(0).first, Offset{4});
        return without_folder(all.at(0).means);
    };
    const std::string rare = "The trace is damaged there, or the code in code.bin was modified in memory";
    const std::string often =
        "The program that ran is probably not code.bin (give the right one with --image), or ETMCR and "
        "ETMCCER are not the values in force while tracing";
    EXPECT_EQ(means(1, 51), rare);
    EXPECT_EQ(means(1, 50), often);
    EXPECT_EQ(means(10, 501), rare);
    EXPECT_EQ(means(11, 501), often);
    EXPECT_EQ(
        of(conflict(Conflict::vmid_missing, {.times = 2, .offset = 4})),
        Lines{"error at 4 x2 bytes - instructions - ranges -: source 0x10 PTM: VMIDs are traced, and 2 times none came "
              "after an I-sync, first at offset 0x4 of buffer ETB. The bytes are damaged, or ETMCR and ETMCCER are "
              "not the values in force while tracing"});
}

TEST_F(SourceDamage, OfSourcesThatNoDecoderTakes) {
    Report report;
    BufferReport& buffer = report.buffers.emplace_back();
    buffer.name = "ETB";
    buffer.buffer = &session_->capture.buffers.front();
    buffer.framed = true;
    std::vector<const Source*> selected;
    for (const Source& source : session_->sources) selected.push_back(&source);
    EXPECT_TRUE(not_decoded(*session_, selected, report).empty());
    const auto id = [&](std::size_t i) { return session_->sources.at(i).trace_id.value_or(TraceId{0}).value; };
    buffer.frames.data[id(0)] = 3000;
    EXPECT_TRUE(not_decoded(*session_, selected, report).empty()) << "the PTM is decoded";
    ASSERT_EQ(id(1), 0x20);
    buffer.frames.data[id(1)] = 1000;
    const auto all = not_decoded(*session_, selected, report);
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(line(all[0]),
              "note at 0 x1 bytes 1000 instructions - ranges -: 1,000 of 4,000 bytes of sources (25 %) are no "
              "program flow: waymark messages lists what 0x20 ITM (ITM) sent");
    EXPECT_EQ(all[0].kind, Kind::not_decoded);
    EXPECT_EQ(all[0].of, "0x20 ITM (ITM)");
    EXPECT_EQ(all[0].buffer, "ETB");
    // Units that may trace a core, and one that never does.
    session_->sources.at(2).trace_id = TraceId{0x30};
    session_->sources.at(3).trace_id = TraceId{0x40};
    buffer.frames.data[0x30] = 500;
    buffer.frames.data[0x40] = 1500;
    EXPECT_EQ(
        lines(not_decoded(*session_, selected, report)),
        (Lines{"warning at 0 x1 bytes 1500 instructions - ranges -: 1,500 of 6,000 bytes of sources (25 %) are not "
               "decoded: Waymark does not decode the protocol of 0x40 X (of unknown type); if these sources trace what "
               "ran on a core, no figure contains it",
               "note at 0 x1 bytes 1000 instructions - ranges -: 1,000 of 6,000 bytes of sources (17 %) are no program "
               "flow: waymark messages lists what 0x20 ITM (ITM) sent",
               "note at 0 x1 bytes 500 instructions - ranges -: 500 of 6,000 bytes of sources (8 %) are not decoded: "
               "Waymark does not decode the protocol of 0x30 HTM (HTM)"}));
    session_->sources.at(3).type = "ETM9.9";
    EXPECT_EQ(not_decoded(*session_, selected, report)[0].means,
              "no figure contains what ran on the cores of these sources");
    buffer.frames.data[0x30] = buffer.frames.data[0x40] = 0;
    report.buffers.push_back(buffer);
    EXPECT_EQ(not_decoded(*session_, selected, report)[0].times, 1U) << "one source in two buffers";
    EXPECT_EQ(not_decoded(*session_, selected, report)[0].bytes, 2000U);
    EXPECT_TRUE(not_decoded(*session_, {selected[0]}, report).empty());
}

}  // namespace
}  // namespace waymark::pipeline
