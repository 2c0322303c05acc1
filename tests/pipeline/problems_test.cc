/// Sentences about whole captures, made from reports that are written here field by field.
#include "waymark/pipeline/problems.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "pipeline/fake_spaces.h"
#include "waymark/pipeline/continuations.h"
#include "waymark/pipeline/damage.h"
#include "waymark/pipeline/packet_counter.h"
#include "waymark/pipeline/protocols.h"

namespace waymark::pipeline {
namespace {

using coresight::TraceId;
using Lines = std::vector<std::string>;

/// A capture of buffer ETB, in frames, with PTM sources `core_0` (ID 0x10) and `core_1` (no ID).
struct TwoCores {
    Session session;
    OffsetMap offsets{};
    Report report{};
    TwoCores() {
        session.capture.buffers = {{.name = "ETB", .sources = {"core_0", "core_1"}}};
        for (const char* name : {"core_0", "core_1"}) {
            Source source;
            source.name = name;
            source.type = "PTM1.1";
            source.protocol = protocol_of(source.type);
            source.configuration = source.protocol->configure({source.name, source.type, "", {}, false}).configuration;
            source.memory = std::make_shared<const image::MemoryMap>();
            session.sources.push_back(std::move(source));
        }
        session.sources[0].trace_id = TraceId{0x10};
        BufferReport& buffer = report.buffers.emplace_back();
        buffer.name = "ETB";
        buffer.buffer = session.capture.buffers.data();
        buffer.framed = true;
    }
    TwoCores(const TwoCores&) = delete;
    [[nodiscard]] std::vector<const Source*> selected() const {
        return {session.sources.data(), session.sources.data() + 1};
    }
    /// Bytes with an ID, which are all accounted for.
    void bytes(std::uint8_t id, std::uint64_t number) {
        report.buffers[0].frames.data[id] += number;
        report.buffers[0].bytes = report.buffers[0].frames.accounted();
    }
    /// A stream of a source that ends.
    StreamReport& stream(std::size_t source, Bytes bytes) {
        auto counter =
            std::make_unique<PacketCounter>(StreamInfo{session.sources[source], session.capture.buffers[0], offsets});
        counter->feed(bytes);
        counter->finish();
        StreamReport& out = report.streams.emplace_back();
        out.source = &session.sources[source];
        out.buffer = "ETB";
        out.bytes = bytes.size();
        out.consumer = std::move(counter);
        return out;
    }
    [[nodiscard]] Lines problems() const { return problems_in(session, selected(), report); }
};

constexpr std::string_view no_image = ": no program image; flow needs one (--image FILE[@ADDRESS])";

TEST(Problems, OfIdsWithoutASource) {
    TwoCores c;
    c.stream(0, {});
    c.stream(1, {});
    c.report.buffers[0].frames.data[0x10] = 1;
    const std::vector<IdBytes> of_source = ids_in(c.report.buffers[0], c.session);
    ASSERT_EQ(of_source.size(), 1U);
    EXPECT_EQ(of_source[0].source, &c.session.sources[0]);
    c.bytes(0x20, 5);
    c.bytes(0x6f, 1);
    c.bytes(0x70, 9);  // reserved
    const auto found = ids_in(c.report.buffers[0], c.session);
    ASSERT_EQ(found.size(), 3U);
    EXPECT_EQ(found[1].id, TraceId{0x20});
    EXPECT_EQ(found[1].bytes, 5U);
    EXPECT_EQ(found[2].id, TraceId{0x6f});
    EXPECT_EQ(found[2].source, nullptr);
    const std::string nothing = "source 0x10 core_0: it has no byte in buffer ETB; the core may have been off or idle";
    const std::string image0 = "source 0x10 core_0" + std::string(no_image),
                      image1 = "source 0x11 core_1" + std::string(no_image);
    EXPECT_EQ(
        c.problems(),
        (Lines{"buffer ETB: 6 bytes of trace IDs that no described source has (0x20, 0x6f); if they are core_1's, "
               "write ETMTRACEIDR=ID into its [regs]",
               nothing, image0}));
    c.session.sources[1].trace_id = TraceId{0x11};
    EXPECT_EQ(c.problems(),
              (Lines{"buffer ETB: 6 bytes of trace IDs that no described source has (0x20, 0x6f); to decode them add "
                     "sources with that ETMTRACEIDR",
                     nothing, image0,
                     "source 0x11 core_1: it has no byte in buffer ETB; the core may have been off or idle", image1}));
    // An ID that is reported as a stray one is not named again.
    c.report.buffers[0].strays = {{TraceId{0x20}, 5, 1, {}, true}};
    EXPECT_TRUE(c.problems()[1].starts_with("buffer ETB: 1 byte of trace IDs that no described source has (0x6f); "))
        << c.problems()[1];
    // A source of another buffer has an ID of its own.
    c.session.sources[0].trace_id = TraceId{0x20};
    c.session.capture.buffers[0].sources = {"core_1"};
    EXPECT_EQ(ids_in(c.report.buffers[0], c.session)[1].source, nullptr);
}

TEST(Problems, OfBuffersAndTheirStreams) {
    TwoCores c;
    c.bytes(0x10, 4);
    c.report.buffers[0].bytes = 7;
    EXPECT_EQ(c.problems(),
              (Lines{"buffer ETB: 4 of its 7 bytes are accounted for; this is a fault of Waymark",
                     "source core_0: it belongs to no trace buffer", "source core_1: it belongs to no trace buffer"}));
    c.report.buffers[0].framed = false;
    EXPECT_EQ(c.problems().size(), 2U) << "only frames are accounted for";
    c.report.buffers[0].error = Error{Errc::not_found, "etb.bin: no such file"};
    EXPECT_EQ(c.problems()[0], "buffer ETB: etb.bin: no such file");
    // A capture in parts does not tell which sources a buffer contains.
    c.session.capture.spaces = std::make_shared<FakeSpaces>();
    EXPECT_EQ(c.problems(), Lines{"buffer ETB: etb.bin: no such file"});
    // Nothing is known about the streams of a buffer that could not be read.
    c.session.capture.spaces = nullptr;
    c.stream(0, {});
    c.stream(1, {});
    EXPECT_EQ(c.problems(), Lines{"buffer ETB: etb.bin: no such file"});
    c.report.buffers[0].error.reset();
    EXPECT_EQ(c.problems().size(), 2U);
}

TEST(Problems, OfBytesThatAreNoTrace) {
    TwoCores c;
    const std::vector<std::uint8_t> bytes{1, 2, 3};
    c.stream(0, bytes);
    c.report.streams.back().bytes = 5;
    c.stream(1, {});
    const Lines said = c.problems();
    ASSERT_EQ(said.size(), 3U);
    EXPECT_EQ(
        said[0],
        "source 0x10 core_0: it cannot be decoded: no A-sync (00 00 00 00 00 80) in 5 bytes: it is not PTM trace, "
        "is framed otherwise than given (--buffer-format, or the snapshot's format=), or was cut before its first "
        "synchronisation");
    EXPECT_EQ(said[1], "source 0x10 core_0: 3 of its 5 bytes are accounted for; this is a fault of Waymark");
    EXPECT_EQ(said[2], "source 0x10 core_0" + std::string(no_image));
}

// ---- code without an image

class Lacking final : public FlowConsumer {
public:
    explicit Lacking(std::vector<MissingCode> missing) : missing_(std::move(missing)) {}
    void feed(Bytes) override {}
    void reset(GapReason) override {}
    void finish() override {}
    void flush() override {}
    [[nodiscard]] std::array<Offset, 2> pending() const override { return {}; }
    [[nodiscard]] std::uint64_t packets() const override { return 0; }
    [[nodiscard]] std::vector<MissingCode> missing() const override { return missing_; }

private:
    std::vector<MissingCode> missing_;
};

MissingCode lacking(std::optional<std::uint32_t> name, std::uint64_t times, std::uint64_t outcomes, std::uint64_t first,
                    std::vector<std::uint32_t> threads = {}) {
    return {name, times, outcomes, Address{first}, std::move(threads)};
}

/// A stream that lacks this code.
void add_lacking(TwoCores& to, std::vector<MissingCode> missing) {
    StreamReport& out = to.report.streams.emplace_back();
    out.source = to.session.sources.data();
    out.consumer = std::make_unique<Lacking>(std::move(missing));
}

TEST(MissingCodes, SayWhatToDoForEachKindOfName) {
    TwoCores c;
    auto spaces = std::make_shared<FakeSpaces>();
    spaces->images = {{"/usr/lib/libc.so.6", {0xab, 0xcd, 0xef}},
                      {"/opt/tool", {}},
                      {"[kernel.kallsyms]", {}},
                      {"[vdso]", {0x12, 0x34}},
                      {"//anon", {}},
                      {"[vdso]", {}},
                      {"/lib/modules/a.ko", {}},
                      {"/opt/short", {9}}};
    c.session.capture.spaces = spaces;
    std::vector<MissingCode> missing;
    for (std::uint32_t i = 0; i < spaces->images.size(); ++i) missing.push_back(lacking(i, 1, 100 - i, 0x1000));
    add_lacking(c, missing);
    add_lacking(c, {lacking({}, 1, 1, 0xffff'0000'0000'0000)});
    const std::string cost =
        ": execution went there once, which cost {} ranges of code: outcomes of branches have no address; ";
    const auto wanted = [&cost](const std::string& found, std::uint64_t ranges, const std::string& means) {
        std::string out = found + cost;
        out.replace(out.find("{}"), 2, std::to_string(ranges));
        if (ranges == 1) out.replace(out.find("1 ranges"), 8, "1 range");
        return out + means;
    };
    const std::string copies = " (--symfs DIR, for copies of all files of the recorded machine)";
    Lines said;
    for (const Damage& d : missing_code(c.session, c.report)) said.push_back(d.sentence);
    EXPECT_EQ(
        said,
        (Lines{wanted("the code of /usr/lib/libc.so.6 (build ID abcdef) is not known", 100,
                      "give the file with --image FILE, or copy it to DIR/.build-id/ab/cdef/elf (--debug-dir DIR) or "
                      "to DIR/usr/lib/libc.so.6" +
                          copies),
               wanted("the code of /opt/tool is not known", 99,
                      "give the file with --image FILE, or copy it to DIR/opt/tool" + copies),
               wanted("the code of [kernel.kallsyms] is not known", 98,
                      "give the vmlinux of the recorded kernel with --image FILE"),
               wanted("the code of [vdso] (build ID 1234) is not known", 97,
                      "copy the vDSO of the recorded kernel from perf's cache to DIR/.build-id/12/34/vdso (--debug-dir "
                      "DIR)"),
               wanted("the code of //anon is not known", 96,
                      "no file contains it; perf.data does not contain generated code"),
               wanted("the code of [vdso] is not known", 95,
                      "no file contains it; perf.data does not contain generated code"),
               wanted("the code of /lib/modules/a.ko is not known", 94,
                      "give the file with --image FILE, or copy it to DIR/lib/modules/a.ko" + copies),
               wanted("the code of /opt/short (build ID 09) is not known", 93,
                      "give the file with --image FILE, or copy it to DIR/opt/short" + copies),
               wanted("no mapping is known at 0xffff000000000000 and other addresses", 1,
                      "it is kernel code, and the file has no map of the kernel: record as root, or with "
                      "kernel.kptr_restrict 0")}));
    // Without a map of any file.
    TwoCores none;
    none.session.capture.spaces = std::make_shared<FakeSpaces>();
    add_lacking(none, {lacking({}, 1, 1, 0x1000, {7})});
    EXPECT_EQ(
        missing_code(none.session, none.report)[0].means,
        "the maps of its process are not in the file: FORK or MMAP2 records were lost (a larger ring, perf record "
        "-m SIZE, loses fewer), the file was not copied whole, or the process started before the recording. "
        "--image does not help: copy the file again, or record again from the start");
    none.session.capture.sampled = true;
    EXPECT_TRUE(missing_code(none.session, none.report)[0].means.starts_with(
        "the file has no maps, so it is not known which program ran"));
}

TEST(MissingCodes, AreAddedUpAndSortedByWhatTheyCost) {
    TwoCores c;
    EXPECT_TRUE(missing_code(c.session, c.report).empty());
    add_lacking(c, {lacking(0, 5, 9, 0x3000), lacking(1, 2, 20, 0x1000), lacking(2, 4, 9, 0x2000),
                    lacking({}, 1, 0, 0x9000, {7})});
    add_lacking(c, {lacking(0, 1, 1, 0x2800), lacking(2, 1, 1, 0x4000), lacking({}, 2, 0, 0x9100, {7, 3})});
    EXPECT_TRUE(missing_code(c.session, c.report).empty()) << "no processes are known";
    auto spaces = std::make_shared<FakeSpaces>();
    spaces->images = {{"/bin/zero", {}}, {"/bin/one", {}}, {"/bin/two", {}}};
    c.session.capture.spaces = spaces;
    const std::vector<Damage> all = missing_code(c.session, c.report);
    ASSERT_EQ(all.size(), 4U);
    const auto begin = [&all](std::size_t i) { return all[i].found.substr(0, all[i].found.find(',')); };
    EXPECT_EQ(all[0].ranges, 20U);
    EXPECT_EQ(all[1].ranges, 10U);
    EXPECT_EQ(all[1].times, 6U) << "of equal costs the one that was entered more often is first";
    EXPECT_EQ(all[2].ranges, 10U);
    EXPECT_EQ(all[2].times, 5U);
    EXPECT_EQ(all[3].ranges, std::nullopt);
    EXPECT_EQ(all[3].times, 3U);
    EXPECT_EQ(begin(3), "no mapping is known at 0x9000 and other addresses");
    EXPECT_NE(
        all[3].found.find("of threads 3, 7: execution went there 3 times, which cost 0 ranges of code: outcomes of "
                          "branches have no address"),
        std::string::npos)
        << all[3].found;
    const std::vector<Damage> two = missing_code(c.session, c.report, 2);
    ASSERT_EQ(two.size(), 3U);
    EXPECT_EQ(two[2].found, "the code of 2 files more is not known");
    EXPECT_EQ(two[2].sentence, two[2].found);
    EXPECT_EQ(two[2].times, 8U);
    EXPECT_EQ(two[2].ranges, 10U);
    EXPECT_EQ(missing_code(c.session, c.report, 4).size(), 4U);
}

// ---- recordings in several buffers

TEST(Continuation, OfSourcesAndBuffersOfARecording) {
    TwoCores c;
    c.session.capture.description = "recorded under QEMU, of a test";
    for (const char* name : {"core_2", "core_0_2", "core_0_3", "core_0_x", "task"}) {
        c.session.sources.push_back(c.session.sources[1]);
        c.session.sources.back().name = name;
    }
    c.session.sources[4].trace_id = TraceId{0x12};
    c.session.sources[6].continues = "core_1";
    std::vector<const Source*> all;
    for (const Source& s : c.session.sources) all.push_back(&s);
    c.session.capture.buffers = {{.name = "ETB", .sources = {"core_0", "core_1"}},
                                 {.name = "ETB_2", .sources = {"core_0_3"}},
                                 {.name = "ETB_3", .sources = {"core_0_3", "core_0"}}};
    c.report.buffers.clear();
    for (const capture::Buffer& buffer : c.session.capture.buffers) {
        BufferReport& b = c.report.buffers.emplace_back();
        b.name = buffer.name;
        b.buffer = &buffer;
        b.framed = true;
        b.bytes = 100;
        b.frames.data[0x12] = 3;
    }
    c.session.sources[4].name = "core_0_3";
    c.report.buffers[2].frames.data[0x10] = 1;
    const Continuations found(c.session, all, c.report);
    for (const char* name : {"core_0_2", "core_0_3", "task"}) EXPECT_TRUE(found.has_source(name)) << name;
    for (const char* name : {"core_0", "core_1", "core_2", "core_0_x"}) EXPECT_FALSE(found.has_source(name)) << name;
    EXPECT_FALSE(found.has_buffer("ETB")) << "its name has no number";
    EXPECT_TRUE(found.has_buffer("ETB_2"));
    EXPECT_FALSE(found.has_buffer("ETB_3")) << "it has a source that continues none";
    EXPECT_EQ(found.text(),
              "where code changed or trace IDs were used up, 1 more buffer (100 bytes) with 3 sources continue 2 "
              "sources; --format json lists each");
    const Continuations one(c.session, {all[0], all[3], all[4]}, c.report);
    EXPECT_EQ(one.text(),
              "where code changed or trace IDs were used up, 1 more buffer (100 bytes) with 2 sources continue core_0; "
              "--format json lists each");
    c.session.capture.description = "of a board";
    EXPECT_EQ(Continuations(c.session, all, c.report).text(), "");
}

}  // namespace
}  // namespace waymark::pipeline
