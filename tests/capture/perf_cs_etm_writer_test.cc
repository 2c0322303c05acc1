/// Descriptions of CoreSight units in perf.data, compared with words of files that simpleperf wrote on phones.
#include "waymark/capture/perf_cs_etm_writer.h"

#include <gtest/gtest.h>

#include <vector>

#include "waymark/capture/byte_file.h"
#include "waymark/capture/perf_writer.h"

namespace waymark::capture::perf {
namespace {

RegisterValue value(const char* name, std::uint64_t v) { return {name, v, std::nullopt, 32}; }

/// Registers of perf_etm.data: ETMv4.2.
std::vector<RegisterValue> phone(std::uint64_t idr1, std::uint64_t authstatus) {
    return {value("TRCCONFIGR", 0x41),         value("TRCTRACEIDR", 0x10),
            value("TRCIDR0", 0x28000ea1),      value("TRCIDR1", idr1),
            value("TRCIDR2", 0x20001088),      value("TRCIDR8", 0),
            value("TRCAUTHSTATUS", authstatus)};
}
using Words = std::vector<std::uint64_t>;

Words info(unsigned version, const CsEtmTerms& terms, std::vector<CsEtmUnit> units, std::uint32_t pmu = 8) {
    const auto made = cs_etm_info(version, pmu, false, terms, units);
    EXPECT_TRUE(made) << made.error().message;
    return made ? made->words : Words{};
}

TEST(PerfCsEtmWriter, BlocksOfRealFiles) {
    // simpleperf: perf_etm.data and perf_with_missing_aux_data.data, the first of eight CPUs each.
    const Words etmv4 = info(1, {.context_id = true}, {{0, phone(0x4100f422, 0x8c)}});
    EXPECT_EQ(etmv4, (Words{1, 0x8'0000'0001, 0, 0x4040404040404040, 0, 7, 0x40, 0x10, 0x28000ea1, 0x4100f422,
                            0x20001088, 0, 0x8c}));
    std::vector<RegisterValue> registers = phone(0x4100f423, 0xcc);
    registers.push_back(value("TRCDEVARCH", 0x47724a13));
    const Words ete = info(1, {.context_id = true}, {{0, registers}}, 0x5f);
    EXPECT_EQ(ete, (Words{1, 0x5f'0000'0001, 0, 0x5050505050505050, 0, 8, 0x40, 0x10, 0x28000ea1, 0x4100f423,
                          0x20001088, 0, 0xcc, 0x47724a13}));
}

TEST(PerfCsEtmWriter, Versions) {
    const std::vector<CsEtmUnit> two{{0, phone(1, 0x8c)}, {3, phone(1, 0x8c)}};
    const Words v0 = info(0, {}, two), v1 = info(1, {}, two), v2 = info(2, {}, two);
    EXPECT_EQ(v0.size(), 3U + 2 * 9);
    EXPECT_EQ(v1.size(), 3U + 2 * 10);
    EXPECT_EQ(v2.size(), 3U + 2 * 11);
    EXPECT_EQ(v0[3 + 9 + 1], 3U);
    EXPECT_EQ(v1[3 + 2], 7U);
    EXPECT_EQ(v2[3 + 2], 8U);
    EXPECT_EQ(v2[3 + 10], 1U) << "TS_SOURCE: the virtual counter";
    std::vector<RegisterValue> ete = phone(1, 0xcc);
    ete.push_back(value("TRCDEVARCH", 0x47715a13));
    const std::vector<CsEtmUnit> units{{0, ete}};
    EXPECT_EQ(info(2, {}, units).size(), 3U + 12);
    EXPECT_FALSE(cs_etm_info(0, 8, false, {}, units));
}

TEST(PerfCsEtmWriter, ConfigWordOfPtm) {
    const std::vector<RegisterValue> ptm{value("ETMCR", 0x8000), value("ETMCCER", 0x34c01ac2),
                                         value("ETMIDR", 0x411cf312), value("ETMTRACEIDR", 0x12)};
    const CsEtmTerms terms{.cycle_accurate = true, .return_stack = true};
    EXPECT_EQ(info(1, terms, {{1, ptm}}),
              (Words{1, 0x8'0000'0001, 0, 0x3030303030303030, 1, 4, 0x20001000, 0x12, 0x34c01ac2, 0x411cf312}));
    EXPECT_EQ(info(0, terms, {{1, ptm}}),
              (Words{0, 0x8'0000'0001, 0, 0x3030303030303030, 1, 0x20001000, 0x12, 0x34c01ac2, 0x411cf312}));
    EXPECT_FALSE(cs_etm_info(1, 8, false, terms, std::vector<CsEtmUnit>{{0, {value("ETMCR", 0)}}}));
}

TEST(PerfCsEtmWriter, Terms) {
    const CsEtmTerms all{true, true, true, true, true};
    EXPECT_EQ(all.config(), 0x3000'5100U);
    EXPECT_EQ(all.trcconfigr(), 0x1858U);
    EXPECT_EQ(all.event(), "cs_etm/branch_broadcast,cycacc,contextid,timestamp,retstack/u");
    EXPECT_EQ(CsEtmTerms{}.event(), "cs_etm//u");
    EXPECT_EQ(CsEtmTerms{}.config2(), 0U);
    // The upper half has the identifier of a configuration: any number but 0.
    CsEtmTerms strobed;
    strobed.window = 5000, strobed.period = 10000;
    EXPECT_NE(strobed.config2() >> 32, 0U);
    EXPECT_EQ(strobed.config2() & 0xffffffff, 0U);
    EXPECT_EQ(CsEtmTerms::other_trcconfigr_bits() & all.trcconfigr(), 0U);
}

TEST(PerfWriter, BuildIdsOfFiles) {
    ByteCollector out;
    Attr attr;
    attr.ids = {1};
    PerfWriter writer(out, {attr});
    const std::vector<std::uint8_t> id{1, 2, 3, 4};
    writer.build_ids(std::vector<BuildId>{{nobody, id, "/usr/bin/first"}, {nobody, id, "/usr/bin/second"}});
    writer.finished_round();
    const std::vector<std::uint8_t> header = writer.finish();
    std::vector<std::uint8_t> bytes = out.take();
    std::copy(header.begin(), header.end(), bytes.begin());
    const auto data = read_perf_data(*byte_file_from_memory(std::move(bytes)));
    ASSERT_TRUE(data) << data.error().message;
    ASSERT_EQ(data->build_ids.size(), 2U);
    EXPECT_EQ(data->build_ids[1].file, "/usr/bin/second");
    EXPECT_EQ(data->build_ids[1].id, id);
    EXPECT_EQ(data->build_ids[1].pid, nobody);
    EXPECT_EQ(data->loss_count, 0U);
}

}  // namespace
}  // namespace waymark::capture::perf
