/// Bytes of real units, undamaged and damaged, with the results that docs/spec/spe.md, 7.1, gives.
#include <gtest/gtest.h>

#include <set>

#include "spe/support.h"
#include "support/corpus.h"

namespace waymark::spe {
namespace {

using test::decode;
using test::Decoded;

Decoded corpus(const std::string& file) {
    const auto bytes = support::read_file(support::corpus_path("spe/" + file));
    const Decoded slow = decode<ReferenceDecoder>(bytes);
    const Decoded fast = decode<Decoder>(bytes);
    EXPECT_EQ(fast.records, slow.records);
    EXPECT_EQ(fast.gaps, slow.gaps);
    EXPECT_EQ(fast.totals, slow.totals);
    EXPECT_EQ(slow.totals.bytes, bytes.size());
    EXPECT_EQ(
        slow.totals.record_bytes + slow.totals.padding_bytes + slow.totals.alignment_bytes + slow.totals.lost_bytes,
        bytes.size());
    // The same, cut everywhere.
    for (std::size_t cut = 0; cut <= bytes.size(); cut += 7) {
        const Decoded again = decode<Decoder>(bytes, {cut});
        EXPECT_EQ(again.records, slow.records);
        EXPECT_EQ(again.totals, slow.totals);
    }
    return fast;
}

std::string place(std::uint64_t payload) {
    const ProgramAddress a = program_address(payload);
    return std::to_string(a.exception_level) + (a.security == Security::non_secure ? " NS " : " ? ") +
           std::to_string(a.address.value);
}
std::string place(unsigned el, std::uint64_t address) { return std::to_string(el) + " NS " + std::to_string(address); }
std::string what(const Record& r) { return operation_text(operation(r.operation_class, r.operation_type)); }

TEST(Corpus, QuipperTwoRecords) {
    WM_NEEDS_CORPUS("spe");
    const Decoded got = corpus("quipper-two-records.bin");
    ASSERT_EQ(got.records.size(), 2U);
    EXPECT_TRUE(got.gaps.empty());
    const Record& a = got.records[0];
    EXPECT_EQ(a.pc & 0x00ff'ffff'ffff'ffff, 0xFFBA66EDA1C2D0U);
    EXPECT_EQ(place(a.pc), place(2, 0xFFFFBA66EDA1C2D0));
    EXPECT_EQ(a.context_el2, 0x5F80U);
    EXPECT_EQ(what(a), "load general");
    EXPECT_EQ(events_text(a.events), "retired:l1d_access:tlb_access");
    EXPECT_EQ(a.issue_latency, 4);
    EXPECT_EQ(a.total_latency, 12);
    EXPECT_EQ(a.translation_latency, 1);
    EXPECT_EQ(a.data_virtual, 0xFF0E3703096B28U);
    EXPECT_TRUE(a.has(RecordColumn::data_source));
    EXPECT_EQ(a.data_source, 0);
    EXPECT_EQ(a.timestamp, 44731163950U);
    EXPECT_EQ(a.end().value, 64U);
    const Record& b = got.records[1];
    EXPECT_EQ(b.pc & 0x00ff'ffff'ffff'ffff, 0xFFBA66EDEFB0E0U);
    EXPECT_EQ(b.context_el2, 0xEU);
    EXPECT_EQ(what(b), "branch conditional");
    EXPECT_EQ(events_text(b.events), "retired:not_taken");
    EXPECT_EQ(b.issue_latency, 16);
    EXPECT_EQ(b.total_latency, 17);
    EXPECT_EQ(b.branch_target, b.pc + 4);
    EXPECT_EQ(b.timestamp, 44731164045U);
    EXPECT_EQ(b.end().value, 128U);
}

TEST(Corpus, WindowsBranches) {
    WM_NEEDS_CORPUS("spe");
    const Decoded end = corpus("wperf-branch-end.bin"), ts = corpus("wperf-branch-ts.bin");
    ASSERT_EQ(end.records.size(), 1U);
    ASSERT_EQ(ts.records.size(), 1U);
    const Record& e = end.records[0];
    EXPECT_EQ(place(e.pc), place(0, 0x7FFDBF2143E0));
    EXPECT_EQ(what(e), "branch conditional");
    EXPECT_EQ(events_text(e.events), "retired");
    EXPECT_EQ(e.issue_latency, 39);
    EXPECT_EQ(e.total_latency, 40);
    EXPECT_EQ(place(e.branch_target), place(0, 0x7FFDBF214408));
    EXPECT_FALSE(e.has(RecordColumn::timestamp));
    EXPECT_EQ(e.end().value, 64U) << "the END stands at offset 63";
    const Record& t = ts.records[0];
    EXPECT_EQ(t.issue_latency, 41);
    EXPECT_EQ(t.total_latency, 42);
    EXPECT_EQ(t.timestamp, 3913207673451U);
    EXPECT_EQ(t.defects | e.defects, 0);
}

TEST(Corpus, HiperfUnitA) {
    WM_NEEDS_CORPUS("spe");
    const Decoded got = corpus("hiperf-unit-a.bin");
    ASSERT_EQ(got.records.size(), 4U);
    EXPECT_TRUE(got.gaps.empty());
    const auto& r = got.records;
    for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(r[i].end().value, 48 * (i + 1));
        EXPECT_EQ(r[i].defects, 0);
    }
    EXPECT_EQ(place(r[0].pc), place(1, 0xffffffc08420e068));
    EXPECT_EQ(what(r[0]), "load general");
    EXPECT_EQ(r[0].total_latency, 8);
    EXPECT_EQ(r[0].issue_latency, 6);
    EXPECT_EQ(r[0].data_virtual & 0xff'ffff'ffff, 0xe5aead80b0U);
    EXPECT_EQ(r[0].timestamp, 0x162104AD5F946U);
    EXPECT_EQ(place(r[1].pc), place(0, 0x59F2B9270C));
    EXPECT_EQ(what(r[1]), "store general");
    EXPECT_EQ(r[1].total_latency, 10);
    EXPECT_EQ(r[1].issue_latency, 7);
    EXPECT_EQ(r[1].data_virtual, 0x5A812B7360U);
    EXPECT_EQ(r[1].events, 0x12U);
    EXPECT_EQ(place(r[2].pc), place(0, 0x59F4F95468));
    EXPECT_EQ(what(r[2]), "branch conditional");
    EXPECT_EQ(r[2].events, 0x42U);
    EXPECT_EQ(r[2].branch_target, r[2].pc + 4);
    EXPECT_EQ(what(r[3]), "branch indirect");
    EXPECT_EQ(r[3].events, 0x2U);
}

TEST(Corpus, HiperfDump1IsDamagedInTwoPlaces) {
    WM_NEEDS_CORPUS("spe");
    const Decoded got = corpus("hiperf-dump-1.bin");
    ASSERT_EQ(got.records.size(), 29U);
    for (std::size_t i = 0; i < 29; ++i) {
        const Record& r = got.records[i];
        EXPECT_EQ(r.end().value, 56 * (i + 1)) << i + 1;
        EXPECT_EQ(r.has(Defect::damaged), i + 1 == 14 || i + 1 == 22) << i + 1;
        EXPECT_EQ(r.has(Defect::inconsistent), i + 1 == 14 || i + 1 == 24) << i + 1;
        const bool back_in_time = i + 1 == 1 || i + 1 == 4 || i + 1 == 13;
        EXPECT_EQ(r.timestamp >> 40 & 0xff, back_in_time ? 0x80U : 0x08U) << i + 1;
    }
    EXPECT_EQ(got.totals.with(Defect::damaged), 2U);
    EXPECT_EQ(got.totals.damaged_bytes, 2U);
    EXPECT_EQ(got.totals.lost_bytes, 0U);
    ASSERT_EQ(got.gaps.size(), 2U);
    EXPECT_EQ(got.gaps[0], (RecordGap{13, {{738}, {739}, GapReason::reserved_header}, true}));
    EXPECT_EQ(got.gaps[1], (RecordGap{21, {{1192}, {1193}, GapReason::reserved_header}, true}));
    EXPECT_FALSE(got.records[13].has(RecordColumn::issue_latency));
    EXPECT_FALSE(got.records[21].has(RecordColumn::events));
    EXPECT_EQ(place(got.records[27].pc), place(1, 0x800AD02D70));
}

TEST(Corpus, HiperfDump2HidesItsDamage) {
    WM_NEEDS_CORPUS("spe");
    const auto bytes = support::read_file(support::corpus_path("spe/hiperf-dump-2.bin"));
    const test::Collected packets = test::collect(bytes);
    EXPECT_TRUE(
        packets.text().starts_with("0+3 PADDING bytes=3\n3+9 TIMESTAMP timestamp=0x8906d285a32\n"
                                   "12+1 PADDING bytes=1\n13+3 UNKNOWN packet=0x90:0xa70\n"
                                   "16+5 UNKNOWN packet=0x6b:0x8000005a\n21+3 COUNTER index=1 cycles=2\n"))
        << packets.text();
    const Decoded got = corpus("hiperf-dump-2.bin");
    ASSERT_EQ(got.records.size(), 2U);
    EXPECT_EQ(got.totals.empty, 1U);
    EXPECT_EQ(got.records[0].end().value, 12U);
    EXPECT_EQ(got.totals.with(Defect::no_pc), 2U);
    const Record& r = got.records[1];
    EXPECT_EQ(r.first.value, 13U);
    EXPECT_EQ(r.end().value, 68U);
    EXPECT_EQ(r.timestamp, 0x8906D286221U);
    EXPECT_TRUE(r.has(Defect::no_pc));
    EXPECT_TRUE(r.has(Defect::unnamed));
    EXPECT_EQ(place(r.branch_target), place(0, 0x5A6B0A710C));
    EXPECT_EQ(got.totals.padding_bytes, 3U + 1U + 44U);
    EXPECT_TRUE(got.gaps.empty());
}

TEST(Corpus, TelemetryFrameStaysOpen) {
    WM_NEEDS_CORPUS("spe");
    const Decoded got = corpus("telemetry-frame-pa-ds.bin");
    ASSERT_EQ(got.records.size(), 1U);
    EXPECT_EQ(got.totals.empty, 1U);
    EXPECT_EQ(got.records[0].end().value, 9U);
    ASSERT_EQ(got.gaps.size(), 1U);
    EXPECT_EQ(got.gaps[0].gap, (Gap{{9}, {52}, GapReason::incomplete_packet}));
    auto bytes = support::read_file(support::corpus_path("spe/telemetry-frame-pa-ds.bin"));
    bytes.push_back(1);
    const Decoded ended = decode<Decoder>(bytes);
    ASSERT_EQ(ended.records.size(), 2U);
    const Record& r = ended.records[1];
    EXPECT_EQ(what(r), "load general");
    EXPECT_EQ(physical_address(r.data_physical).address.value, 0x8032c955a43U);
    EXPECT_TRUE(r.has(RecordColumn::data_source));
}

TEST(Corpus, KvmGuestIsCut) {
    WM_NEEDS_CORPUS("spe");
    const Decoded got = corpus("kvm-guest-partial.bin");
    ASSERT_EQ(got.records.size(), 2U);
    EXPECT_EQ(got.records[0].end().value, 44U);
    EXPECT_EQ(got.records[1].end().value, 76U);
    EXPECT_EQ(got.records[0].defects | got.records[1].defects, 0);
    ASSERT_EQ(got.gaps.size(), 1U);
    EXPECT_EQ(got.gaps[0].gap, (Gap{{76}, {94}, GapReason::incomplete_packet}));
    EXPECT_EQ(place(got.records[0].pc), place(1, 0xffff80001029d3f4));
}

}  // namespace
}  // namespace waymark::spe
