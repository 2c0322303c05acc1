/// Records from packets: columns, defects, accounting, and that both decoders agree.
#include "waymark/spe/record.h"

#include <gtest/gtest.h>

#include <numeric>

#include "spe/support.h"

namespace waymark::spe {
namespace {

using test::decode;
using test::Decoded;
using test::hex;

constexpr std::uint8_t bit(Defect d) { return static_cast<std::uint8_t>(1U << static_cast<unsigned>(d)); }

Decoded both(Bytes bytes, const std::vector<std::size_t>& cuts = {}, Start start = Start::record) {
    const Decoded slow = decode<ReferenceDecoder>(bytes, cuts, start);
    const Decoded fast = decode<Decoder>(bytes, cuts, start);
    EXPECT_EQ(fast.records, slow.records);
    EXPECT_EQ(fast.gaps, slow.gaps);
    EXPECT_EQ(fast.totals, slow.totals);
    return slow;
}

void expect_accounted(const Decoded& got, std::size_t bytes) {
    const Totals& t = got.totals;
    EXPECT_EQ(t.bytes, bytes);
    EXPECT_EQ(t.record_bytes + t.padding_bytes + t.alignment_bytes + t.lost_bytes, bytes);
    EXPECT_EQ(t.records, got.records.size());
    std::uint64_t at = 0, record_bytes = 0, lost = 0, damaged = 0;
    for (const Record& r : got.records) {
        EXPECT_GE(r.first.value, at);
        at = r.end().value;
        record_bytes += r.bytes;
    }
    for (const RecordGap& g : got.gaps) (g.inside ? damaged : lost) += g.gap.bytes();
    EXPECT_EQ(t.record_bytes, record_bytes);
    EXPECT_EQ(t.lost_bytes, lost);
    EXPECT_GE(damaged, t.damaged_bytes);  // more if the surrounding record was never whole
}

TEST(Record, HoldsEveryColumn) {
    const auto bytes =
        hex("b0 00 10 00 00 00 00 00 80  99 04 00  98 0c 00  9a 01 00  9c 02 00  52 16 00  49 08  b2 28 00 00 00 00 00 "
            "00 b4"
            "b3 e8 09 8a d8 0b 08 00 80  b4 00 20 00 00 00 00 00 80  43 0e  64 01 00 00 00  65 02 00 00 00"
            "71 6c f8 a5 83 00 0c 00 00");
    const Decoded got = both(bytes);
    ASSERT_EQ(got.records.size(), 1U);
    Record want;
    want.bytes = static_cast<std::uint32_t>(bytes.size());
    want.present = 0x7fffU & ~(1U << static_cast<unsigned>(RecordColumn::branch_target));
    want.operation_class = OperationClass::load_store;
    want.operation_type = 8;
    want.pc = 0x8000000000001000;
    want.data_virtual = 0xb400000000000028;
    want.data_physical = 0x8000080bd88a09e8;
    want.previous_target = 0x8000000000002000;
    want.events = 0x16;
    want.timestamp = 13196348225644;
    want.context_el1 = 1;
    want.context_el2 = 2;
    want.issue_latency = 4;
    want.total_latency = 12;
    want.translation_latency = 1;
    want.alternate_issue_latency = 2;
    want.data_source = 14;
    EXPECT_EQ(got.records[0], want);
}

TEST(Record, TellsItsDefects) {
    const std::string pc = "b0 00 10 00 00 00 00 00 80 ";
    const struct {
        std::string bytes;
        unsigned defects;
    } cases[] = {
        {pc + "01", 0},
        {"98 01 00 01", bit(Defect::no_pc)},
        {"01", bit(Defect::no_pc)},
        {pc + "06 01", bit(Defect::damaged)},
        {"06 " + pc + "01", bit(Defect::damaged)},
        {pc + "20 07 01", bit(Defect::damaged)},
        {pc + "40 07 01", bit(Defect::unnamed)},
        {pc + "9f 07 00 01", bit(Defect::unnamed)},
        {pc + "66 07 00 00 00 01", bit(Defect::unnamed)},
        {pc + "4b 07 01", bit(Defect::unnamed)},
        {pc + "98 07 00 98 08 00 01", bit(Defect::repeated)},
        {pc + "4a 01 b2 00 00 00 00 00 00 00 00 01", bit(Defect::inconsistent)},
        {pc + "4a 04 b2 00 00 00 00 00 00 00 00 01", 0},  // a call that touched the guarded control stack
        {pc + "48 00 43 00 01", bit(Defect::inconsistent)},
        {pc + "49 00 b1 00 00 00 00 00 00 00 00 01", bit(Defect::inconsistent)},
        {pc + "48 00 b4 00 00 00 00 00 00 00 00 01", 0},
        {pc + "20 00 01", bit(Defect::aligned)},
    };
    for (const auto& c : cases) {
        SCOPED_TRACE(c.bytes);
        const auto bytes = hex(c.bytes);
        const Decoded got = both(bytes);
        expect_accounted(got, bytes.size());
        ASSERT_EQ(got.records.size(), 1U);
        EXPECT_EQ(got.records[0].defects, c.defects);
        EXPECT_EQ(got.totals.empty, c.bytes == "01" ? 1U : 0U);
    }
    auto bytes = hex(pc);
    bytes.resize(max_record_bytes - 1);
    bytes.push_back(1);
    EXPECT_EQ(both(bytes).records[0].defects, 0U);
    bytes.back() = 0;
    bytes.push_back(1);
    EXPECT_EQ(both(bytes).records[0].defects, bit(Defect::oversized));
}

TEST(Record, EndsWithTheStreamUnfinished) {
    const auto bytes = hex("00 98 01 00 06 01 00 98 02 00 06 71 00");
    const Decoded got = both(bytes);
    expect_accounted(got, bytes.size());
    ASSERT_EQ(got.records.size(), 1U);
    ASSERT_EQ(got.gaps.size(), 3U);
    EXPECT_EQ(got.gaps[0], (RecordGap{0, {{4}, {5}, GapReason::reserved_header}, true}));
    EXPECT_EQ(got.gaps[1], (RecordGap{1, {{10}, {11}, GapReason::reserved_header}, true}));
    EXPECT_EQ(got.gaps[2], (RecordGap{1, {{7}, {13}, GapReason::incomplete_packet}, false}));
    EXPECT_EQ(got.totals.padding_bytes, 2U);
    EXPECT_EQ(got.totals.damaged_bytes, 1U);
}

TEST(Record, StartsAnywhereOnRequest) {
    const auto bytes = hex("00 10 06 98 01 00 01 00 b0 00 10 00 00 00 00 00 80 01");
    const Decoded got = both(bytes, {}, Start::mid_record);
    expect_accounted(got, bytes.size());
    ASSERT_EQ(got.records.size(), 1U);
    EXPECT_EQ(got.records[0].first.value, 8U);
    ASSERT_EQ(got.gaps.size(), 1U);
    EXPECT_EQ(got.gaps[0], (RecordGap{0, {{0}, {7}, GapReason::unsynchronised}, false}));
    const Decoded none = both(Bytes(bytes).first(5), {}, Start::mid_record);
    expect_accounted(none, 5);
    ASSERT_EQ(none.gaps.size(), 1U);
    EXPECT_EQ(none.gaps[0].gap.reason, GapReason::unsynchronised);
}

template <class D>
Decoded with_reset(Bytes before, Bytes after, Start start) {
    Decoded out;
    D decoder(out);
    decoder.feed(before);
    decoder.reset(start);
    decoder.feed(after);
    decoder.finish();
    out.totals = decoder.totals();
    return out;
}

TEST(Reset, LosesTheUnfinishedRecord) {
    const auto before = hex("98 01 00 01 98 02 00"), after = hex("98 03 00 01 98 04 00 01");
    for (const Start start : {Start::record, Start::mid_record}) {
        const Decoded got = with_reset<ReferenceDecoder>(before, after, start);
        const Decoded fast = with_reset<Decoder>(before, after, start);
        EXPECT_EQ(fast.records, got.records);
        EXPECT_EQ(fast.gaps, got.gaps);
        EXPECT_EQ(fast.totals, got.totals);
        expect_accounted(got, before.size() + after.size());
        EXPECT_EQ(got.records.size(), start == Start::record ? 3U : 2U);
        EXPECT_EQ(got.gaps[0], (RecordGap{1, {{4}, {7}, GapReason::framing}, false}));
    }
    const Decoded clean = with_reset<Decoder>(after, after, Start::record);
    ASSERT_EQ(clean.gaps.size(), 1U);
    EXPECT_EQ(clean.gaps[0], (RecordGap{2, {{8}, {8}, GapReason::framing}, false}));
}

TEST(TwoWays, AgreeOnRandomRecords) {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        wire::Random random(seed);
        auto bytes = test::random_records(random, 300);
        const Decoded got = both(bytes);
        EXPECT_EQ(got.records.size(), 300U);
        EXPECT_EQ(got.totals.lost_bytes, 0U);
        expect_accounted(got, bytes.size());
        test::damage(random, bytes, static_cast<unsigned>(seed));
        expect_accounted(both(bytes), bytes.size());
    }
}

TEST(TwoWays, CutsChangeNothing) {
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        wire::Random random(seed);
        auto bytes = test::random_records(random, 60);
        test::damage(random, bytes, static_cast<unsigned>(seed % 10));
        const Start start = seed % 3 == 0 ? Start::mid_record : Start::record;
        const Decoded whole = both(bytes, {}, start);
        for (const unsigned most : {1U, 30U, 700U}) {
            std::vector<std::size_t> cuts;
            for (std::size_t at = random() % (most + 1); at < bytes.size(); at += 1 + random() % most)
                cuts.push_back(at);
            const Decoded cut = both(bytes, cuts, start);
            ASSERT_EQ(cut.records, whole.records);
            ASSERT_EQ(cut.gaps, whole.gaps);
            ASSERT_EQ(cut.totals, whole.totals);
        }
    }
}

TEST(TwoWays, AgreeOnAnyBytes) {
    wire::Random random(5);
    for (unsigned i = 0; i < 300; ++i) {
        std::vector<std::uint8_t> bytes(random() % 3000);
        constexpr std::uint8_t headers[] = {0, 1, 0x71, 0xb0, 0x98, 0x20, 0x22, 0x06, 0x52, 0x49};
        for (auto& byte : bytes)
            byte = random() % 3 == 0 ? headers[random() % 10] : static_cast<std::uint8_t>(random());
        expect_accounted(both(bytes), bytes.size());
    }
}

// Behind the damage, the next terminator restores everything.
TEST(Damage, EndsWithTheRecord) {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        wire::Random random(seed);
        auto bytes = test::random_records(random, 20);
        test::damage(random, bytes, 3);
        // After the damage, the next terminator restores everything.
        const auto filler = hex("01 01 01 01 01 01 01 01 01 01 01 01");
        bytes.insert(bytes.end(), filler.begin(), filler.end());
        const Totals before = decode<ReferenceDecoder>(bytes).totals;
        if (before.alignment_bytes + before.with(Defect::aligned) + before.lost_bytes != 0)
            continue;  // The damaged packet may include a payload and a terminator after it.
        const std::size_t good = bytes.size();
        const auto tail = test::random_records(random, 20);
        bytes.insert(bytes.end(), tail.begin(), tail.end());
        const Decoded got = both(bytes), want = both(tail);
        ASSERT_GE(got.records.size(), 20U);
        for (std::size_t i = 0; i < 20; ++i) {
            Record r = got.records[got.records.size() - 20 + i];
            r.first = r.first - good;
            ASSERT_EQ(r, want.records[i]);
        }
    }
}

// Records and the gaps before, between, inside and after them, in the order of the stream.
TEST(Record, GapsKeepTheirPlaces) {
    RecordColumns columns;
    for (std::uint64_t pc = 0; pc < 3; ++pc) {
        Record r;
        r.pc = pc;
        columns.push(r);
    }
    const auto order = [&](const std::vector<RecordGap>& gaps) {
        std::string out;
        in_order(
            RecordBatch{columns, gaps}, [&](const Record& r) { out += "r" + std::to_string(r.pc) + " "; },
            [&](const RecordGap& g) { out += "g" + std::to_string(g.before) + " "; });
        return out;
    };
    EXPECT_EQ(order({}), "r0 r1 r2 ");
    const auto at = [](std::uint32_t before) { return RecordGap{before, {}, false}; };
    EXPECT_EQ(order({at(1)}), "r0 g1 r1 r2 ");
    EXPECT_EQ(order({at(0), at(0), at(2), at(3)}), "g0 g0 r0 r1 g2 r2 g3 ");
}

TEST(Text, NamesEverything) {
    for (unsigned c = 0; c < column_count; ++c) EXPECT_FALSE(name(static_cast<RecordColumn>(c)).empty());
    for (unsigned d = 0; d < defect_count; ++d) EXPECT_FALSE(name(static_cast<Defect>(d)).empty());
    EXPECT_EQ(events_text(0), "");
    EXPECT_EQ(operation(OperationClass::load_store, 0x68).length_bits(), 2048U);
    EXPECT_EQ(operation(OperationClass::load_store, 0x78).length_bits(), 0U);
    for (unsigned k = 0; k < 4; ++k)
        for (unsigned t = 0; t < 256; ++t)
            EXPECT_FALSE(
                operation_text(operation(static_cast<OperationClass>(k), static_cast<std::uint8_t>(t))).empty());
}

}  // namespace
}  // namespace waymark::spe
