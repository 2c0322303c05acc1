/// perf.data: a written file is read, in every form; damage is reported, and the rest is read.
#include "waymark/capture/perf_data.h"

#include <gtest/gtest.h>
#include <zstd.h>

#include <random>

#include "support/perf_file.h"
#include "support/sanitized.h"
#include "waymark/capture/perf_file.h"
#include "waymark/capture/perf_spe.h"
#include "waymark/capture/perf_writer.h"

namespace waymark::capture::perf {
namespace {

using support::PerfBytes;
using support::small_perf_file;

Result<PerfData> read(std::vector<std::uint8_t> bytes) {
    const auto file = byte_file_from_memory(std::move(bytes));
    return read_perf_data(*file);
}

std::vector<std::uint8_t> payload(const std::vector<std::uint8_t>& file, const Chunk& c) {
    const auto from = file.begin() + static_cast<std::ptrdiff_t>(c.payload);
    return {from, from + static_cast<std::ptrdiff_t>(c.bytes)};
}

class EveryForm : public testing::TestWithParam<PerfWriter::Form> {};
INSTANTIATE_TEST_SUITE_P(PerfData, EveryForm, testing::Values(PerfWriter::Form::file, PerfWriter::Form::pipe));

TEST_P(EveryForm, WhatIsWrittenIsRead) {
    const PerfBytes file = small_perf_file(GetParam());
    const auto got = read(file.bytes);
    ASSERT_TRUE(got.has_value()) << got.error().message;
    const PerfData& d = *got;
    EXPECT_EQ(d.pipe, GetParam() == PerfWriter::Form::pipe);
    EXPECT_FALSE(d.unfinished);
    for (const Loss& loss : d.losses) ADD_FAILURE() << loss.first.value << ": " << loss.message;
    ASSERT_EQ(d.attrs.size(), 2U);
    EXPECT_EQ(d.attrs[0].type, 8U);
    EXPECT_EQ(d.attrs[0].config, 0x300010007U);
    EXPECT_EQ(d.attrs[0].ids, (std::vector<std::uint64_t>{100, 101}));
    EXPECT_EQ(d.attrs[0].name, d.pipe ? "" : "arm_spe_0//");
    EXPECT_EQ(d.cpu_id, "0x00000000410fd0c0");
    EXPECT_EQ(d.midr(), 0x410fd0c0U);
    EXPECT_EQ(d.hostname, "box");
    EXPECT_EQ(d.command_line, "perf record -e arm_spe//");
    EXPECT_EQ(d.cpus_online, 2U);
    EXPECT_EQ(d.pmus.at(8), "arm_spe_0");
    ASSERT_TRUE(d.auxtrace_info.has_value());
    EXPECT_EQ(d.auxtrace_info->type, AuxtraceInfo::arm_spe);
    ASSERT_TRUE(d.time_conversion.has_value());
    EXPECT_EQ(d.time_conversion->to_ns(1000001), 40000040U);
    EXPECT_EQ(d.time_conversion->to_ticks(40000040), 1000001U);
    EXPECT_NEAR(d.time_conversion->frequency_hz(), 25e6, 1);
    ASSERT_EQ(d.chunks.size(), 4U);
    for (std::size_t i = 0; i < 4; ++i) {
        const auto bytes = payload(file.bytes, d.chunks[i]);
        ASSERT_GE(bytes.size(), file.traces[i].size());
        EXPECT_TRUE(std::equal(file.traces[i].begin(), file.traces[i].end(), bytes.begin()));
    }
    ASSERT_EQ(d.aux.size(), 3U);
    EXPECT_EQ(d.aux[1].flags, AuxRange::truncated | AuxRange::collision);
    EXPECT_EQ(d.aux[1].id.cpu, 1U);
    EXPECT_EQ(d.aux[1].id.time, 3000U);
    ASSERT_EQ(d.mappings.size(), 4U);
    EXPECT_EQ(d.mappings[0].pid, nobody);
    EXPECT_EQ(d.mappings[0].file, "[kernel.kallsyms]_text");
    EXPECT_EQ(d.mappings[1].build_id.size(), 20U);
    EXPECT_EQ(d.mappings[1].file, "/bin/first");
    EXPECT_EQ(d.mappings[1].file_offset, 0x1000U);
    EXPECT_EQ(d.mappings[2].time, 1500U);
    EXPECT_EQ(d.kernel_symbols.size(), 1U);
    EXPECT_EQ(d.build_ids.size(), 1U);
    EXPECT_EQ(d.build_ids[0].file, "/bin/first");
    EXPECT_EQ(d.lost_records, 7U);
    EXPECT_EQ(d.unknown_ids, 0U);
    EXPECT_EQ(d.count(Type::context_switch_cpu_wide), 2U);
}

TEST(PerfData, StreamsAreJoined) {
    const auto got = read(small_perf_file(PerfWriter::Form::file).bytes);
    ASSERT_TRUE(got.has_value());
    const auto all = streams(*got);
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[0].cpu, 0U);
    ASSERT_EQ(all[0].stretches.size(), 3U);
    EXPECT_FALSE(all[0].stretches[0].follows);
    EXPECT_EQ(all[0].stretches[0].bytes, 69U) << "three bytes of padding do not count";
    EXPECT_TRUE(all[0].stretches[1].follows);
    EXPECT_FALSE(all[0].stretches[2].follows) << "the ring has a hole in front of it";
    EXPECT_TRUE(all[0].overwrite);
    EXPECT_EQ(all[1].cpu, 1U);
    EXPECT_FALSE(all[1].overwrite);
}

TEST(PerfData, WhoRanWhat) {
    const auto got = read(small_perf_file(PerfWriter::Form::file).bytes);
    ASSERT_TRUE(got.has_value());
    Tasks tasks(*got);
    EXPECT_EQ(tasks.thread(10, 0).pid, 10U);
    EXPECT_EQ(tasks.thread(10, 0).name, "first");
    EXPECT_EQ(tasks.thread(11, 1100).pid, 10U) << "a thread of it";
    EXPECT_EQ(tasks.thread(11, 1100).name, "first");
    EXPECT_EQ(tasks.thread(20, 1300).name, "first") << "forked";
    EXPECT_EQ(tasks.thread(20, 1450).name, "second") << "executed something else";
    EXPECT_EQ(tasks.thread(99, 0).pid, nobody);
    const auto file = [&](std::uint32_t pid, std::uint64_t address, std::uint64_t time) -> std::string {
        const Mapping* m = tasks.mapping(pid, {address}, time);
        return m == nullptr ? "" : m->file;
    };
    EXPECT_EQ(file(10, 0x400000, 0), "/bin/first");
    EXPECT_EQ(file(10, 0x400fff, 5000), "/bin/first");
    EXPECT_EQ(file(10, 0x402000, 5000), "");
    EXPECT_EQ(file(20, 0x400000, 1100), "") << "before it was forked";
    EXPECT_EQ(file(20, 0x400000, 1300), "/bin/first");
    EXPECT_EQ(file(20, 0x400000, 1450), "") << "executed, and nothing mapped yet";
    EXPECT_EQ(file(20, 0x400000, 1500), "/bin/second");
    EXPECT_EQ(file(20, 0x400000, 2100), "/lib/third");
    EXPECT_EQ(file(20, 0x400800, 2100), "/bin/second") << "only its front was replaced";
    EXPECT_EQ(file(20, 0x400000, 1300), "/bin/first") << "and back in time";
    EXPECT_EQ(file(nobody, 0xffff800008000000, 0), "[kernel.kallsyms]_text");
    EXPECT_EQ(tasks.running(0, 999).tid, nobody);
    EXPECT_EQ(tasks.running(0, 1000).tid, 10U);
    EXPECT_EQ(tasks.running(0, 2000).tid, 20U);
    EXPECT_EQ(tasks.running(0, 2000).name, "second");
    EXPECT_EQ(tasks.running(1, 5000).tid, 11U);
}

TEST(PerfData, CompressedRecordsAreRead) {
    const PerfBytes plain = small_perf_file(PerfWriter::Form::pipe);
    const PerfData want = *read(plain.bytes);
    for (const Type type : {Type::compressed, Type::compressed2}) {
        const auto bytes = support::compress_records(plain.bytes, type, 700);
        const auto got = read(bytes);
        ASSERT_TRUE(got.has_value()) << got.error().message;
        for (const Loss& loss : got->losses) ADD_FAILURE() << loss.first.value << ": " << loss.message;
        EXPECT_EQ(got->mappings, want.mappings);
        EXPECT_EQ(got->tasks, want.tasks);
        EXPECT_EQ(got->switches, want.switches);
        EXPECT_EQ(got->aux, want.aux);
        EXPECT_EQ(got->chunks.size(), want.chunks.size());
        EXPECT_GT(got->count(type), 3U);
    }
}

TEST(PerfData, DamageInCompressedRecordsIsTold) {
    const PerfBytes plain = small_perf_file(PerfWriter::Form::pipe);
    auto bytes = support::compress_records(plain.bytes, Type::compressed2, 700);
    const std::uint8_t magic[] = {0x28, 0xb5, 0x2f, 0xfd};
    const auto frame = std::search(bytes.begin(), bytes.end(), std::begin(magic), std::end(magic));
    ASSERT_NE(frame, bytes.end());
    *frame = 0;
    const auto got = read(bytes);
    ASSERT_TRUE(got.has_value());
    EXPECT_GT(got->loss_count, 0U);
    EXPECT_EQ(got->chunks.size(), 4U);
}

TEST(PerfData, AFileCutAnywhereIsReadAsFarAsItGoes) {
    const PerfBytes file = small_perf_file(PerfWriter::Form::file);
    const PerfData whole = *read(file.bytes);
    for (std::size_t size = 0; size < file.bytes.size(); ++size) {
        const auto got = read({file.bytes.begin(), file.bytes.begin() + static_cast<std::ptrdiff_t>(size)});
        if (size < 104) {
            ASSERT_FALSE(got.has_value()) << size;
            EXPECT_EQ(got.error().code, Errc::bad_format);
            continue;
        }
        if (!got) {
            EXPECT_EQ(got.error().code, Errc::bad_format) << size;  // its data begin behind the end
            continue;
        }
        EXPECT_GT(got->loss_count, 0U) << size;
        ASSERT_LE(got->chunks.size(), whole.chunks.size()) << size;
        for (std::size_t i = 0; i < got->chunks.size(); ++i) {
            const Chunk& c = got->chunks[i];
            EXPECT_EQ(c.ring, whole.chunks[i].ring);
            EXPECT_LE(c.payload + c.bytes, size);
            EXPECT_EQ(c.bytes + c.missing, whole.chunks[i].bytes);
        }
        EXPECT_TRUE(std::equal(got->mappings.begin(), got->mappings.end(), whole.mappings.begin()));
    }
}

TEST(PerfData, ARecorderThatWasKilledLeavesEnough) {
    PerfBytes file = small_perf_file(PerfWriter::Form::file);
    std::fill_n(file.bytes.begin() + 48, 8, std::uint8_t{0});
    file.bytes.resize(file.data_end);
    const auto got = read(file.bytes);
    ASSERT_TRUE(got.has_value());
    EXPECT_TRUE(got->unfinished);
    EXPECT_EQ(got->loss_count, 0U);
    EXPECT_EQ(got->chunks.size(), 4U);
    EXPECT_EQ(got->cpu_id, "");
}

TEST(PerfData, ABadRecordCostsItselfOnly) {
    const PerfBytes file = small_perf_file(PerfWriter::Form::file);
    const PerfData whole = *read(file.bytes);
    // Each record's header in turn: no type, no size.
    for (const std::uint64_t at : file.records) {
        SCOPED_TRACE(at);
        for (const bool with_index : {true, false}) {
            auto bytes = file.bytes;
            std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), 8, std::uint8_t{0});
            if (!with_index) bytes[72 + 2] = static_cast<std::uint8_t>(bytes[72 + 2] & ~4U);  // feature 18
            const auto got = read(bytes);
            ASSERT_TRUE(got.has_value()) << got.error().message;
            ASSERT_GE(got->losses.size(), 1U);
            EXPECT_EQ(got->losses[0].first.value, at);
            EXPECT_EQ(got->losses[0].message, "no record: type 0, size 0");
            EXPECT_GE(got->chunks.size(), 3U);
            EXPECT_GE(got->mappings.size(), 3U);
            EXPECT_GE(got->tasks.size() + 1, whole.tasks.size());
        }
    }
}

TEST(PerfData, ACutIsOneLoss) {
    const PerfBytes file = small_perf_file(PerfWriter::Form::file);
    for (std::size_t end = file.records.front(); end < file.data_end; ++end) {
        SCOPED_TRACE(end);
        const auto got = read(std::vector(file.bytes.begin(), file.bytes.begin() + static_cast<std::ptrdiff_t>(end)));
        ASSERT_TRUE(got.has_value()) << got.error().message;
        EXPECT_EQ(got->loss_count, 1U);
        ASSERT_EQ(got->losses.size(), 1U);
        EXPECT_EQ(got->losses[0].message.find("the file is cut: "), 0U) << got->losses[0].message;
        EXPECT_EQ(got->losses[0].end.value, end);
        EXPECT_EQ(got->lost_bytes, end - got->losses[0].first.value);
        const std::string_view message = got->losses[0].message;
        if (end + 1 == file.data_end) {
            EXPECT_TRUE(message.starts_with("the file is cut: 1 byte of data is missing (")) << message;
        }
        if (got->lost_bytes == 1) {
            EXPECT_TRUE(message.ends_with("; 1 byte, too few for a record")) << message;
        } else if (got->lost_bytes == 7) {
            EXPECT_TRUE(message.ends_with("; 7 bytes, too few for a record")) << message;
        }
    }
}

TEST(PerfData, ALengthBeyondTheFileIsNotTrusted) {
    const PerfBytes file = small_perf_file(PerfWriter::Form::file);
    for (const std::uint64_t at : file.records) {
        auto bytes = file.bytes;
        if (bytes[at] != 71) continue;
        std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at + 8), 8, std::uint8_t{0xff});
        const auto got = read(bytes);
        ASSERT_TRUE(got.has_value());
        EXPECT_EQ(got->chunks.size(), 4U) << "those behind it are found again";
        EXPECT_EQ(got->loss_count, 1U);
    }
}

TEST(PerfData, AnyDamageEndsWell) {
    std::mt19937_64 random(1);
    for (const auto form : {PerfWriter::Form::file, PerfWriter::Form::pipe}) {
        const auto whole = small_perf_file(form).bytes;
        for (unsigned i = 0; i < sized(1500U, 700U); ++i) {
            auto bytes = whole;
            for (unsigned n = 0; n <= random() % 8; ++n)
                bytes[random() % bytes.size()] = static_cast<std::uint8_t>(random() % 2 == 0 ? random() : 0xff);
            const auto got = read(bytes);
            if (!got) continue;
            for (const Chunk& c : got->chunks) ASSERT_LE(c.payload + c.bytes, bytes.size());
            Tasks tasks(*got);
            for (const Mapping& m : got->mappings) (void)tasks.mapping(m.pid, m.address, m.time);
            for (const Switch& s : got->switches) (void)tasks.running(s.cpu, s.time);
            (void)streams(*got);
        }
    }
}

TEST(PerfData, TheUnitIsThatWhichTheReaderFinds) {
    for (const auto form : {PerfWriter::Form::file, PerfWriter::Form::pipe}) {
        const PerfBytes whole = small_perf_file(form);
        for (const std::uint64_t at : whole.records) {
            if (whole.bytes[at] == 71) break;
            for (unsigned bit = 0; bit < 64; ++bit) {
                SCOPED_TRACE(testing::Message() << at << " bit " << bit);
                auto bytes = whole.bytes;
                bytes[at + bit / 8] = static_cast<std::uint8_t>(bytes[at + bit / 8] ^ 1U << bit % 8);
                const PerfFile file{byte_file_from_memory(std::move(bytes)), {}};
                const auto got = read_perf_data(file);
                const auto type = auxtrace_type(file);
                ASSERT_EQ(type.has_value(), got && got->auxtrace_info);
                if (type) {
                    EXPECT_EQ(*type, got->auxtrace_info->type);
                }
            }
        }
    }
}

TEST(PerfData, WhatIsNoneIsRefused) {
    EXPECT_EQ(read({}).error().code, Errc::bad_format);
    EXPECT_EQ(read(std::vector<std::uint8_t>(200, 0xb0)).error().code, Errc::bad_format);
    // A header that says that it is short, and one that is.
    auto cut = small_perf_file(PerfWriter::Form::file).bytes;
    cut[8] = 50;
    EXPECT_EQ(read(cut).error().code, Errc::bad_format);
    cut[8] = 104;
    cut.resize(60);
    EXPECT_EQ(read(cut).error().code, Errc::bad_format);
    auto swapped = small_perf_file(PerfWriter::Form::file).bytes;
    std::reverse(swapped.begin(), swapped.begin() + 8);
    EXPECT_EQ(read(swapped).error().code, Errc::unsupported);
}

TEST(Tasks, DoNotFollowAncestorsForEver) {
    PerfData data;
    for (std::uint32_t pid = 1; pid < 100; ++pid)
        data.tasks.push_back({TaskEvent::Kind::fork, pid, pid, pid + 1, pid + 1, 5, {}});
    data.tasks.push_back({TaskEvent::Kind::fork, 100, 100, 1, 1, 5, {}});
    Tasks tasks(data);
    EXPECT_EQ(tasks.thread(1, 10).name, "");
    EXPECT_EQ(tasks.mapping(1, {0}, 10), nullptr);
}

TEST(Tasks, OfSwitchesAtOneTimeTheLastOfTheFileCounts) {
    PerfData data;
    for (const std::uint32_t tid : {5U, 6U, 7U})
        data.switches.push_back({.cpu = 0, .pid = tid, .tid = tid, .time = 100});
    data.switches.push_back({.cpu = 0, .pid = 4, .tid = 4, .time = 50});
    const Tasks tasks(data);
    EXPECT_EQ(tasks.running(0, 99).tid, 4U);
    EXPECT_EQ(tasks.running(0, 100).tid, 7U);
}

TEST(Tasks, InheritTheMapsOfAllAncestors) {
    PerfData data;
    Mapping mapped;
    mapped.pid = mapped.tid = 1;
    mapped.address = {0x1000};
    mapped.bytes = 0x1000;
    mapped.protection = 5;
    mapped.file = "/a";
    data.mappings = {mapped};
    for (std::uint32_t pid = 2; pid < 6; ++pid)
        data.tasks.push_back({TaskEvent::Kind::fork, pid, pid, pid - 1, pid - 1, pid, {}});
    Tasks tasks(data);
    for (std::uint32_t pid = 1; pid < 6; ++pid) {
        const Mapping* const found = tasks.mapping(pid, {0x1800}, 10);
        ASSERT_NE(found, nullptr) << pid;
        EXPECT_EQ(found->file, "/a");
    }
}

// docs/spec/spe.md, 5.3.
TEST(SpeInfo, ReadsEachForm) {
    const auto v1 = spe_info({AuxtraceInfo::arm_spe, {8, 1}});
    ASSERT_TRUE(v1.has_value());
    EXPECT_EQ(v1->pmu_type, 8U);
    EXPECT_TRUE(v1->cpus.empty());
    constexpr std::uint64_t magic = 0x1010101010101010;
    const auto v2 = spe_info(
        {AuxtraceInfo::arm_spe,
         {2, 4, 8, 2, magic, 0, 3, 0x410fd0c0, 8, 1024, magic, 1, 5, 0x410fd490, ~std::uint64_t{0}, 256, 0xff, 77}});
    ASSERT_TRUE(v2.has_value()) << v2.error().message;
    EXPECT_EQ(v2->form, SpeInfo::Form::version_2);
    EXPECT_EQ(v2->cpus.at(0), (SpeCpu{0x410fd0c0, 8, 1024, 0}));
    EXPECT_EQ(v2->cpus.at(1), (SpeCpu{0x410fd490, ~std::uint64_t{0}, 256, 0xff}));
    const auto simpleperf =
        spe_info({AuxtraceInfo::arm_spe, {1, std::uint64_t{9} << 32 | 1, 0, magic, 4, 0x410fd4d0, 1, 2048}});
    ASSERT_TRUE(simpleperf.has_value());
    EXPECT_EQ(simpleperf->form, SpeInfo::Form::simpleperf);
    EXPECT_EQ(simpleperf->pmu_type, 9U);
    EXPECT_EQ(simpleperf->cpus.at(4).midr, 0x410fd4d0U);
    const auto simple_two =
        spe_info({AuxtraceInfo::arm_spe,
                  {1, std::uint64_t{9} << 32 | 2, 0, magic, 4, 0x410fd4d0, 1, 2048, magic, 5, 0x410fd490, 0, 4096}});
    ASSERT_TRUE(simple_two.has_value());
    EXPECT_EQ(simple_two->cpus.at(4), (SpeCpu{0x410fd4d0, 9, 2048, 0}));
    EXPECT_EQ(simple_two->cpus.at(5), (SpeCpu{0x410fd490, ~std::uint64_t{0}, 4096, 0}));
    // The number of blocks that the header states, even if another word is different.
    const auto two = spe_info({AuxtraceInfo::arm_spe, {2, 4, 1, 2, magic, 0, 1, 7, magic, 1, 1, 8, magic, 2, 1, 9}});
    ASSERT_TRUE(two.has_value()) << two.error().message;
    EXPECT_EQ(two->pmu_type, 1U);
    ASSERT_EQ(two->cpus.size(), 2U);
    EXPECT_EQ(two->cpus.at(1).midr, 8U);
    EXPECT_EQ(spe_info({AuxtraceInfo::cs_etm, {0, 0}}).error().code, Errc::unsupported);
    EXPECT_EQ(spe_info({AuxtraceInfo::arm_spe, {8}}).error().code, Errc::bad_format);
    EXPECT_EQ(spe_info({AuxtraceInfo::arm_spe, {2, 99, 8, 2}}).error().code, Errc::bad_format);
    EXPECT_EQ(spe_info({AuxtraceInfo::arm_spe, {2, 4, 8, 1, magic, 0, 99, 1}}).error().code, Errc::bad_format);

    PerfData data;
    data.cpu_id = "0x00000000410fd0c0";
    EXPECT_EQ(spe_midr(data, *v1, 3), 0x410fd0c0U);
    EXPECT_EQ(spe_midr(data, *v2, 1), 0x410fd490U);
    EXPECT_EQ(spe_midr(data, *v2, nobody), 0U) << "the CPUs differ";
    EXPECT_EQ(spe_midr(data, *simpleperf, nobody), 0x410fd4d0U);
}

TEST(Time, ShortCountersAreWidened) {
    TimeConversion t{0, 1, 0, 0x1'0000'0000, 0xffffffff, true};
    EXPECT_EQ(t.to_ns(5), 0x1'0000'0005U);
    t.short_counter = false;
    EXPECT_EQ(t.to_ns(5), 5U);
    EXPECT_FALSE(TimeConversion{}.valid());
}

}  // namespace
}  // namespace waymark::capture::perf
