/// Each peculiarity of docs/spec/perf-cs-etm.md, section 8, that the description of a file shows.
#include "../../src/capture/perf_peculiarities.h"

#include <gtest/gtest.h>

#include <string>

namespace waymark::capture::perf {
namespace {

using Weight = Peculiarity::Weight;
constexpr std::uint64_t timestamps = 1U << 11;  // TRCCONFIGR.TS

/// A file that has nothing peculiar.
class PerfPeculiarities : public testing::Test {
protected:
    PerfPeculiarities() {
        data_.indexed = true;
        data_.chunks = {chunk(0, 64), chunk(1, 64)};
        for (const std::uint32_t cpu : {0U, 1U}) {
            data_.aux.push_back({.bytes = 64, .id = {.cpu = cpu}});
            info_.units.push_back({.kind = CsUnit::Kind::etmv4, .cpu = cpu, .trace_id = std::uint8_t(0x10 + 2 * cpu)});
            rings_.rings.push_back({.cpu = cpu, .ranges = {{.parts = {{.bytes = 64, .thread = 7}}}}});
        }
        info_.version = 1;
        info_.pmu_type = 8;
    }
    static Chunk chunk(std::uint32_t cpu, std::uint64_t bytes) { return {.bytes = bytes, .cpu = cpu}; }
    std::vector<Peculiarity> all() { return peculiarities_of({data_, info_, rings_, ids_, in_vmid_, kernel_clock_}); }
    /// `kind: found` of each, with the weight in front unless it is normal.
    std::string found() {
        std::string out;
        for (const Peculiarity& p : all())
            out += (p.weight == Weight::fatal       ? "fatal "
                    : p.weight == Weight::ambiguous ? "ambiguous "
                                                    : "") +
                   p.kind + ": " + p.found + "\n";
        return out;
    }
    std::string means() { return all().empty() ? "" : all().front().means; }
    std::string advice() { return all().empty() ? "" : all().front().advice; }
    void program(std::uint64_t trcconfigr) {
        for (CsUnit& unit : info_.units) unit.registers = {{"TRCCONFIGR", trcconfigr}};
    }

    PerfData data_;
    CsInfo info_;
    CsRings rings_;
    std::map<std::uint32_t, CsHardwareId> ids_;
    std::optional<bool> in_vmid_ = false;
    bool kernel_clock_ = true;
};

TEST_F(PerfPeculiarities, OfAnOrdinaryFile) { EXPECT_EQ(found(), ""); }

TEST_F(PerfPeculiarities, EmptyRangesBesideFramesAreThoseOfASharedSink) {
    data_.aux.push_back({});
    EXPECT_EQ(found(), "shared-sink: 1 of 3 AUX ranges are empty, as where CPUs share a sink\n");
    for (AuxRange& aux : data_.aux) aux.flags = 0x100;  // raw trace of one unit
    EXPECT_EQ(found(), "");
    data_.aux.back() = {.flags = 0x100};
    data_.aux.front().flags = 0;
    EXPECT_EQ(found(), "shared-sink: 1 of 3 AUX ranges are empty, as where CPUs share a sink\n");
}

TEST_F(PerfPeculiarities, WrongMagic) {
    info_.units[1].wrong_magic = true;
    EXPECT_EQ(found(), "ete-magic: 1 of 2 units are called ETE in the file, but are ETMv4 by TRCDEVARCH\n");
}

TEST_F(PerfPeculiarities, IdsOfRecords) {
    ids_ = {{0, {.trace_id = 0x10}}, {1, {.trace_id = 0x12}}};
    EXPECT_EQ(found(), "") << "they repeat the metadata";
    ids_[9] = {.trace_id = 0x70};
    EXPECT_EQ(found(), "") << "a CPU without metadata";
    ids_[1].trace_id = 0x20;
    EXPECT_EQ(
        found(),
        "hardware-ids: trace IDs come from AUX_OUTPUT_HW_ID; for 1 CPU they differ from the IDs in the metadata\n");
    EXPECT_EQ(means(), "the IDs in the metadata do not count, wherever in the file the records come");
    ids_[1] = {.trace_id = 0x12, .sink = 3};
    EXPECT_EQ(found(), "hardware-ids: trace IDs come from AUX_OUTPUT_HW_ID, each for its sink\n");
    EXPECT_TRUE(means().ends_with("one ID may belong to several CPUs in different sinks")) << means();
}

TEST_F(PerfPeculiarities, HowThreadsAreKnown) {
    in_vmid_ = true;
    EXPECT_EQ(found(), "context-in-vmid: threads are known by VMID\n");
    in_vmid_.reset();
    EXPECT_EQ(found(), "no-context-ids: threads are not in the trace: context IDs were not traced\n");
    EXPECT_EQ(means(), "the thread of each AUX range is the thread that its record or SWITCH records name");
    rings_.rings[1].ranges[0].parts[0] = {.bytes = 1000};
    EXPECT_EQ(found(), "ambiguous no-context-ids: threads are not in the trace: context IDs were not traced\n");
    EXPECT_TRUE(means().starts_with("for 1,000 of 1,064 bytes the process that ran is not known")) << means();
    rings_.rings[0].ranges[0].parts[0].thread.reset();
    EXPECT_EQ(means(), "the processes that ran are not known, so no code of a process is found");
    rings_.rings[0].cpu = nobody;
    EXPECT_NE(found(), "") << "one ring of a CPU is left";
    rings_.rings[1].cpu = nobody;
    EXPECT_EQ(found(), "") << "each thread has its ring";
    rings_.rings.clear();
    EXPECT_NE(found(), "");
}

TEST_F(PerfPeculiarities, OfSimpleperf) {
    data_.index_without_count = true;
    EXPECT_EQ(found(), "index-without-count: its AUXTRACE index has no count, which perf does not read\n");
    data_.index_without_count = false;
    data_.chunks[1].packed = true;
    EXPECT_EQ(found(), "compressed-trace: the trace of 1 AUXTRACE record is compressed, which no field of them says\n");
    data_.chunks[1].packed = false;
    data_.split_records = 2;
    EXPECT_EQ(found(), "split-records: 2 records are in SPLIT records of simpleperf\n");
}

TEST_F(PerfPeculiarities, RawTraceBesideFrames) {
    rings_.rings[1].ranges[0].raw = true;
    EXPECT_EQ(found(), "mixed-formats: 1 of 2 AUX ranges are raw trace of one unit, the others CoreSight frames\n");
    EXPECT_EQ(advice(), "look at the flags of AUX records in other tools");
    rings_.rings[0].ranges.push_back({.raw = true});
    EXPECT_EQ(found(), "mixed-formats: 1 of 2 AUX ranges are raw trace of one unit, the others CoreSight frames\n")
        << "a range without bytes";
    rings_.rings[0].ranges[1].parts = {{.bytes = 8, .thread = 7}};
    EXPECT_EQ(
        found(),
        "mixed-formats: 2 of 3 AUX ranges are raw trace of one unit, the others CoreSight frames, even within one "
        "ring\n");
    EXPECT_EQ(advice(), "decode it with Waymark: perf 6.12 refuses two formats in one ring");
    rings_.rings[0].ranges[0].raw = true;
    EXPECT_EQ(found(), "");
}

TEST_F(PerfPeculiarities, Snapshots) {
    info_.snapshot = true;
    EXPECT_EQ(found(), "snapshot: a snapshot: 0 of 2 AUX ranges are marked OVERWRITE\n");
    info_.snapshot = false;
    data_.aux[1].flags = AuxRange::overwrite | AuxRange::truncated;
    data_.aux[0].flags = AuxRange::truncated;
    EXPECT_EQ(found(), "snapshot: a snapshot: 1 of 2 AUX ranges are marked OVERWRITE\n");
}

TEST_F(PerfPeculiarities, AnotherClock) {
    program(timestamps);
    EXPECT_EQ(found(), "");
    kernel_clock_ = false;
    EXPECT_EQ(found(), "other-clock: timestamps may not count the kernel's clock, so they only show the order\n");
    EXPECT_TRUE(means().starts_with("no TS_SOURCE states")) << means();
    info_.units[1].ts_source = 0;
    EXPECT_TRUE(means().starts_with("TS_SOURCE contains another counter")) << means();
    program(timestamps << 1);
    EXPECT_EQ(found(), "");
}

TEST_F(PerfPeculiarities, WhereTheEventAsksForTimestamps) {
    const auto of = [&](std::uint64_t config, std::uint64_t trcconfigr) {
        data_.attrs = {{.type = 7, .config = 0xf0}, {.type = 8, .config = config}};
        program(trcconfigr);
        return found();
    };
    EXPECT_EQ(of(1U << 28, timestamps), "");
    EXPECT_EQ(of(0, 0), "");
    EXPECT_EQ(of(0, timestamps),
              "timestamp-bits: the event's config (0x0) requests no timestamps, but the units were "
              "programmed with them\n");
    EXPECT_EQ(of(1U << 28, 1),
              "timestamp-bits: the event's config (0x10000000) requests timestamps, but the units were "
              "programmed without them\n");
    EXPECT_EQ(of(0x10, timestamps),
              "timestamp-bits: the event requests timestamps in bits 7:4 of its config (0x10), as "
              "Linux 7.0 does\n");
    EXPECT_NE(of(0x80, timestamps).find("in bits 7:4"), std::string::npos);
    // An ETMv3 has no TRCCONFIGR.
    for (CsUnit& unit : info_.units) unit.registers = {{"ETMCR", 0}};
    EXPECT_EQ((data_.attrs[1].config = 1U << 28, found()), "");
    data_.attrs.pop_back();
    EXPECT_EQ(found(), "");
}

TEST_F(PerfPeculiarities, SamplesThatPerfMade) {
    data_.counts[static_cast<std::uint32_t>(Type::sample)] = 1200;
    data_.attrs = {{.type = 8, .sample_type = sample::ip}};
    EXPECT_EQ(found(), "made-samples: 1,200 samples among its records, made from trace as perf inject does\n");
    data_.attrs[0].sample_type |= sample::branch_stack;
    EXPECT_NE(found().find("branch-stacks: its samples have branch stacks\n"), std::string::npos);
}

TEST_F(PerfPeculiarities, WhatNotEveryPerfReads) {
    info_.version = 2;
    EXPECT_EQ(
        found(),
        "not-for-every-perf: AUXTRACE_INFO has version 2, which perf before 6.3 refuses ('failed to process type: "
        "70')\n");
    info_.version = 0;
    EXPECT_EQ(found(), "");
    data_.late_time_conversion = true;
    EXPECT_EQ(found(), "not-for-every-perf: TIME_CONV comes after AUXTRACE_INFO, so perf does not use it\n");
    data_.branch_list = true;
    data_.late_time_conversion = false;
    EXPECT_EQ(found(), "");
    data_.chunks[1].cpu = nobody;
    EXPECT_NE(found().find("AUX records of threads name CPUs"), std::string::npos);
    for (AuxRange& aux : data_.aux) aux.id.cpu = nobody;
    EXPECT_EQ(found(), "");
    data_.indexed = false;
    EXPECT_NE(found().find("there is no AUXTRACE index"), std::string::npos);
    data_.late_time_conversion = true;
    EXPECT_NE(found().find("prints nothing; TIME_CONV comes after"), std::string::npos);
    data_.late_time_conversion = false;
    data_.pipe = true;
    EXPECT_EQ(found(), "");
}

TEST_F(PerfPeculiarities, NoTrace) {
    data_.chunks[0].bytes = 0;
    EXPECT_EQ(found(), "");
    data_.chunks[1].bytes = 1;
    EXPECT_EQ(found(), "");
    data_.chunks[1].bytes = 0;
    EXPECT_EQ(found(),
              "fatal no-trace: the file has no byte of trace: 2 AUX records, and no AUXTRACE record with bytes\n");
    EXPECT_TRUE(advice().starts_with("let the recorder end by itself")) << advice();
    data_.aux.clear();
    EXPECT_EQ(found(),
              "fatal no-trace: the file describes trace units, but has no trace: neither AUX nor AUXTRACE "
              "records with bytes\n");
    EXPECT_TRUE(advice().starts_with("check that the event was cs_etm")) << advice();
    data_.losses = {{}};
    EXPECT_EQ(advice(), "the file is cut or damaged: copy the whole file again");
}

TEST(WithoutCsTrace, IsWhatPerfInjectLeaves) {
    PerfData data;
    data.attrs = {{.type = 3}, {.type = 9}};
    EXPECT_TRUE(without_cs_trace(data).empty());
    data.pmus[9] = "cs_etm";
    ASSERT_EQ(without_cs_trace(data).size(), 1U);
    EXPECT_EQ(without_cs_trace(data)[0].kind, "no-trace");
    EXPECT_EQ(without_cs_trace(data)[0].weight, Weight::fatal);
    data.pmus[9] = "cpu";
    EXPECT_TRUE(without_cs_trace(data).empty());
    data.attrs[0].name = "cs_etm//u";
    EXPECT_EQ(without_cs_trace(data).size(), 1U);
    data.counts[static_cast<std::uint32_t>(Type::sample)] = 3;
    ASSERT_EQ(without_cs_trace(data).size(), 2U);
    EXPECT_EQ(without_cs_trace(data)[0].kind, "made-samples");
    data.chunks = {{}};
    EXPECT_TRUE(without_cs_trace(data).empty()) << "it is damaged";
    data.chunks.clear();
    data.auxtrace_info.emplace();
    EXPECT_TRUE(without_cs_trace(data).empty());
}

}  // namespace
}  // namespace waymark::capture::perf
