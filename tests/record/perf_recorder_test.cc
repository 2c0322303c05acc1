/// perf.data from chunks like the plugin's: the CPU of each thread, the AUX ranges that contain its trace, and the
/// records about processes.
#include "waymark/record/perf_recorder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "support/temporary_folder.h"
#include "waymark/capture/byte_file.h"
#include "waymark/etm4/unit.h"
#include "waymark/pft/unit.h"

namespace waymark::record {
namespace {

namespace perf = capture::perf;
constexpr std::uint32_t nop = 0xd503201f, ret = 0xd65f03c0, svc = 0xd4000001;

class Definitions {
public:
    Definitions& block(std::uint32_t id, std::uint64_t address, const std::vector<std::uint32_t>& code) {
        BlockPart part;
        part.id = id;
        part.address = address;
        part.instructions = static_cast<std::uint32_t>(code.size());
        part.code_bytes = part.instructions * 4;
        return put(part, code.data(), part.code_bytes);
    }
    Definitions& thread(std::uint32_t number, std::uint32_t pid, std::uint32_t tid, std::string_view name = {}) {
        ThreadPart part;
        part.thread = number;
        part.pid = pid;
        part.tid = tid;
        part.name_bytes = static_cast<std::uint32_t>(name.size());
        return put(part, name.data(), name.size());
    }
    Definitions& process(const ProcessPart& part) { return put(part, nullptr, 0); }
    Definitions& map(std::uint64_t address, std::uint64_t bytes) {
        MapPart part;
        part.address = address;
        part.bytes = bytes;
        return put(part, nullptr, 0);
    }
    Definitions& unmap(std::uint64_t address, std::uint64_t bytes) {
        UnmapPart part;
        part.address = address;
        part.bytes = bytes;
        return put(part, nullptr, 0);
    }
    std::vector<std::uint32_t> words;

private:
    template <class Part>
    Definitions& put(Part part, const void* more, std::size_t bytes) {
        part.words = static_cast<std::uint32_t>((sizeof part + bytes + 3) / 4);
        const std::size_t at = words.size();
        words.resize(at + part.words);
        std::memcpy(words.data() + at, &part, sizeof part);
        if (bytes != 0) std::memcpy(reinterpret_cast<std::uint8_t*>(words.data() + at) + sizeof part, more, bytes);
        return *this;
    }
};

struct Recorded {
    std::vector<std::uint8_t> bytes;
    perf::PerfData data;
    Truth truth;
    PerfRecorded sums;

    [[nodiscard]] std::vector<std::uint8_t> trace(const perf::Chunk& c) const {
        const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(c.payload);
        return {from, from + static_cast<std::ptrdiff_t>(c.bytes)};
    }
    [[nodiscard]] std::size_t tasks(perf::TaskEvent::Kind kind) const {
        return static_cast<std::size_t>(
            std::count_if(data.tasks.begin(), data.tasks.end(), [&](const auto& t) { return t.kind == kind; }));
    }
};

class PerfRecording : public testing::Test {
protected:
    void begin(PerfRecorderOptions options, bool ete = true) {
        options.file = folder_.path() / "perf.data";
        options.command = {"/bin/program"};
        options.units = etm4::unit_factories()[ete ? 0 : 1];
        options.unit = options.units->defaults();
        options.unit.sync_bytes = 256;
        // Every iteration sends an address.
        options.unit.branch_broadcast = true;
        if (!options.per_thread) options.unit.context_id_bytes = 4;
        options.aarch64 = true;
        auto made = PerfRecorder::create(options);
        ASSERT_TRUE(made) << made.error().message;
        recorder_ = std::move(*made);
        Definitions d;
        d.block(1, 0x400000, {nop, ret}).block(2, 0x410000, {nop, nop, ret}).block(exit_block, 0x418000, {svc});
        d.map(0x400000, 0x20000).thread(1, 100, 100);
        recorder_->definitions(d.words);
    }
    /// 2 * `rounds` blocks; two blocks have 5 instructions together.
    void run(std::uint32_t thread, std::size_t rounds) {
        std::vector<std::uint32_t> chunk;
        for (std::size_t i = 0; i < rounds; ++i) chunk.insert(chunk.end(), {1, 2});
        recorder_->execution(thread, chunk);
    }
    void end(std::uint32_t thread) {
        recorder_->execution(thread, std::vector<std::uint32_t>{exit_block, words::system_call, words::thread_end});
    }
    Recorded finish() {
        Recorded out;
        EXPECT_TRUE(recorder_->finish(true));
        out.sums = recorder_->recorded();
        const auto path = folder_.path() / "perf.data";
        auto file = capture::open_byte_file(path);
        EXPECT_TRUE(file);
        out.bytes.resize((*file)->size());
        EXPECT_TRUE((*file)->read_at(0, out.bytes));
        auto data = perf::read_perf_data(**file);
        EXPECT_TRUE(data);
        out.data = std::move(*data);
        EXPECT_EQ(out.data.loss_count, 0U);
        auto truth = read_truth_file(perf_truth_file(path));
        EXPECT_TRUE(truth);
        out.truth = std::move(*truth);
        return out;
    }

    static constexpr std::uint32_t exit_block = 9;
    TemporaryFolder folder_;
    std::unique_ptr<PerfRecorder> recorder_;
};

TEST_F(PerfRecording, ThreadsTakeTurnsOnCpus) {
    begin({.sink = TraceSink::trbe, .cpus = 2});
    recorder_->definitions(Definitions().thread(2, 100, 101).thread(3, 100, 102, "third").words);
    for (int i = 0; i < 4; ++i)
        for (const std::uint32_t thread : {1U, 2U, 3U}) run(thread, 100);
    for (const std::uint32_t thread : {3U, 2U, 1U}) end(thread);
    const Recorded r = finish();
    // No block is missing in the truth, wherever a thread was interrupted.
    ASSERT_EQ(r.truth.sources.size(), 3U);
    for (const SourceTruth& source : r.truth.sources) {
        EXPECT_EQ(source.instructions, 4U * 100 * 5 + 1) << source.source;
        EXPECT_EQ(source.unfinished_instructions, 0U);
        EXPECT_FALSE(source.wrapped);
    }
    EXPECT_EQ(r.truth.sources[2].source, "100/102");
    EXPECT_EQ(r.tasks(perf::TaskEvent::Kind::exec), 1U);
    EXPECT_EQ(r.tasks(perf::TaskEvent::Kind::fork), 2U);
    EXPECT_EQ(r.tasks(perf::TaskEvent::Kind::exit), 3U);
    ASSERT_EQ(r.data.hardware_ids.size(), 2U);
    EXPECT_EQ(r.data.hardware_ids[1].id, 0x12U);
    EXPECT_EQ(r.data.hardware_ids[1].where.cpu, 1U);
    // Each ring without gaps, in ranges of raw bytes that begin at a synchronisation.
    std::map<std::uint32_t, std::uint64_t> ends;
    std::set<std::uint32_t> tids;
    for (const perf::AuxRange& range : r.data.aux) {
        EXPECT_EQ(range.flags, perf::cs_etm_raw);
        EXPECT_EQ(range.offset, ends[*range.id.cpu]);
        EXPECT_GT(range.bytes, 0U);
        ends[*range.id.cpu] += range.bytes;
        tids.insert(*range.id.tid);
        const auto chunk = std::find_if(r.data.chunks.begin(), r.data.chunks.end(), [&](const perf::Chunk& c) {
            return c.cpu == range.id.cpu && range.offset >= c.ring && range.offset < c.ring + c.bytes;
        });
        ASSERT_NE(chunk, r.data.chunks.end());
        const auto trace = r.trace(*chunk);
        const std::vector<std::uint8_t> a_sync(11, 0);
        const auto at = trace.begin() + static_cast<std::ptrdiff_t>(range.offset - chunk->ring);
        EXPECT_TRUE(std::equal(a_sync.begin(), a_sync.end(), at)) << range.offset;
    }
    EXPECT_EQ(ends.size(), 2U);
    EXPECT_EQ(tids, (std::set<std::uint32_t>{100, 101, 102}));
    EXPECT_EQ(r.sums.aux_ranges, r.data.aux.size());
}

TEST_F(PerfRecording, OneEtrHasTheTraceOfAllCpus) {
    begin({.sink = TraceSink::etr, .cpus = 2, .aux_bytes = 8192}, false);
    recorder_->definitions(Definitions().thread(2, 100, 101).words);
    for (int i = 0; i < 20; ++i)
        for (const std::uint32_t thread : {1U, 2U}) run(thread, 250);
    for (const std::uint32_t thread : {2U, 1U}) end(thread);
    const Recorded r = finish();
    std::uint64_t empty = 0, bytes = 0;
    for (const perf::AuxRange& range : r.data.aux) {
        EXPECT_EQ(range.flags, 0U);
        EXPECT_EQ(range.bytes % coresight::frame_bytes, 0U);
        // The ring was read when it was half full, or soon after.
        EXPECT_LE(range.bytes, 8192U);
        empty += range.bytes == 0 ? 1U : 0U;
        bytes += range.bytes;
    }
    EXPECT_GT(bytes, 3 * 8192U);
    EXPECT_EQ(empty, r.data.aux.size() / 2) << "of two CPUs the one that stops last has all";
    EXPECT_EQ(bytes, r.sums.trace_bytes);
}

TEST_F(PerfRecording, AWrappedEtrBeginsWithABarrier) {
    begin({.sink = TraceSink::etr, .cpus = 1, .aux_bytes = 8192, .loss = TraceLoss::late});
    for (int i = 0; i < 20; ++i) run(1, 500);
    const Recorded r = finish();
    ASSERT_EQ(r.data.chunks.size(), 1U);
    const auto trace = r.trace(r.data.chunks[0]);
    std::size_t truncated = 0;
    for (const perf::AuxRange& range : r.data.aux) {
        const std::vector<std::uint8_t> first(trace.begin() + static_cast<std::ptrdiff_t>(range.offset),
                                              trace.begin() + static_cast<std::ptrdiff_t>(range.offset) + 16);
        const std::vector<std::uint8_t> barrier{0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff, 0x7f,
                                                0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff, 0x7f};
        EXPECT_EQ(first == barrier, range.flags == perf::AuxRange::truncated);
        if (range.flags == 0) continue;
        EXPECT_EQ(range.bytes, 8192U);
        ++truncated;
    }
    EXPECT_GT(truncated, 2U);
    EXPECT_GT(r.sums.lost_bytes, truncated * 2048U);
    EXPECT_TRUE(r.truth.sources.at(0).wrapped);
}

TEST_F(PerfRecording, ASnapshotHoldsTheNewestBytes) {
    begin({.sink = TraceSink::trbe, .cpus = 1, .aux_bytes = 8192, .loss = TraceLoss::snapshot});
    for (int i = 0; i < 20; ++i) run(1, 500);
    const Recorded r = finish();
    ASSERT_EQ(r.data.chunks.size(), 1U);
    EXPECT_EQ(r.data.chunks[0].bytes, 8192U);
    ASSERT_FALSE(r.data.aux.empty());
    const perf::AuxRange& last = r.data.aux.back();
    EXPECT_EQ(last.flags, perf::AuxRange::overwrite | perf::cs_etm_raw);
    EXPECT_EQ(last.offset, r.data.chunks[0].ring + 8192U) << "where the bytes end";
    EXPECT_EQ(r.data.auxtrace_info->words[2], 1U);
    EXPECT_GT(r.sums.lost_bytes, 8192U);
}

TEST_F(PerfRecording, ChildrenHaveTheBlocksAndMappingsOfTheirParents) {
    begin({.sink = TraceSink::trbe, .cpus = 4});
    run(1, 10);
    const ProcessPart child{PartKind::process, sizeof(ProcessPart) / 4, 1, 0, 200, 100, 100};
    recorder_->definitions(Definitions().process(child).block(3, 0x420000, {nop, ret}).thread(2, 200, 200).words);
    // The parent's next block has the same number.
    recorder_->definitions(Definitions().block(3, 0x400100, {nop, nop, nop, ret}).words);
    recorder_->execution(2, std::vector<std::uint32_t>{1, 3, 1, 3, exit_block, words::system_call});
    recorder_->execution(1, std::vector<std::uint32_t>{3, 1, 3, exit_block, words::system_call});
    // If it is mapped again, it is reported again, and only then.
    const ProcessPart again = child;
    recorder_->definitions(Definitions().process(again).map(0x400000, 0x20000).words);
    recorder_->definitions(Definitions().process(again).unmap(0x400000, 0x1000).map(0x400000, 0x20000).words);
    const Recorded r = finish();
    ASSERT_EQ(r.truth.sources.size(), 2U);
    EXPECT_EQ(r.truth.sources[0].instructions, 10U * 5 + 4 + 2 + 4 + 1);
    EXPECT_EQ(r.truth.sources[1].source, "200/200");
    EXPECT_EQ(r.truth.sources[1].instructions, 8U + 1);
    const auto fork = std::find_if(r.data.tasks.begin(), r.data.tasks.end(),
                                   [](const auto& t) { return t.kind == perf::TaskEvent::Kind::fork; });
    ASSERT_NE(fork, r.data.tasks.end());
    EXPECT_EQ(fork->pid, 200U);
    EXPECT_EQ(fork->parent_pid, 100U);
    ASSERT_EQ(r.data.mappings.size(), 2U);
    EXPECT_EQ(r.data.mappings[0].pid, 100U);
    EXPECT_EQ(r.data.mappings[1].pid, 200U);
}

TEST_F(PerfRecording, ARingForEachThread) {
    begin({.sink = TraceSink::etr, .per_thread = true, .cpus = 2}, false);
    recorder_->definitions(Definitions().thread(2, 100, 101).words);
    run(1, 100);
    run(2, 100);
    const Recorded r = finish();
    EXPECT_TRUE(r.data.hardware_ids.empty());
    ASSERT_EQ(r.data.chunks.size(), 2U);
    for (const perf::Chunk& chunk : r.data.chunks) EXPECT_EQ(chunk.cpu, perf::nobody);
    EXPECT_EQ(r.data.chunks[1].tid, 101U);
    for (const perf::AuxRange& range : r.data.aux) EXPECT_EQ(range.id.cpu, perf::nobody);
}

TEST_F(PerfRecording, ProgramsFollowEachOther) {
    begin({.sink = TraceSink::trbe, .cpus = 1});
    run(1, 10);
    recorder_->next_program({"/bin/other"});
    recorder_->definitions(Definitions().block(1, 0x500000, {nop, nop, nop, ret}).thread(1, 300, 300).words);
    recorder_->execution(1, std::vector<std::uint32_t>{1, 1, 1, words::system_call});
    const Recorded r = finish();
    ASSERT_EQ(r.truth.sources.size(), 2U);
    EXPECT_EQ(r.truth.sources[0].instructions, 50U - 3) << "what ran last is not known to have come to its end";
    EXPECT_EQ(r.truth.sources[1].source, "300/300");
    EXPECT_EQ(r.truth.sources[1].instructions, 3U * 4 - 1) << "nor that the last branch was taken";
    EXPECT_EQ(r.tasks(perf::TaskEvent::Kind::exec), 2U);
    EXPECT_EQ(r.tasks(perf::TaskEvent::Kind::exit), 2U);
}

TEST(PerfRecorder, OptionsThatPerfHasNot) {
    PerfRecorderOptions o;
    o.units = etm4::unit_factories()[0];
    o.unit = o.units->defaults();
    const auto message = [&] {
        const Status status = check(o);
        return status ? std::string() : status.error().message;
    };
    EXPECT_EQ(message(), "") << "threads are then those of AUX records";
    o.unit.context_id_bytes = 4;
    EXPECT_EQ(message(), "");
    o.info_version = 0;
    EXPECT_NE(message().find("AUXTRACE_INFO of version 0"), std::string::npos) << message();
    o.info_version = 1;
    o.cpus = 49;
    EXPECT_NE(message().find("--cpus 49"), std::string::npos) << message();
    o.cpus = 48;
    o.aux_bytes = 4096;
    EXPECT_NE(message().find("4096 bytes"), std::string::npos) << message();
    o.aux_bytes = 8192;
    o.per_thread = true;
    EXPECT_NE(message().find("--per-thread cannot be used with"), std::string::npos) << message();
    o.units = &pft::unit_factory();
    o.unit = o.units->defaults();
    EXPECT_EQ(message(), "");
    o.per_thread = false;
    EXPECT_NE(message().find("needs --per-thread"), std::string::npos) << message();
}

}  // namespace
}  // namespace waymark::record
