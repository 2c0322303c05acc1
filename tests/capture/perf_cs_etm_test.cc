/// perf.data with CoreSight trace (docs/spec/perf-cs-etm.md): metadata of every version, the thread that bytes belong
/// to, and which file was mapped when.
#include "waymark/capture/perf_cs_etm.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "support/perf_cs_etm_file.h"
#include "waymark/capture/perf_cs_etm_writer.h"

namespace waymark::capture::perf {
namespace {

using support::cs_etm_attrs;
using support::cs_etm_info;
using support::etmv4_block;

std::uint64_t value(const CsUnit& unit, std::string_view name) {
    const Register* r = find_register(unit.registers, name);
    return r == nullptr ? ~std::uint64_t{0} : r->value;
}

// ---- section 1.3

TEST(CsInfo, Version1) {
    const auto info = cs_info(cs_etm_info({etmv4_block(0), etmv4_block(5, 0x8080)}));
    ASSERT_TRUE(info.has_value());
    EXPECT_EQ(info->problems, std::vector<std::string>{});
    EXPECT_EQ(info->pmu_type, 8U);
    ASSERT_EQ(info->units.size(), 2U);
    EXPECT_EQ(info->units[1].cpu, 5U);
    EXPECT_EQ(info->units[1].kind, CsUnit::Kind::etmv4);
    EXPECT_EQ(info->units[1].trace_id, 0x1a);
    EXPECT_EQ(value(info->units[1], "TRCCONFIGR"), 0x8080U);
    EXPECT_EQ(value(info->units[1], "TRCIDR1"), 0x4100f424U);
    EXPECT_EQ(source_type(info->units[1]), "ETM4.2");
    EXPECT_FALSE(info->units[1].ts_source.has_value());
}

TEST(CsInfo, Version0HasNoCounts) {
    const auto info =
        cs_info(cs_etm_info({{0x3030303030303030, 0, 0x10001000, 0x10, 0x2ab90000, 0x411cf312},
                             {0x4040404040404040, 1, 0x40, 0x12, 0x28000ea1, 0x4100f424, 0x20001088, 0, 0xcc}},
                            0));
    ASSERT_TRUE(info.has_value());
    EXPECT_EQ(info->problems, std::vector<std::string>{});
    ASSERT_EQ(info->units.size(), 2U);
    EXPECT_EQ(info->units[0].kind, CsUnit::Kind::ptm);
    EXPECT_EQ(value(info->units[0], "ETMCR"), 0x10001000U);
    EXPECT_EQ(value(info->units[0], "ETMCCER"), 0x2ab90000U);
    EXPECT_EQ(value(info->units[0], "ETMIDR"), 0x411cf312U);
    EXPECT_EQ(source_type(info->units[0]), "PTM1.1");
    EXPECT_EQ(info->units[1].trace_id, 0x12);
    EXPECT_EQ(value(info->units[1], "TRCIDR2"), 0x20001088U);
}

TEST(CsInfo, Version2HasTimestampSourcesAndMore) {
    std::vector<std::uint64_t> etm = etmv4_block(0),
                               ete = {
                                   0x5050505050505050, 1, 10,   0x40,       0x80000012,        0x28000ea1, 0x4100fff3,
                                   0x20001088,         0, 0xcc, 0x47705a13, ~std::uint64_t{0}, 0xdead};
    etm[2] = 8;
    etm.push_back(1);
    const auto info = cs_info(cs_etm_info({etm, ete}, 2));
    ASSERT_TRUE(info.has_value());
    ASSERT_EQ(info->units.size(), 2U);
    EXPECT_EQ(info->units[0].ts_source, 1U);
    EXPECT_EQ(info->units[1].kind, CsUnit::Kind::ete);
    EXPECT_EQ(info->units[1].trace_id, 0x12) << "bits 6:0; bit 31 says that it is not in use";
    EXPECT_EQ(info->units[1].ts_source, ~std::uint64_t{0});
    EXPECT_EQ(value(info->units[1], "TRCDEVARCH"), 0x47705a13U);
}

TEST(CsInfo, TheMagicOfAnEteIsNoEte) {
    const auto info = cs_info(
        cs_etm_info({{0x5050505050505050, 0, 8, 0x40, 0x10, 0x28000ea1, 0x4100f423, 0x20001088, 0, 0xcc, 0x47724a13}}));
    ASSERT_TRUE(info.has_value());
    ASSERT_EQ(info->units.size(), 1U);
    EXPECT_EQ(info->units[0].kind, CsUnit::Kind::etmv4);
    EXPECT_TRUE(info->units[0].wrong_magic);
}

TEST(CsInfo, Etmv3IsRead) {
    const auto info = cs_info(cs_etm_info({{0x3030303030303030, 0, 4, 0, 0x10, 0, 0x410cf250}}));
    ASSERT_TRUE(info.has_value());
    ASSERT_EQ(info->units.size(), 1U);
    EXPECT_EQ(info->units[0].kind, CsUnit::Kind::etmv3);
    EXPECT_EQ(source_type(info->units[0]), "ETM3.5");
}

TEST(CsInfo, WhatContradictsItselfIsLeftOut) {
    AuxtraceInfo info = cs_etm_info({etmv4_block(0), etmv4_block(1)});
    info.words[1] = std::uint64_t{8} << 32 | 0xffffffff;
    auto read = cs_info(info);
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(read->units.size(), 2U);
    ASSERT_EQ(read->problems.size(), 1U);
    EXPECT_NE(read->problems[0].find("unit 3 of 4294967295"), std::string::npos) << read->problems[0];

    info = cs_etm_info({etmv4_block(0), etmv4_block(1)});
    info.words[3 + 2] = std::uint64_t{1} << 60;
    read = cs_info(info);
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(read->units.size(), 0U);
    EXPECT_EQ(read->problems.size(), 1U);

    info.words.resize(2);
    read = cs_info(info);
    ASSERT_FALSE(read.has_value());
    EXPECT_EQ(read.error().code, Errc::bad_format);
    EXPECT_EQ(cs_info({AuxtraceInfo::arm_spe, {1, 2, 3}}).error().code, Errc::unsupported);

    const auto padded = [&] {
        AuxtraceInfo one = cs_etm_info({etmv4_block(0)});
        one.words.resize(one.words.size() + 3);
        return cs_info(one);
    }();
    EXPECT_EQ(padded->problems, std::vector<std::string>{}) << "zeros after the blocks are padding";
}

// ---- section 1.5

TEST(CsHardwareId, Fields) {
    const CsHardwareId id = cs_hardware_id(0x0100'0012'3456'781e);
    EXPECT_EQ(id.trace_id, 0x1e);
    EXPECT_EQ(id.major, 0U);
    EXPECT_EQ(id.minor, 1U);
    EXPECT_EQ(id.sink, 0x12345678U);
    EXPECT_FALSE(cs_hardware_id(0x1e).sink.has_value()) << "of minor version 0 there is none";
}

// ---- section 1.2

TEST(CsStrobing, IsSeenInTheEventAndTheCommand) {
    constexpr std::uint32_t pmu = 8;
    const auto of = [&](std::uint64_t config, std::uint64_t config2, const std::string& name,
                        const std::string& command) {
        PerfData d;
        d.attrs.resize(2);
        d.attrs[1].type = pmu;
        d.attrs[1].config = config;
        d.attrs[1].config2 = config2;
        d.attrs[1].name = name;
        d.command_line = command;
        return strobing_of(d, pmu);
    };
    EXPECT_FALSE(of(0, 0, "cs_etm//u", "perf record -e cs_etm// -- ./autofdo"));
    EXPECT_FALSE(of(1U << 14, 0x1234, "cs_etm/@tmc_etr0/u", "perf record -- cs_etm")) << "the ID of a sink";
    EXPECT_EQ(of(0, std::uint64_t{7} << 32, "", ""), (Strobing{"", 0, 0}));
    EXPECT_EQ(of(0, 0, "", "perf record -e cs_etm/autofdo,contextid/u -- a"), (Strobing{"autofdo", 5000, 10000}));
    EXPECT_EQ(of(0, 0, "cs_etm/autofdo,preset=9/", ""), (Strobing{"autofdo", 5000, 4096}));
    EXPECT_EQ(of(2, 0, "cs_etm/autofdo/", ""), (Strobing{"autofdo", 5000, 4}));
    EXPECT_EQ(of(0, 0, "cs_etm/autofdo,window=500,period=20,contextid/u", ""), (Strobing{"autofdo", 500, 20}));
    EXPECT_EQ(of(0, 0, "cs_etm/mystrobes/", ""), (Strobing{"mystrobes", 0, 0}));
    CsEtmTerms terms;
    EXPECT_EQ(terms.config2(), 0U);
    terms.window = 500;
    terms.period = 20;
    EXPECT_EQ(of(terms.config(), terms.config2(), terms.event(), ""), (Strobing{"autofdo", 500, 20}));
}

// ---- section 1.4

Chunk chunk(std::uint32_t cpu, std::uint64_t ring, std::uint64_t bytes, std::uint64_t payload,
            std::uint32_t tid = nobody) {
    Chunk c;
    c.cpu = cpu;
    c.tid = tid;
    c.ring = ring;
    c.bytes = bytes;
    c.payload = payload;
    return c;
}
AuxRange aux(std::uint32_t cpu, std::uint64_t offset, std::uint64_t bytes, std::uint64_t flags, std::uint64_t time,
             std::uint32_t tid = 1) {
    AuxRange a{offset, bytes, flags, {}};
    a.id.cpu = cpu;
    a.id.tid = tid;
    a.id.time = time;
    return a;
}

TEST(CsRings, RangesLieInChunks) {
    PerfData d;
    d.chunks = {chunk(3, 0, 64, 1000), chunk(3, 64, 64, 2000)};
    d.aux = {aux(3, 0, 32, 0, 10), aux(3, 32, 64, 0x100, 20), aux(3, 96, 0, 0, 25), aux(3, 96, 32, 1, 30)};
    const CsRings rings = cs_rings(d);
    ASSERT_EQ(rings.rings.size(), 1U);
    const auto& ranges = rings.rings[0].ranges;
    ASSERT_EQ(ranges.size(), 4U);
    ASSERT_EQ(ranges[0].parts.size(), 1U);
    EXPECT_EQ(ranges[0].parts[0].offset, 1000U);
    EXPECT_EQ(ranges[0].parts[0].bytes, 32U);
    EXPECT_EQ(ranges[0].parts[0].from, 0U);
    EXPECT_FALSE(ranges[0].raw);
    ASSERT_EQ(ranges[1].parts.size(), 2U) << "it lies in two AUXTRACE records";
    EXPECT_TRUE(ranges[1].raw);
    EXPECT_EQ(ranges[1].parts[0].offset, 1032U);
    EXPECT_EQ(ranges[1].parts[1].offset, 2000U);
    EXPECT_FALSE(ranges[1].parts[0].follows);
    EXPECT_TRUE(ranges[1].parts[1].follows);
    EXPECT_EQ(ranges[1].parts[0].from, 10U);
    EXPECT_EQ(ranges[1].parts[0].to, 19U) << "what came with its record came after it";
    EXPECT_TRUE(ranges[2].parts.empty());
    EXPECT_EQ(ranges[2].missing, 0U);
    EXPECT_TRUE(ranges[3].parts[0].lost);
    EXPECT_EQ(rings.rings[0].uncovered_bytes, 0U);
}

TEST(CsRings, WhatNobodyHasIsMissing) {
    PerfData d;
    d.chunks = {chunk(0, 0, 64, 1000), chunk(0, 128, 64, 2000), chunk(2, 0, 160, 3000)};
    d.aux = {aux(0, 0, 192, 0, 10), aux(1, 0, 77, 0, 10), aux(2, 0, 16, 0, 10)};
    const CsRings rings = cs_rings(d);
    ASSERT_EQ(rings.rings.size(), 2U);
    ASSERT_EQ(rings.rings[0].ranges.size(), 1U);
    EXPECT_EQ(rings.rings[0].ranges[0].missing, 64U);
    ASSERT_EQ(rings.rings[0].ranges[0].parts.size(), 2U);
    EXPECT_FALSE(rings.rings[0].ranges[0].parts[1].follows) << "bytes between them are missing";
    EXPECT_EQ(rings.rings[1].uncovered_bytes, 144U);
    EXPECT_EQ(rings.unplaced_ranges, 1U);
    EXPECT_EQ(rings.unplaced_bytes, 77U);
    EXPECT_EQ(rings.unplaced_cpus, std::vector<std::uint32_t>{1});
}

TEST(CsRings, TraceIsMissingBetweenRanges) {
    PerfData d;
    d.chunks = {chunk(0, 0, 256, 1000), chunk(0, 320, 64, 2000)};
    constexpr std::uint64_t truncated = AuxRange::truncated, collision = AuxRange::collision;
    d.aux = {aux(0, 0, 16, 0, 10),           aux(0, 16, 16, 0, 20),  aux(0, 32, 0, 0, 30),
             aux(0, 32, 16, 0, 40),          aux(0, 64, 16, 0, 50),  aux(0, 80, 16, collision, 60),
             aux(0, 96, 16, 0, 70),          aux(0, 112, 16, 0, 80), aux(0, 128, 0, truncated, 90),
             aux(0, 128, 16, 0, 100),        aux(0, 144, 0, 0, 110), aux(0, 144, 256, 0, 120),
             aux(0, 384, 16, truncated, 130)};
    const CsRings rings = cs_rings(d);
    std::string text;
    for (const CsRange& range : rings.rings[0].ranges) {
        for (const BufferPart& part : range.parts)
            text += fmt::format("{}{}{} ", part.offset, part.follows ? "f" : "", part.lost ? "-" : "");
        if (range.parts.empty()) text += "none ";
    }
    EXPECT_EQ(text,
              "1000 1016 none 1032 "  // one after another, with an empty one between
              "1064- "                // no AUX record for 16 bytes of the ring
              "1080- 1096- 1112 "     // the collision may have lost bytes before and after it
              "none 1128- "           // an empty record may have lost bytes, too
              "none 1144 2000- "      // bytes inside the range are not in the file
              "none ");
}

TEST(CsRings, ASnapshotEndsAtTheOffset) {
    PerfData d;
    d.chunks = {chunk(0, 1000, 100, 5000)};
    d.aux = {aux(0, 1100, 5000, AuxRange::overwrite, 10)};
    const CsRings rings = cs_rings(d);
    ASSERT_EQ(rings.rings[0].ranges.size(), 1U);
    const CsRange& range = rings.rings[0].ranges[0];
    ASSERT_EQ(range.parts.size(), 1U);
    EXPECT_EQ(range.parts[0].offset, 5008U) << "frames stand where multiples of 16 of the ring are";
    EXPECT_EQ(range.parts[0].bytes, 92U);
    EXPECT_EQ(range.missing, 0U) << "a ring holds what it holds";
    EXPECT_TRUE(rings.rings[0].wrapped);
    EXPECT_EQ(rings.rings[0].overwritten, 1008U);
}

TEST(CsRings, ASnapshotThatHoldsAllOfItsRingDidNotWrap) {
    PerfData d;
    d.chunks = {chunk(0, 0, 4096, 5000)};
    d.aux = {aux(0, 100, 100, AuxRange::overwrite, 10), aux(0, 4080, 3980, AuxRange::overwrite, 20)};
    EXPECT_FALSE(cs_rings(d).rings[0].wrapped);
    // An ETR that fills the ring may have wrapped, which no flag of a snapshot says.
    d.aux = {aux(0, 4096, 4096, AuxRange::overwrite, 10)};
    EXPECT_TRUE(cs_rings(d).rings[0].wrapped);
    EXPECT_EQ(cs_rings(d).rings[0].overwritten, 0U);
    d.aux[0].flags |= cs_etm_raw;
    EXPECT_FALSE(cs_rings(d).rings[0].wrapped);
}

TEST(CsRings, BytesAreDecodedOnce) {
    PerfData d;
    d.chunks = {chunk(0, 0, 64, 1000), chunk(0, 32, 64, 2000)};
    d.aux = {aux(0, 0, 64, 0, 10), aux(0, 32, 64, 0, 20), aux(0, 0, 96, 0, 30)};
    const CsRings rings = cs_rings(d);
    const auto& ranges = rings.rings[0].ranges;
    EXPECT_EQ(ranges[0].again, 0U);
    ASSERT_EQ(ranges[1].parts.size(), 1U);
    EXPECT_EQ(ranges[1].parts[0].bytes, 32U);
    EXPECT_EQ(ranges[1].parts[0].offset, 2032U);
    EXPECT_EQ(ranges[1].again, 32U);
    EXPECT_TRUE(ranges[2].parts.empty());
    EXPECT_EQ(ranges[2].again, 96U);
}

TEST(CsRings, AThreadHasItsRing) {
    PerfData d;
    d.chunks = {chunk(nobody, 0, 64, 1000, 50), chunk(nobody, 0, 64, 2000, 51)};
    d.aux = {aux(nobody, 0, 64, 0, 10, 51), aux(7, 0, 64, 0x100, 10, 50)};
    const CsRings rings = cs_rings(d);
    ASSERT_EQ(rings.rings.size(), 2U);
    EXPECT_EQ(rings.rings[0].tid, 50U);
    ASSERT_EQ(rings.rings[0].ranges.size(), 1U) << "perf 6.3 gives the real CPU";
    EXPECT_EQ(rings.rings[0].ranges[0].cpu, 7U);
    EXPECT_EQ(rings.rings[0].ranges[0].parts[0].thread, 50U);
    EXPECT_FALSE(rings.rings[1].ranges[0].cpu.has_value());
    EXPECT_EQ(rings.rings[1].ranges[0].parts[0].offset, 2000U);
}

TEST(CsRings, WithoutAuxAThreadKeepsItsRing) {
    PerfData d;
    d.chunks = {chunk(nobody, 0, 64, 1000, 50), chunk(3, 0, 32, 2000, 51), chunk(nobody, 64, 32, 3000, 50)};
    const CsRings rings = cs_rings(d);
    ASSERT_EQ(rings.rings.size(), 2U);
    EXPECT_EQ(rings.rings[0].ranges[0].parts[0].thread, 50U);
    EXPECT_EQ(rings.rings[0].chunk_bytes, 96U);
    EXPECT_EQ(rings.rings[1].ranges[0].parts[0].thread, std::nullopt);
    EXPECT_EQ(rings.rings[1].chunk_bytes, 32U);
}

TEST(CsRings, WithoutAuxEachChunkIsARange) {
    PerfData d;
    d.chunks = {chunk(0, 0, 64, 1000), chunk(0, 64, 64, 2000), chunk(0, 256, 64, 3000)};
    const CsRings rings = cs_rings(d);
    EXPECT_TRUE(rings.without_aux);
    ASSERT_EQ(rings.rings[0].ranges.size(), 2U);
    EXPECT_EQ(rings.rings[0].ranges[0].parts.size(), 2U);
    EXPECT_TRUE(rings.rings[0].ranges[0].parts[1].follows);
}

TEST(CsRings, SizesOf2To60) {
    constexpr std::uint64_t huge = std::uint64_t{1} << 60;
    PerfData d;
    d.chunks = {chunk(0, ~std::uint64_t{0} - 10, 64, 1000), chunk(0, 0, 64, 2000)};
    d.aux = {aux(0, huge, ~std::uint64_t{0}, 0, 10), aux(0, ~std::uint64_t{0}, huge, AuxRange::overwrite, 5),
             aux(0, 0, huge, 0, 3), aux(1, 0, ~std::uint64_t{0}, 0, 3), aux(1, 0, ~std::uint64_t{0}, 0, 3)};
    const CsRings rings = cs_rings(d);
    std::uint64_t bytes = 0;
    for (const CsRing& ring : rings.rings)
        for (const CsRange& range : ring.ranges)
            for (const BufferPart& part : range.parts) {
                EXPECT_GE(part.offset, 1000U);
                EXPECT_LE(part.offset + part.bytes, 2064U);
                EXPECT_LE(part.from, part.to);
                bytes += part.bytes;
            }
    EXPECT_LE(bytes, 128U);
    EXPECT_EQ(rings.unplaced_bytes, ~std::uint64_t{0}) << "the sum stays at the largest number";
}

// ---- section 1.7

Mapping mapping(std::uint32_t pid, std::uint64_t address, std::uint64_t bytes, const char* file, std::uint64_t time,
                std::uint64_t offset = 0) {
    Mapping m;
    m.pid = m.tid = pid;
    m.address = {address};
    m.bytes = bytes;
    m.file_offset = offset;
    m.protection = 5;
    m.time = time;
    m.file = file;
    return m;
}
TaskEvent event(TaskEvent::Kind kind, std::uint32_t pid, std::uint32_t parent, std::uint64_t time) {
    return {kind, pid, pid, parent, parent, time, "task"};
}

class Spaces : public testing::Test {
protected:
    void make(PerfData data, std::optional<bool> context_in_vmid = false) {
        spaces = address_spaces(std::make_shared<const PerfData>(std::move(data)), context_in_vmid, false, modules);
    }
    /// The file and the offset in it, as `file+0x10`.
    std::string at(std::uint32_t thread, std::uint64_t address, std::uint64_t from, std::uint64_t to) {
        const auto key = spaces->key(thread, from, to);
        if (!key) return "unknown thread";
        for (const MappedExtent& e : spaces->extents(*key)) {
            if (address < e.first || address > e.last) continue;
            if (e.module == no_module) return "no module of " + spaces->names()[e.name].file;
            const Module& m = modules.modules[e.module];
            const std::uint64_t place = address - e.shift;
            EXPECT_TRUE(m.holds({place}));
            return m.file + "+" + std::to_string(place - m.address.value + m.offset);
        }
        return "";
    }
    ModuleMap modules;
    std::shared_ptr<const AddressSpaces> spaces;
};

TEST_F(Spaces, OneFileAtTwoAddressesHasOnePlace) {
    PerfData d;
    d.mappings = {mapping(1, 0x10000, 0x1000, "/a", 1), mapping(2, 0x10000, 0x1000, "/b", 1),
                  mapping(2, 0x50000, 0x1000, "/a", 2)};
    d.tasks = {event(TaskEvent::Kind::comm, 1, nobody, 0), event(TaskEvent::Kind::comm, 2, nobody, 0)};
    make(std::move(d));
    ASSERT_EQ(modules.modules.size(), 2U);
    EXPECT_EQ(modules.modules[0].address.value, 0x10000U);
    EXPECT_NE(modules.modules[1].address.value, 0x10000U) << "that is taken";
    EXPECT_EQ(at(1, 0x10010, 0, 10), "/a+16");
    EXPECT_EQ(at(2, 0x10010, 0, 10), "/b+16");
    EXPECT_EQ(at(2, 0x50010, 0, 10), "/a+16");
    EXPECT_EQ(at(1, 0x50010, 0, 10), "");
    EXPECT_EQ(at(3, 0x50010, 0, 10), "unknown thread");
}

TEST_F(Spaces, SegmentsOfAFileKeepTheirDistances) {
    PerfData d;
    d.mappings = {mapping(1, 0x10000, 0x1000, "/a", 1), mapping(2, 0x10000, 0x1000, "/b", 1),
                  mapping(2, 0x23000, 0x1000, "/b", 1, 0x2000)};
    d.tasks = {event(TaskEvent::Kind::comm, 1, nobody, 0), event(TaskEvent::Kind::comm, 2, nobody, 0)};
    make(std::move(d));
    ASSERT_EQ(modules.modules.size(), 3U);
    EXPECT_EQ(modules.modules[2].address.value - modules.modules[1].address.value, 0x13000U);
}

TEST_F(Spaces, AFileOfWhichMoreIsMappedLaterIsLargerWhereThereIsRoom) {
    PerfData d;
    d.mappings = {mapping(1, 0x10000, 0x1000, "/a", 1), mapping(2, 0x50000, 0x3000, "/a", 1),
                  mapping(1, 0x20000, 0x1000, "/b", 1), mapping(1, 0x21000, 0x1000, "/c", 1),
                  mapping(2, 0x60000, 0x3000, "/b", 1)};
    for (const std::uint32_t pid : {1U, 2U}) d.tasks.push_back(event(TaskEvent::Kind::comm, pid, nobody, 0));
    make(std::move(d));
    ASSERT_EQ(modules.modules.size(), 4U);
    EXPECT_EQ(modules.modules[0].bytes, 0x3000U);
    EXPECT_EQ(at(2, 0x52010, 0, 10), "/a+" + std::to_string(0x2010));
    EXPECT_EQ(at(1, 0x10010, 0, 10), "/a+16");
    // What is behind /b is taken, so its larger mapping is another module.
    EXPECT_EQ(modules.modules[1].bytes, 0x1000U);
    EXPECT_EQ(modules.modules[3].file, "/b");
    EXPECT_EQ(modules.modules[3].bytes, 0x3000U);
    EXPECT_EQ(at(2, 0x62010, 0, 10), "/b+" + std::to_string(0x2010));
}

TEST_F(Spaces, MapsAreThoseOfTheTime) {
    PerfData d;
    d.mappings = {mapping(1, 0x10000, 0x1000, "/old", 100), mapping(1, 0x10000, 0x1000, "/new", 200)};
    d.tasks = {event(TaskEvent::Kind::comm, 1, nobody, 0)};
    make(std::move(d));
    EXPECT_EQ(at(1, 0x10000, 100, 150), "/old+0");
    EXPECT_EQ(at(1, 0x10000, 200, 250), "/new+0") << "not the end of the session";
    EXPECT_EQ(at(1, 0x10000, 120, 250), "/new+0") << "the end of the range";
    EXPECT_EQ(at(1, 0x10000, 0, 50), "");
}

TEST_F(Spaces, ForkCopiesAndExecReplaces) {
    PerfData d;
    d.mappings = {mapping(1, 0x10000, 0x1000, "/parent", 10), mapping(1, 0x30000, 0x1000, "/later", 60),
                  mapping(2, 0x20000, 0x1000, "/child", 80)};
    d.tasks = {event(TaskEvent::Kind::comm, 1, nobody, 0), event(TaskEvent::Kind::fork, 2, 1, 50),
               event(TaskEvent::Kind::exec, 2, nobody, 70)};
    make(std::move(d));
    EXPECT_EQ(at(2, 0x10000, 55, 60), "/parent+0");
    EXPECT_EQ(at(2, 0x30000, 62, 65), "") << "mapped by the parent after the fork";
    EXPECT_EQ(at(2, 0x10000, 90, 95), "") << "gone with exec";
    EXPECT_EQ(at(2, 0x20000, 90, 95), "/child+0");
    // In a range that began before exec, both ran.
    EXPECT_EQ(at(2, 0x10000, 55, 95), "/parent+0");
    EXPECT_EQ(at(2, 0x20000, 55, 95), "/child+0");
}

TEST_F(Spaces, AReusedNumberIsAnotherProcess) {
    PerfData d;
    d.mappings = {mapping(1, 0x10000, 0x1000, "/one", 10), mapping(7, 0x40000, 0x1000, "/two", 20),
                  mapping(7, 0x70000, 0x1000, "/first", 25)};
    d.tasks = {event(TaskEvent::Kind::comm, 1, nobody, 0), event(TaskEvent::Kind::comm, 7, nobody, 0),
               event(TaskEvent::Kind::exit, 7, 1, 30), event(TaskEvent::Kind::fork, 7, 1, 40)};
    make(std::move(d));
    EXPECT_EQ(at(7, 0x40000, 25, 35), "/two+0") << "after its exit too: trace of it may come later";
    EXPECT_EQ(at(7, 0x40000, 45, 50), "");
    EXPECT_EQ(at(7, 0x10000, 45, 50), "/one+0");
}

TEST_F(Spaces, ClocksThatRunBackwards) {
    PerfData d;
    d.mappings = {mapping(1, 0x10000, 0x1000, "/a", 100), mapping(1, 0x10000, 0x1000, "/b", 50)};
    d.tasks = {event(TaskEvent::Kind::comm, 1, nobody, 0), event(TaskEvent::Kind::fork, 1, 1, 10),
               event(TaskEvent::Kind::fork, 2, 3, 10), event(TaskEvent::Kind::fork, 3, 2, 10)};
    make(std::move(d));
    EXPECT_EQ(at(1, 0x10000, 60, 20), "/b+0") << "a time that ends before it begins";
    EXPECT_EQ(at(2, 0x10000, 0, 200), "") << "each other's child";
}

TEST_F(Spaces, TheKernelIsInAll) {
    PerfData d;
    d.mappings = {mapping(nobody, 0xffff800008000000, 0x100000, "[kernel.kallsyms]_text", 0, 0xffff800008000000),
                  mapping(1, 0x10000, 0x1000, "/a", 100), mapping(1, 0x30000, 0x1000, "//anon", 100)};
    d.mappings[0].data = false;
    d.tasks = {event(TaskEvent::Kind::comm, 1, nobody, 0)};
    make(std::move(d));
    EXPECT_EQ(at(1, 0xffff800008000010, 100, 150), "[kernel.kallsyms]_text+" + std::to_string(0xffff800008000010));
    EXPECT_EQ(at(77, 0xffff800008000010, 100, 150), "[kernel.kallsyms]_text+" + std::to_string(0xffff800008000010));
    EXPECT_EQ(at(1, 0x30000, 100, 150), "no module of //anon");
}

TEST_F(Spaces, WhereTheThreadIs) {
    PerfData d;
    make(d, true);
    EXPECT_EQ(spaces->thread_of(5, 6), 6U);
    make(d, false);
    EXPECT_EQ(spaces->thread_of(5, 6), 5U);
    make(d, std::nullopt);
    EXPECT_EQ(spaces->thread_of(5, 6), std::nullopt);
}

TEST_F(Spaces, AThreadHasItsNameAndThatOfItsProcess) {
    PerfData d;
    d.tasks = {event(TaskEvent::Kind::comm, 10, nobody, 0), event(TaskEvent::Kind::comm, 10, nobody, 20)};
    d.tasks[0].name = "first";
    d.tasks[1].tid = 11;
    d.tasks[1].name = "worker";
    make(std::move(d));
    const auto worker = spaces->task(11, 30);
    EXPECT_EQ(worker.process, 10U);
    EXPECT_EQ(worker.name, "worker");
    EXPECT_EQ(worker.process_name, "first");
    EXPECT_EQ(spaces->task(10, 30).name, "first");
    EXPECT_EQ(spaces->task(10, 30).process_name, "first");
    EXPECT_EQ(spaces->task(12, 30).process, std::nullopt);
}

TEST_F(Spaces, AFileMappedAgainOverItselfIsOneExtent) {
    PerfData d;
    d.mappings = {mapping(1, 0x10000, 0x3000, "/a", 1), mapping(1, 0x11000, 0x1000, "/a", 2, 0x1000)};
    d.tasks = {event(TaskEvent::Kind::comm, 1, nobody, 0)};
    make(std::move(d));
    EXPECT_EQ(at(1, 0x10010, 5, 10), "/a+16");
    EXPECT_EQ(at(1, 0x11010, 5, 10), "/a+4112");
    EXPECT_EQ(at(1, 0x12fff, 5, 10), "/a+12287");
    EXPECT_EQ(at(1, 0x13000, 5, 10), "");
}

// ---- files

Result<Capture> capture_of(std::vector<std::uint8_t> bytes, void (*change)(PerfData&) = nullptr) {
    const std::shared_ptr<const ByteFile> file = byte_file_from_memory(std::move(bytes));
    WM_ASSIGN_OR_RETURN(auto data, read_perf_data(*file));
    if (change != nullptr) change(data);
    return cs_etm_capture("perf.data", file, std::move(data));
}

struct File {
    ByteCollector bytes;
    PerfWriter w{bytes, cs_etm_attrs()};
    void trace(std::uint32_t cpu, std::uint64_t ring, std::vector<std::uint8_t> contents) {
        Chunk c;
        c.cpu = cpu;
        c.ring = ring;
        w.auxtrace(c, contents);
    }
    [[nodiscard]] std::vector<std::uint8_t> done() {
        const auto head = w.finish();
        std::vector<std::uint8_t> out = bytes.take();
        std::copy(head.begin(), head.end(), out.begin());
        return out;
    }
};

TEST(CsCapture, IdsOfTheKernelReplaceThoseOfTheMetadata) {
    File f;
    f.w.auxtrace_info(cs_etm_info({etmv4_block(0), etmv4_block(1)}));
    f.w.aux({0, 16, 0, {}}, {1, 1, 0, 100, 1});
    f.trace(0, 0, std::vector<std::uint8_t>(16));
    // The record follows the trace that it describes.
    f.w.hardware_id(0x33, {1, 1, 1, 200, 1});
    const auto capture = capture_of(f.done());
    ASSERT_TRUE(capture.has_value()) << capture.error().message;
    // The kernel gave the unit of CPU 0 no ID, so the unit sent nothing.
    ASSERT_EQ(capture->sources.size(), 1U);
    EXPECT_EQ(capture->sources[0].name, "cpu1");
    ASSERT_EQ(capture->cores.size(), 1U);
    EXPECT_EQ(capture->cores[0].name, capture->sources[0].core);
    EXPECT_EQ(capture->cores[0].type, "ARM-AA64");
    EXPECT_EQ(capture->sources[0].core_type, "ARM-AA64");
    EXPECT_EQ(capture->sources[0].type, "ETM4.2");
    EXPECT_NE(capture->description.find("the unit of CPU 0 wrote no trace"), std::string::npos);
    ASSERT_NE(capture->sources[0].find_register("TRCTRACEIDR"), nullptr);
    EXPECT_EQ(capture->sources[0].find_register("TRCTRACEIDR")->value, 0x33U);
    ASSERT_EQ(capture->buffers.size(), 1U);
    EXPECT_EQ(capture->buffers[0].name, "aux_cpu0");
    EXPECT_EQ(capture->buffers[0].sources, std::vector<std::string>{"cpu1"});
}

// IDs are 0x01 to 0x6f (CoreSight architecture, trace bus IDs).
TEST(CsCapture, TheGreatestIdIsOne) {
    File f;
    f.w.auxtrace_info(cs_etm_info({etmv4_block(0)}));
    f.w.hardware_id(0x6f, {1, 1, 0, 50, 1});
    f.w.aux({0, 16, 0, {}}, {1, 1, 0, 100, 1});
    f.trace(0, 0, std::vector<std::uint8_t>(16));
    const auto capture = capture_of(f.done());
    ASSERT_TRUE(capture.has_value()) << capture.error().message;
    EXPECT_TRUE(capture->problems.empty());
    ASSERT_EQ(capture->sources.size(), 1U);
    EXPECT_EQ(capture->sources[0].find_register("TRCTRACEIDR")->value, 0x6fU);
}

TEST(CsCapture, CoresOfEtmv3RunArmv7) {
    File f;
    f.w.auxtrace_info(cs_etm_info({{0x3030303030303030, 0, 4, 0, 0x10, 0, 0x410cf250}}));
    f.w.aux({0, 16, 0, {}}, {1, 1, 0, 100, 1});
    f.trace(0, 0, std::vector<std::uint8_t>(16));
    const auto capture = capture_of(f.done());
    ASSERT_TRUE(capture.has_value()) << capture.error().message;
    ASSERT_EQ(capture->cores.size(), 1U);
    EXPECT_EQ(capture->cores[0].type, "ARMv7-A");
}

TEST(CsCapture, IdsHoldForASink) {
    File f;
    f.w.auxtrace_info(cs_etm_info({etmv4_block(0), etmv4_block(1)}));
    const std::uint64_t minor_1 = std::uint64_t{1} << 56;
    f.w.hardware_id(minor_1 | 0xaaaa << 8 | 0x11, {1, 1, 0, 50, 1});
    f.w.hardware_id(minor_1 | 0xbbbb << 8 | 0x11, {1, 1, 1, 50, 1});
    for (std::uint32_t cpu = 0; cpu < 2; ++cpu) {
        f.w.aux({0, 16, 0, {}}, {1, 1, cpu, 100, 1});
        f.trace(cpu, 0, std::vector<std::uint8_t>(16));
    }
    const auto capture = capture_of(f.done());
    ASSERT_TRUE(capture.has_value());
    ASSERT_EQ(capture->buffers.size(), 2U);
    EXPECT_EQ(capture->buffers[0].sources, std::vector<std::string>{"cpu0"});
    EXPECT_EQ(capture->buffers[1].sources, std::vector<std::string>{"cpu1"});
    EXPECT_TRUE(capture->problems.empty());
}

TEST(CsCapture, RawAndFormattedInOneRing) {
    File f;
    f.w.auxtrace_info(cs_etm_info({etmv4_block(0)}));
    f.w.aux({0, 16, 0, {}}, {1, 1, 0, 100, 1});
    f.w.aux({16, 24, 0x100, {}}, {1, 1, 0, 200, 1});
    f.trace(0, 0, std::vector<std::uint8_t>(40));
    const auto capture = capture_of(f.done());
    ASSERT_TRUE(capture.has_value());
    ASSERT_EQ(capture->buffers.size(), 2U);
    EXPECT_EQ(capture->buffers[0].format, Buffer::Format::coresight);
    EXPECT_EQ(capture->buffers[1].format, Buffer::Format::source_data);
    EXPECT_EQ(capture->buffers[1].name, "aux_cpu0_raw");
    ASSERT_EQ(capture->buffers[1].parts.size(), 1U);
    EXPECT_EQ(capture->buffers[1].parts[0].bytes, 24U);
    EXPECT_EQ(capture->buffers[1].sources, std::vector<std::string>{"cpu0"});
}

std::string kinds_of(const Capture& capture) {
    std::string out;
    for (const Peculiarity& p : capture.peculiarities) out += p.kind + ": " + p.found + "\n";
    return out;
}

// Each kind of trace of a ring is one buffer, however often the kinds change.
TEST(CsCapture, KindsOfTraceThatAlternate) {
    File f;
    f.w.auxtrace_info(cs_etm_info({etmv4_block(0)}));
    f.w.aux({0, 16, 0, {}}, {1, 1, 0, 100, 1});
    f.w.aux({16, 24, 0x100, {}}, {1, 1, 0, 200, 1});
    f.w.aux({40, 32, 0, {}}, {1, 1, 0, 300, 1});
    f.trace(0, 0, std::vector<std::uint8_t>(72));
    const auto capture = capture_of(f.done());
    ASSERT_TRUE(capture.has_value());
    ASSERT_EQ(capture->buffers.size(), 2U);
    ASSERT_EQ(capture->buffers[0].parts.size(), 2U);
    EXPECT_EQ(capture->buffers[0].parts[1].bytes, 32U);
    EXPECT_EQ(capture->buffers[1].parts.size(), 1U);
    EXPECT_NE(
        kinds_of(*capture).find("mixed-formats: 1 of 3 AUX ranges are raw trace of one unit, the others CoreSight "
                                "frames, even within one ring"),
        std::string::npos)
        << kinds_of(*capture);
}

TEST(CsCapture, KindsOfTraceInSeveralRings) {
    File f;
    f.w.auxtrace_info(cs_etm_info({etmv4_block(0), etmv4_block(1)}));
    for (std::uint32_t cpu = 0; cpu < 2; ++cpu) {
        f.w.aux({0, 16, cpu == 0 ? 0U : 0x100U, {}}, {1, 1, cpu, 100, 1});
        f.trace(cpu, 0, std::vector<std::uint8_t>(16));
    }
    const auto capture = capture_of(f.done());
    ASSERT_TRUE(capture.has_value());
    EXPECT_NE(kinds_of(*capture).find("the others CoreSight frames\n"), std::string::npos) << kinds_of(*capture);
}

TEST(CsCapture, TraceOutsideTheRangesAndRangesWithoutTraceAreSaid) {
    const auto said = [](std::uint64_t range, std::size_t bytes) {
        File f;
        f.w.auxtrace_info(cs_etm_info({etmv4_block(0)}));
        f.w.aux({0, range, 0, {}}, {1, 1, 0, 100, 1});
        f.trace(0, 0, std::vector<std::uint8_t>(bytes));
        const auto capture = capture_of(f.done());
        EXPECT_TRUE(capture.has_value());
        EXPECT_EQ(capture->problems.size(), 1U);
        return capture->problems.empty() ? std::string() : capture->problems[0].message;
    };
    EXPECT_TRUE(said(16, 24).starts_with("8 bytes of the trace of CPU 0 are outside the ranges of all AUX records; "))
        << said(16, 24);
    EXPECT_TRUE(said(17, 16).starts_with("1 AUX range of CPU 0 lack 1 byte of their trace: ")) << said(17, 16);
}

TEST(CsCapture, WhyAuxRecordsAreMissing) {
    const auto said = [](bool damaged) {
        File f;
        f.w.auxtrace_info(cs_etm_info({etmv4_block(0)}));
        // The end of a record in parts that has none: damage of no byte.
        if (damaged) f.w.record(Type::simpleperf_split_end, 0, {});
        f.trace(0, 0, std::vector<std::uint8_t>(16));
        const auto capture = capture_of(f.done());
        EXPECT_TRUE(capture.has_value());
        std::string out;
        for (const Problem& p : capture->problems) out += p.message + "\n";
        return out;
    };
    EXPECT_NE(said(false).find("; they were lost, or the file was filtered. "), std::string::npos) << said(false);
    EXPECT_NE(said(true).find("; they are in the missing or damaged part. "), std::string::npos) << said(true);
}

TEST(CsCapture, SaysWhatTheRecorderLeftOut) {
    File f;
    f.w.auxtrace_info(cs_etm_info({etmv4_block(0)}));
    f.w.aux({0, 16, 0, {}}, {1, 1, 0, 100, 1});
    f.trace(0, 0, std::vector<std::uint8_t>(16));
    const std::vector<std::uint8_t> bytes = f.done();
    const auto problem = [&](void (*change)(PerfData&)) {
        const auto capture = capture_of(bytes, change);
        EXPECT_TRUE(capture.has_value());
        return capture->problems.size() == 1 ? capture->problems[0].message : std::string();
    };
    EXPECT_EQ(problem([](PerfData&) {}), "");
    EXPECT_TRUE(problem([](PerfData& d) { d.unfinished = true; }).starts_with("the file was not finished: "));
    EXPECT_TRUE(problem([](PerfData& d) { d.branch_list = true; }).starts_with("the file has lists of branches, "));
}

TEST(CsCapture, SaysHowThreadsAreIdentified) {
    const auto described = [](std::uint64_t configuration) {
        File f;
        f.w.auxtrace_info(cs_etm_info({etmv4_block(0, configuration)}));
        f.w.aux({0, 16, 0, {}}, {1, 1, 0, 100, 1});
        f.trace(0, 0, std::vector<std::uint8_t>(16));
        return capture_of(f.done())->description;
    };
    EXPECT_NE(described(0).find("; the trace does not identify threads"), std::string::npos) << described(0);
    EXPECT_NE(described(0x40).find("; threads are identified by context ID"), std::string::npos) << described(0x40);
    EXPECT_NE(described(0x8080).find("; threads are identified by VMID"), std::string::npos) << described(0x8080);
}

TEST(CsCapture, NamesTheRecorder) {
    File f;
    f.w.auxtrace_info(cs_etm_info({etmv4_block(0)}));
    f.w.aux({0, 16, 0, {}}, {1, 1, 0, 100, 1});
    f.trace(0, 0, std::vector<std::uint8_t>(16));
    const std::vector<std::uint8_t> bytes = f.done();
    const auto perf = capture_of(bytes, [](PerfData& d) {
        d.version = "6.1";
        d.index_without_count = true;
    });
    EXPECT_TRUE(perf->description.starts_with("recorded by perf 6.1")) << perf->description;
    const auto simpleperf = capture_of(bytes, [](PerfData& d) {
        d.version = "6.1";
        d.simpleperf = true;
    });
    EXPECT_TRUE(simpleperf->description.starts_with("recorded by simpleperf")) << simpleperf->description;
    EXPECT_EQ(simpleperf->description.find("6.1"), std::string::npos) << simpleperf->description;
}

TEST(CsCapture, CpusWithoutAnIdAreNamed) {
    File f;
    std::vector<std::vector<std::uint64_t>> blocks;
    for (std::uint32_t cpu = 0; cpu < 128; ++cpu) blocks.push_back(etmv4_block(cpu));
    f.w.auxtrace_info(cs_etm_info(blocks));
    const auto capture = capture_of(f.done());
    ASSERT_TRUE(capture.has_value());
    EXPECT_EQ(capture->sources.size(), 128U);
    // 0x10 + 2 * 48 = 0x70 is the first that no unit can have; with bits 6:0 alone, IDs from CPU 56 on would belong to
    // other CPUs.
    ASSERT_EQ(capture->problems.size(), 1U);
    EXPECT_NE(capture->problems[0].message.find("CPUs 48 to 127"), std::string::npos) << capture->problems[0].message;
}

TEST(CsCapture, WhatIsLostIsSaid) {
    File f;
    f.w.auxtrace_info(cs_etm_info({etmv4_block(0)}));
    f.w.aux({0, 64, AuxRange::truncated, {}}, {1, 1, 0, 100, 1});
    f.w.aux({64, 64, AuxRange::collision | 0x100, {}}, {1, 1, 0, 200, 1});
    f.w.aux({0, 5000, 0, {}}, {1, 1, 1, 200, 1});
    f.trace(0, 0, std::vector<std::uint8_t>(96));
    f.w.lost(1, 5, {1, 1, 0, 300, 1});
    const auto capture = capture_of(f.done());
    ASSERT_TRUE(capture.has_value());
    std::string all;
    for (const Problem& p : capture->problems) {
        all += p.message + '\n';
        EXPECT_EQ(p.kind, Problem::Kind::part);
    }
    for (const char* said :
         {"1 of 3 AUX ranges are marked TRUNCATED", "1 of 3 AUX ranges are marked COLLISION",
          "1 AUX range of CPU 0 lack 32 bytes", "1 AUX range with 5000 bytes of trace of CPU 1 has no AUXTRACE",
          "5 records of the kernel were lost"})
        EXPECT_NE(all.find(said), std::string::npos) << said << " in\n" << all;
}

// ---- section 3.1

TEST(Simpleperf, AnIndexWithoutCount) {
    File f;
    f.w.auxtrace_info(cs_etm_info({etmv4_block(0)}));
    f.w.aux({0, 16, 0, {}}, {1, 1, 0, 100, 1});
    f.trace(0, 0, std::vector<std::uint8_t>(16));
    const std::vector<std::uint8_t> with = f.done();
    auto data = read_perf_data(*byte_file_from_memory(with));
    ASSERT_TRUE(data.has_value());
    EXPECT_FALSE(data->index_without_count);
    // The index is the last section: its number of entries is removed, and its length in the table.
    std::vector<std::uint8_t> without = with;
    without.erase(without.end() - 24, without.end() - 16);
    std::uint64_t data_at = 0, data_bytes = 0;
    std::memcpy(&data_at, with.data() + 40, 8);
    std::memcpy(&data_bytes, with.data() + 48, 8);
    const std::uint64_t sixteen = 16;
    std::memcpy(without.data() + data_at + data_bytes + 8, &sixteen, 8);
    data = read_perf_data(*byte_file_from_memory(without));
    ASSERT_TRUE(data.has_value());
    EXPECT_TRUE(data->index_without_count);
    EXPECT_EQ(data->loss_count, 0U);
    EXPECT_EQ(data->chunks.size(), 1U);
}

TEST(Simpleperf, SplitRecordsAndSizesOf32Bits) {
    File f;
    f.w.auxtrace_info(cs_etm_info({etmv4_block(0)}));
    // A COMM record in two parts; in each part, the low half of the size stands where other records have the whole
    // size.
    std::vector<std::uint8_t> comm(24);
    const std::uint32_t fields[] = {3, 24U << 16, 9, 9};
    std::memcpy(comm.data(), fields, sizeof fields);
    std::memcpy(comm.data() + 16, "split", 5);
    f.w.record(Type::simpleperf_split, 0, Bytes(comm).first(10));
    f.w.record(Type::simpleperf_split, 0, Bytes(comm).subspan(10));
    f.w.record(Type::simpleperf_split_end, 0, {});
    // More than 16 bits: the high half comes first.
    const std::vector<std::uint8_t> large(70000);
    std::vector<std::uint8_t> bytes = f.bytes.bytes();
    const std::uint32_t type = 32771, size = 70008;
    std::vector<std::uint8_t> record(8 + large.size());
    const std::uint16_t halves[] = {static_cast<std::uint16_t>(size >> 16), static_cast<std::uint16_t>(size)};
    std::memcpy(record.data(), &type, 4);
    std::memcpy(record.data() + 4, halves, 4);
    bytes.insert(bytes.end(), record.begin(), record.end());
    const std::uint8_t round[] = {68, 0, 0, 0, 0, 0, 8, 0};
    bytes.insert(bytes.end(), round, round + 8);
    // Not finished: the data go up to the end of the file.
    std::uint64_t data_bytes = 0;
    const auto head = f.w.finish(false);
    std::copy(head.begin(), head.end(), bytes.begin());
    std::memcpy(bytes.data() + 48, &data_bytes, 8);
    const auto data = read_perf_data(*byte_file_from_memory(bytes));
    ASSERT_TRUE(data.has_value());
    for (const Loss& loss : data->losses) ADD_FAILURE() << loss.message;
    ASSERT_EQ(data->tasks.size(), 1U);
    EXPECT_EQ(data->tasks[0].name, "split");
    EXPECT_EQ(data->count(Type::simpleperf_symbol), 1U);
    EXPECT_EQ(data->count(Type::finished_round), 1U);
}

}  // namespace
}  // namespace waymark::capture::perf
