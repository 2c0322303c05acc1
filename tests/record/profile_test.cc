/// Blocks and accesses in the plugin's format → a perf.data file, read again.
#include "waymark/record_spe/profile.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "support/temporary_folder.h"
#include "waymark/capture/byte_file.h"
#include "waymark/spe/decoder.h"

namespace waymark::record {
namespace {

constexpr std::uint32_t nop = 0xd503201f, ldr = 0xf9400020, str = 0xf9000020, back_2 = 0x54ffffc1, svc = 0xd4000001;

class Chunks {
public:
    void thread(std::uint32_t number, std::uint32_t tid) {
        ThreadPart part;
        part.words = sizeof part / 4;
        part.thread = number;
        part.pid = 100;
        part.tid = tid;
        append(&part, sizeof part, nullptr, 0);
    }
    void block(std::uint32_t id, std::uint64_t address, const std::vector<std::uint32_t>& code) {
        BlockPart part;
        part.id = id;
        part.address = address;
        part.instructions = static_cast<std::uint32_t>(code.size());
        part.code_bytes = part.instructions * 4;
        part.words = static_cast<std::uint32_t>(sizeof part / 4 + code.size());
        append(&part, sizeof part, code.data(), part.code_bytes);
    }
    static void access(std::vector<std::uint32_t>& to, std::uint32_t index, std::uint64_t address) {
        to.push_back(words::access | index << words::access_index_bit | static_cast<std::uint32_t>(address >> 32));
        to.push_back(static_cast<std::uint32_t>(address));
    }
    std::vector<std::uint32_t> definitions;

private:
    void append(const void* header, std::size_t header_bytes, const void* rest, std::size_t rest_bytes) {
        const std::size_t at = definitions.size();
        definitions.resize(at + (header_bytes + rest_bytes) / 4);
        std::memcpy(&definitions[at], header, header_bytes);
        if (rest_bytes != 0) std::memcpy(reinterpret_cast<char*>(&definitions[at]) + header_bytes, rest, rest_bytes);
    }
};

struct Collected final : spe::RecordSink {
    void consume(const spe::RecordBatch& batch) override {
        EXPECT_TRUE(batch.gaps.empty());
        for (std::size_t i = 0; i < batch.records.size; ++i) records.push_back(batch.records.row(i));
    }
    std::vector<spe::Record> records;
};

std::vector<spe::Record> records_of(const std::filesystem::path& file, capture::perf::PerfData* keep = nullptr) {
    const auto bytes = capture::open_byte_file(file);
    EXPECT_TRUE(bytes.has_value());
    const auto data = capture::perf::read_perf_data(**bytes);
    EXPECT_TRUE(data.has_value());
    Collected all;
    for (const auto& stream : capture::perf::streams(*data)) {
        spe::Decoder decoder(all);
        for (const auto& stretch : stream.stretches) {
            std::vector<std::uint8_t> piece(stretch.bytes);
            EXPECT_TRUE((*bytes)->read_at(stretch.payload, piece).has_value());
            if (!stretch.follows && &stretch != &stream.stretches.front()) decoder.reset();
            decoder.feed(piece);
        }
        decoder.finish();
    }
    if (keep != nullptr) *keep = *data;
    return all.records;
}

class ProfilerTest : public testing::Test {
protected:
    std::unique_ptr<Profiler> make(std::string_view event = "arm_spe/jitter=0,period=256/") {
        ProfilerOptions options;
        options.file = folder_.path() / "perf.data";
        options.command = {"./program"};
        options.machine.cpus = 4;
        EXPECT_TRUE(set_from_event(options.spe, event).has_value());
        auto profiler = Profiler::create(options);
        EXPECT_TRUE(profiler.has_value()) << profiler.error().message;
        return std::move(*profiler);
    }
    [[nodiscard]] std::filesystem::path file() const { return folder_.path() / "perf.data"; }
    TemporaryFolder folder_;
};

constexpr std::uint64_t loop = 0x400000, data = 0x5500001000, from_sample_to_sample = 257;

TEST_F(ProfilerTest, SamplesAreTheOperationsThatTheIntervalChooses) {
    const auto profiler = make();
    Chunks chunks;
    chunks.thread(1, 100);
    chunks.block(1, loop, {nop, ldr, nop, str, back_2});
    profiler->definitions(chunks.definitions);
    std::vector<std::uint32_t> words;
    constexpr std::uint64_t rounds = 2000;
    for (std::uint64_t i = 0; i < rounds; ++i) {
        words.push_back(1);
        Chunks::access(words, 1, data + i * 8);
        Chunks::access(words, 3, data + (1 << 20) + i * 8);
    }
    profiler->execution(1, words);
    ASSERT_TRUE(profiler->finish(true).has_value());
    const Profiled p = profiler->profiled();
    EXPECT_EQ(p.instructions, rounds * 5);
    EXPECT_EQ(p.classes, (std::array<std::uint64_t, 5>{rounds * 2, rounds, rounds, 0, rounds}));
    EXPECT_EQ(p.taken, rounds - 1) << "where the last one went is not known";
    const auto records = records_of(file());
    ASSERT_EQ(records.size(), rounds * 5 / from_sample_to_sample);
    EXPECT_EQ(p.records(), records.size());
    for (std::size_t i = 0; i < records.size(); ++i) {
        const std::uint64_t member = (i + 1) * from_sample_to_sample - 1, index = member % 5;
        EXPECT_EQ(spe::program_address(records[i].pc).address.value, loop + index * 4);
        EXPECT_EQ(records[i].context_el2, 100U);
        if (index == 1) {
            EXPECT_EQ(records[i].data_virtual, data + member / 5 * 8);
        }
        if (index == 3) {
            EXPECT_EQ(records[i].data_virtual, data + (1 << 20) + member / 5 * 8);
        }
        EXPECT_EQ(records[i].has(spe::RecordColumn::data_virtual), index == 1 || index == 3);
        EXPECT_EQ(records[i].has(spe::RecordColumn::data_source), index == 1);
        EXPECT_EQ(records[i].has(spe::RecordColumn::branch_target), index == 4);
        if (index == 4) {
            EXPECT_EQ(spe::program_address(records[i].branch_target).address.value, loop);
        }
    }
}

TEST_F(ProfilerTest, HowChunksAreCutChangesNothing) {
    Chunks chunks;
    chunks.thread(1, 100);
    chunks.block(1, loop, {nop, ldr, nop, str, back_2});
    std::vector<std::uint32_t> words;
    for (std::uint64_t i = 0; i < 3000; ++i) {
        words.push_back(1);
        Chunks::access(words, 1, data + i * 640);
        Chunks::access(words, 3, data + i * 8);
    }
    std::vector<spe::Record> whole;
    for (const std::size_t piece : {words.size(), std::size_t{1000}, std::size_t{5}, std::size_t{1}}) {
        if (piece % 5 != 0 && piece != words.size()) continue;  // an access never has its words in two chunks
        const auto profiler = make();
        profiler->definitions(chunks.definitions);
        const std::span<const std::uint32_t> all(words);
        for (std::size_t at = 0; at < all.size(); at += piece)
            profiler->execution(1, all.subspan(at, std::min(piece, all.size() - at)));
        ASSERT_TRUE(profiler->finish(true).has_value());
        const auto records = records_of(file());
        if (whole.empty()) whole = records;
        EXPECT_EQ(records, whole) << "in pieces of " << piece;
        EXPECT_FALSE(records.empty());
    }
}

TEST_F(ProfilerTest, SamplingDoesNotChangeWhatIsSampled) {
    Chunks chunks;
    chunks.thread(1, 100);
    chunks.block(1, loop, {nop, ldr, nop, str, back_2});
    chunks.block(2, 0x500000, {ldr, ldr, nop});
    std::vector<std::uint32_t> words;
    std::uint64_t random = 1;
    for (std::uint64_t i = 0; i < 5000; ++i) {
        random = random * 6364136223846793005U + 1442695040888963407U;
        const std::uint64_t address = data + (random >> 40) * 8;
        const bool first = (random >> 33 & 1) != 0;
        words.push_back(first ? 1 : 2);
        Chunks::access(words, first ? 1 : 0, address);
        Chunks::access(words, first ? 3 : 1, data + i * 8);
    }
    std::vector<Profiled> all;
    for (const char* event : {"arm_spe/jitter=0,period=256/", "arm_spe/period=512/", "arm_spe/period=1000000/"}) {
        const auto profiler = make(event);
        profiler->definitions(chunks.definitions);
        profiler->execution(1, words);
        ASSERT_TRUE(profiler->finish(true).has_value());
        all.push_back(profiler->profiled());
    }
    EXPECT_GT(all[0].records(), 0U);
    EXPECT_EQ(all[2].records(), 0U);
    for (const Profiled& p : all) {
        EXPECT_EQ(p.cycles, all[0].cycles);
        EXPECT_EQ(p.mispredicted, all[0].mispredicted);
    }
}

TEST_F(ProfilerTest, AnInstructionWithoutItsAccessDidNotComplete) {
    const auto profiler = make();
    Chunks chunks;
    chunks.thread(1, 100);
    chunks.block(1, loop, {nop, ldr, nop, str, back_2});
    chunks.block(2, 0x500000, {nop, svc});
    profiler->definitions(chunks.definitions);
    std::vector<std::uint32_t> words{1};
    Chunks::access(words, 1, data);
    words.insert(words.end(), {2, words::system_call | 93});
    profiler->execution(1, words);
    ASSERT_TRUE(profiler->finish(true).has_value());
    const Profiled p = profiler->profiled();
    EXPECT_EQ(p.instructions, 3U + 2U);
    EXPECT_EQ(p.not_completed, 1U);
    EXPECT_EQ(p.classes[static_cast<std::size_t>(isa::A64Class::store)], 0U);
}

/// A program in which each chosen operation waits for memory, with `barrier` in its loop.
Profiled with_barrier(std::uint32_t barrier, Profiler& profiler) {
    Chunks chunks;
    chunks.thread(1, 100);
    chunks.block(1, loop, {ldr, ldr, barrier, back_2});
    profiler.definitions(chunks.definitions);
    std::vector<std::uint32_t> words;
    constexpr std::uint64_t page = 4096;
    for (std::uint64_t i = 0; i < 5000; ++i) {
        words.push_back(1);
        Chunks::access(words, 0, data + 2 * i * page);
        Chunks::access(words, 1, data + (2 * i + 1) * page);
    }
    profiler.execution(1, words);
    EXPECT_TRUE(profiler.finish(true).has_value());
    return profiler.profiled();
}

// docs/spec/spe.md, 1.7.
TEST_F(ProfilerTest, CountsTheBarriersOfTheProgram) {
    constexpr std::uint32_t psb_csync = 0xd503223f, dsb_sy = 0xd5033f9f;
    const Profiled without = with_barrier(nop, *make());
    EXPECT_EQ(without.barriers, 0U);
    const Profiled with = with_barrier(psb_csync, *make());
    EXPECT_EQ(with.barriers, 5000U);
    EXPECT_EQ(with.instructions, without.instructions);
    EXPECT_EQ(with_barrier(dsb_sy, *make()).barriers, 0U);
}

// A unit tracks one sample. While it is in flight, the next one collides with it, unless a barrier waits for it.
TEST_F(ProfilerTest, ABarrierLetsNoSampleCollide) {
    constexpr std::uint32_t psb_csync = 0xd503223f;
    ProfilerOptions options;
    options.file = file();
    options.command = {"./program"};
    options.spe.period = 256;
    // A core that goes on while many loads wait for memory.
    options.machine.window = 1U << 12;
    const auto profiled = [&](std::uint32_t barrier) {
        auto profiler = Profiler::create(options);
        EXPECT_TRUE(profiler.has_value());
        return with_barrier(barrier, **profiler);
    };
    const auto collided = [](const Profiled& p) { return p.fates[static_cast<std::size_t>(spe::Fate::collided)]; };
    const Profiled without = profiled(nop), with = profiled(psb_csync);
    EXPECT_GT(collided(without), without.chosen / 10);
    EXPECT_EQ(collided(with), 0U);
    EXPECT_EQ(with.records(), with.chosen);
    EXPECT_LT(without.records(), with.records());
    EXPECT_EQ(records_of(file()).size(), with.records());
}

TEST_F(ProfilerTest, ThreadsMeetInTheModel) {
    const auto profiler = make("arm_spe/period=256,load_filter=1/");
    Chunks chunks;
    chunks.thread(1, 100);
    chunks.thread(2, 101);
    std::vector<std::uint32_t> code(16, nop);
    code[0] = ldr;
    code[2] = str;
    chunks.block(1, loop, code);
    profiler->definitions(chunks.definitions);
    for (std::uint32_t i = 0; i < 20; ++i) {
        const std::uint32_t thread = 1 + i % 2;
        std::vector<std::uint32_t> words;
        // Chunks are as full as the plugin makes them: more may follow, so the recorder waits for the thread.
        while (words.size() + 5 <= Chunk::capacity) {
            words.push_back(1);
            Chunks::access(words, 0, data + thread * 8);
            Chunks::access(words, 2, data + thread * 8);
        }
        words.resize(Chunk::capacity, 0);
        profiler->execution(thread, words);
    }
    ASSERT_TRUE(profiler->finish(true).has_value());
    capture::perf::PerfData perf;
    const auto records = records_of(file(), &perf);
    ASSERT_GT(records.size(), 10U);
    std::size_t peers = 0, second = 0;
    for (const spe::Record& record : records) {
        peers += record.data_source == 0x9 ? 1 : 0;
        second += record.context_el2 == 101 ? 1 : 0;
    }
    // A thread runs about a dozen iterations before the other thread's turn.
    EXPECT_GT(peers, records.size() / 40);
    EXPECT_GT(second, records.size() / 3);
    EXPECT_EQ(capture::perf::streams(perf).size(), 2U);
    ASSERT_EQ(perf.tasks.size(), 4U) << "a name, a fork, two ends";
}

TEST_F(ProfilerTest, BuffersAreWrittenOutWhenTheyAreFull) {
    ProfilerOptions options;
    options.file = file();
    options.aux_bytes = 8192;
    options.spe.period = 256;
    auto profiler = Profiler::create(options);
    ASSERT_TRUE(profiler.has_value());
    Chunks chunks;
    chunks.thread(1, 100);
    chunks.block(1, loop, std::vector<std::uint32_t>(256, nop));
    (*profiler)->definitions(chunks.definitions);
    (*profiler)->execution(1, std::vector<std::uint32_t>(2000, 1));
    ASSERT_TRUE((*profiler)->finish(true).has_value());
    capture::perf::PerfData perf;
    const auto records = records_of(file(), &perf);
    EXPECT_EQ((*profiler)->profiled().records(), records.size());
    EXPECT_GT(records.size(), 1300U);
    EXPECT_GT(perf.chunks.size(), 10U);
    EXPECT_EQ(perf.aux.size(), perf.chunks.size());
}

TEST_F(ProfilerTest, AuxtraceInfoTellsTheCore) {
    ProfilerOptions options;
    options.file = file();
    options.machine.cpus = 2;
    for (const unsigned version : {1U, 2U}) {
        options.info_version = version;
        auto profiler = Profiler::create(options);
        ASSERT_TRUE(profiler.has_value());
        ASSERT_TRUE((*profiler)->finish(true).has_value());
        capture::perf::PerfData perf;
        EXPECT_TRUE(records_of(file(), &perf).empty());
        EXPECT_EQ(perf.midr(), 0x413fd0c1U);
        ASSERT_TRUE(perf.auxtrace_info.has_value());
        // docs/spec/spe.md, section 5.3.
        constexpr std::uint64_t magic = 0x1010101010101010;
        const std::vector<std::uint64_t> first{10, 1},
            second{2, 4, 10, 2, magic, 0, 3, 0x413fd0c1, 10, 256, magic, 1, 3, 0x413fd0c1, 10, 256};
        EXPECT_EQ(perf.auxtrace_info->words, version == 1 ? first : second);
    }
}

TEST_F(ProfilerTest, EventsAreReadAsPerfWritesThem) {
    SpeOptions options;
    EXPECT_TRUE(
        set_from_event(options, "arm_spe_0/branch_filter,event_filter=0x80,min_latency=30,jitter=0/u").has_value());
    EXPECT_TRUE(options.branch_filter);
    EXPECT_FALSE(options.jitter);
    EXPECT_EQ(options.event_filter, 0x80U);
    EXPECT_EQ(options.min_latency, 30U);
    EXPECT_EQ(options.config(), 0x1'0000'0001U);
    EXPECT_TRUE(check(options).has_value());
    for (const char* bad : {"arm_spe/", "arm_spe/x/", "arm_spe/min_latency=/", "arm_spe/jitter=2/", "cs_etm//",
                            "arm_spe//k", "arm_spe/min_latency=1x/", ""})
        EXPECT_FALSE(set_from_event(options, bad).has_value()) << bad;
    EXPECT_EQ(options.version(), spe::Version::v1_0);
    const auto version = [](std::string_view event) {
        SpeOptions o;
        EXPECT_TRUE(set_from_event(o, event).has_value()) << event;
        EXPECT_TRUE(check(o).has_value()) << event;
        return o.version();
    };
    EXPECT_EQ(version("arm_spe/event_filter=0x800/"), spe::Version::v1_1);  // misaligned
    EXPECT_EQ(version("arm_spe/event_filter=0x40/"), spe::Version::v1_2);   // not taken
    EXPECT_EQ(version("arm_spe/event_filter=0x4/"), spe::Version::v1_4);    // L1D access
    EXPECT_EQ(version("arm_spe/inv_event_filter=0x80/"), spe::Version::v1_2);
    EXPECT_EQ(version("arm_spe/discard/"), spe::Version::v1_2);
    EXPECT_EQ(version("arm_spe/inv_data_src_filter=1/"), spe::Version::v1_4);
    EXPECT_EQ(version("arm_spe/simd_filter,simd_filter_mask/"), spe::Version::v1_4);
    for (const std::uint64_t none : {1ULL, 1ULL << 16, 1ULL << 40}) {
        SpeOptions o;
        o.event_filter = none;
        EXPECT_FALSE(check(o).has_value()) << none;
        o = {};
        o.inv_event_filter = none;
        EXPECT_FALSE(check(o).has_value()) << none;
    }
    options.event_filter = options.inv_event_filter = 0x80;
    EXPECT_FALSE(check(options).has_value());
    options = {.period = 255};
    EXPECT_FALSE(check(options).has_value());
    options = {.min_latency = 4096};
    EXPECT_FALSE(check(options).has_value());
}

TEST_F(ProfilerTest, FiltersOfLaterVersionsKeepWhatTheySay) {
    const auto recorded = [&](std::string_view event, capture::perf::PerfData* keep = nullptr) {
        const auto profiler = make(event);
        Chunks chunks;
        chunks.thread(1, 100);
        chunks.block(1, loop, {nop, ldr, nop, str, back_2});
        profiler->definitions(chunks.definitions);
        std::vector<std::uint32_t> words;
        for (std::uint64_t i = 0; i < 4000; ++i) {
            words.push_back(1);
            Chunks::access(words, 1, data + i * 64);
            Chunks::access(words, 3, data + (1 << 20) + i % 16 * 8);
        }
        profiler->execution(1, words);
        EXPECT_TRUE(profiler->finish(true).has_value());
        const Profiled p = profiler->profiled();
        EXPECT_GT(p.chosen, 50U) << event;
        return std::pair(records_of(file(), keep), p);
    };
    const auto all = recorded("arm_spe/jitter=0,period=256/").first;
    const auto count = [](const std::vector<spe::Record>& records, std::uint64_t events) {
        return std::count_if(records.begin(), records.end(),
                             [&](const spe::Record& r) { return (r.events & events) == events; });
    };
    const auto refills = count(all, spe::event::l1d_refill);
    ASSERT_GT(refills, 0);
    ASSERT_LT(refills, static_cast<std::ptrdiff_t>(all.size()));

    capture::perf::PerfData perf;
    const auto without = recorded("arm_spe/jitter=0,period=256,inv_event_filter=0x8/", &perf).first;
    EXPECT_EQ(count(without, spe::event::l1d_refill), 0);
    EXPECT_EQ(without.size(), all.size() - static_cast<std::size_t>(refills));
    EXPECT_EQ(perf.attrs.front().config3, 8U);

    const auto only_misses = recorded("arm_spe/jitter=0,period=256,event_filter=0x4/").first;
    EXPECT_EQ(count(only_misses, spe::event::l1d_access), static_cast<std::ptrdiff_t>(only_misses.size()));
    EXPECT_FALSE(only_misses.empty());

    // No loads from memory (source 0xe); loads without a source stay.
    const auto not_from_memory = recorded("arm_spe/jitter=0,period=256,inv_data_src_filter=0x4000/").first;
    const auto from_memory = [](const spe::Record& r) { return r.data_source == 0xe; };
    EXPECT_EQ(std::count_if(not_from_memory.begin(), not_from_memory.end(), from_memory), 0);
    EXPECT_EQ(not_from_memory.size(),
              all.size() - static_cast<std::size_t>(std::count_if(all.begin(), all.end(), from_memory)));

    const auto [nothing, sums] = recorded("arm_spe/jitter=0,period=256,discard/");
    EXPECT_TRUE(nothing.empty());
    EXPECT_EQ(sums.fates[static_cast<std::size_t>(spe::Fate::discarded)], sums.chosen);
}

TEST_F(ProfilerTest, WhatIsNoChunkDoesNoHarm) {
    const auto profiler = make();
    profiler->definitions(std::vector<std::uint32_t>{1, 99999, 3});
    profiler->definitions(std::vector<std::uint32_t>{1, 2, 2, 2, 3, 2, 4, 2, 0, 0});
    profiler->execution(7, std::vector<std::uint32_t>{1, 5, 0x7fffffff, words::access, 0, words::access, words::cut, 0,
                                                      words::thread_end, words::thread_end, 3});
    ASSERT_TRUE(profiler->finish(false).has_value());
    EXPECT_EQ(profiler->profiled().instructions, 0U);
    std::ifstream truth(perf_truth_file(file()));
    std::string first, second;
    std::getline(truth, first);
    std::getline(truth, second);
    EXPECT_EQ(second, "complete no");
}

TEST_F(ProfilerTest, AnyWordsDoNoHarm) {
    std::uint64_t random = 7;
    const auto draw = [&](std::uint32_t most) {
        random = random * 6364136223846793005U + 1442695040888963407U;
        return static_cast<std::uint32_t>(random >> 33) % most;
    };
    for (int round = 0; round < 30; ++round) {
        const auto profiler = make("arm_spe/period=256,pa_enable=1/");
        Chunks chunks;
        chunks.thread(1, 100);
        chunks.block(1, loop, {nop, ldr, nop, str, back_2});
        chunks.block(2, 0x500000, {ldr, svc});
        chunks.block(0x7ffffff0, 0x500000, {nop});
        chunks.block(2, 0x600000, {nop});
        chunks.block(3, 0x600000, {});
        profiler->definitions(chunks.definitions);
        for (int i = 0; i < 20; ++i) {
            std::vector<std::uint32_t> words;
            for (std::uint32_t n = draw(300); n > 0; --n) {
                const std::uint32_t kind = draw(8);
                if (kind < 3)
                    words.push_back(draw(6));
                else if (kind < 6)
                    Chunks::access(words, draw(8), random);
                else
                    words.push_back(draw(0xffffffff) | (kind == 6 ? 0x80000000 : 0));
            }
            profiler->execution(1 + draw(40), words);
            profiler->definitions(words);
        }
        EXPECT_TRUE(profiler->finish(true).has_value());
        EXPECT_EQ(records_of(file()).size(), profiler->profiled().records());
    }
}

}  // namespace
}  // namespace waymark::record
