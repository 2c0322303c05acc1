#include "waymark/etm4/state.h"

#include <gtest/gtest.h>

#include "etm4/support.h"

namespace waymark::etm4 {
namespace {

AddressHistory history_at(std::uint64_t address, bool is1 = false) {
    AddressHistory history;
    history.reset();
    history.push({{address}, is1});
    return history;
}

TEST(Etm4Addresses, TraceInfoMakesThreeZeros) {
    AddressHistory history = history_at(0x1000);
    history.reset();
    for (unsigned i = 0; i < 3; ++i) EXPECT_EQ(history.entry(i), KnownAddress{});
    // So a short address directly after it is completely known.
    EXPECT_EQ(history.take({.value = 0x2ebc, .bytes = 2, .is1 = false}), (KnownAddress{{0x2ebc}}));
}

TEST(Etm4Addresses, ShortFormsReplaceTheLowBits) {
    const AddressHistory last = history_at(0xffffffc000083c00);
    const auto complete = [&](std::uint64_t value, unsigned bytes, bool is1) {
        return last.complete({.value = value, .bytes = static_cast<std::uint8_t>(bytes), .is1 = is1}).address.value;
    };
    EXPECT_EQ(complete(0x1fc, 1, false), 0xffffffc000083dfcU);    // bits 8:0
    EXPECT_EQ(complete(0xfe, 1, true), 0xffffffc000083cfeU);      // bits 7:0
    EXPECT_EQ(complete(0x1fffc, 2, false), 0xffffffc00009fffcU);  // bits 16:0
    EXPECT_EQ(complete(0x9a02, 2, true), 0xffffffc000089a02U);    // bits 15:0
    EXPECT_EQ(complete(0x10, 4, false), 0xffffffc000000010U);
    EXPECT_EQ(complete(0x10, 8, false), 0x10U);
}

TEST(Etm4Addresses, ExactMatchPushesWithoutRemoving) {
    AddressHistory history = history_at(0x1000);
    history.push({{0x2000}, true});
    history.push({{0x3000}, false});
    EXPECT_EQ(history.match(2), (KnownAddress{{0x1000}, false}));
    EXPECT_EQ(history.entry(0), (KnownAddress{{0x1000}, false}));
    EXPECT_EQ(history.entry(1), (KnownAddress{{0x3000}, false}));
    EXPECT_EQ(history.entry(2), (KnownAddress{{0x2000}, true}));
    EXPECT_EQ(history.match(0), (KnownAddress{{0x1000}, false}));
    EXPECT_EQ(history.entry(1), (KnownAddress{{0x1000}, false}));
    EXPECT_EQ(history.entry(2), (KnownAddress{{0x3000}, false}));
}

TEST(Etm4Addresses, BeforeATraceInfoHighBitsAreNotKnown) {
    AddressHistory history;
    EXPECT_EQ(history.take({.value = 0x92ac, .bytes = 2, .is1 = false}), (KnownAddress{{0x92ac}, false, 0x1ffff}));
    EXPECT_EQ(history.take({.value = 0x788ac, .bytes = 4, .is1 = false}), (KnownAddress{{0x788ac}, false, 0xffffffff}));
    EXPECT_EQ(history.take({.value = 0x1004f9a02, .bytes = 8, .is1 = true}), (KnownAddress{{0x1004f9a02}, true}));
    EXPECT_EQ(history.take({.value = 0x10, .bytes = 1, .is1 = true}), (KnownAddress{{0x1004f9a10}, true}));
}

TEST(Etm4Compress, TakesTheShortestForm) {
    AddressHistory history = history_at(0xffffffc000083c00);
    const auto sent = [&](std::uint64_t address, bool is1 = false) { return compress({{address}, is1}, history).sent; };
    EXPECT_EQ(compress({{0xffffffc000083c00}, false}, history).entry, 0);
    EXPECT_EQ(compress({{0}, false}, history).entry, 1);
    EXPECT_EQ(sent(0xffffffc000083c00, true).bytes, 1);  // another instruction set is no match
    EXPECT_EQ(sent(0xffffffc000083c00 ^ 0x1fc).bytes, 1);
    EXPECT_EQ(sent(0xffffffc000083c00 ^ 0x200).bytes, 2);
    EXPECT_EQ(sent(0xffffffc000083c00 ^ 0x1fffc).bytes, 2);
    EXPECT_EQ(sent(0xffffffc000083c00 ^ 0x20000).bytes, 4);
    EXPECT_EQ(sent(0xffffffc000083c00 ^ 0xfe, true).bytes, 1);
    EXPECT_EQ(sent(0xffffffc000083c00 ^ 0x100, true).bytes, 2);
    EXPECT_EQ(sent(0xffffffc000083c00 ^ 0x10000, true).bytes, 4);
    EXPECT_EQ(sent(0xffffffc000083c00 ^ 0xfffffffc).bytes, 4);
    EXPECT_EQ(sent(0xffffffc000083c00 ^ 0x100000000).bytes, 8);
    history.forget();
    EXPECT_EQ(sent(0x10).bytes, 8);  // nothing is known
}

TEST(Etm4Compress, IsUndoneByTheHistory) {
    wire::Random random(3);
    AddressHistory sender, receiver;
    sender.reset(), receiver.reset();
    unsigned matches = 0;
    for (unsigned i = 0; i < 20000; ++i) {
        KnownAddress to;
        to.is1 = random() % 2 == 0;
        to.address.value = wire::random_number(random, 64) & (to.is1 ? ~std::uint64_t{1} : ~std::uint64_t{3});
        switch (random() % 3) {
            case 0: to = sender.entry(static_cast<unsigned>(random() % 3)); break;
            case 1:
                to.address.value = (sender.entry(0).address.value ^ (random() >> (random() % 64))) & ~std::uint64_t{3};
                break;
            default: break;
        }
        const CompressedAddress form = compress(to, sender);
        sender.push(to);
        ASSERT_EQ(form.entry ? receiver.match(*form.entry) : receiver.take(form.sent), to);
        matches += form.entry ? 1 : 0;
    }
    EXPECT_GT(matches, 5000U);
}

TEST(Etm4Timestamps, PartialValuesReplaceTheLowBits) {
    TimestampState state;
    EXPECT_EQ(state.take({0x51, 1}), 0x51U);
    EXPECT_FALSE(state.known());
    state.reset();
    EXPECT_EQ(state.take({0x6fd7, 3}), 0x6fd7U);  // the first after a Trace Info: bits not sent are 0
    EXPECT_TRUE(state.known());
    EXPECT_EQ(state.take({0xfffffffff0006592, 9}), 0xfffffffff0006592U);
    EXPECT_EQ(state.take({0x11, 1}), 0xfffffffff0006591U);
    state.forget();
    EXPECT_FALSE(state.known());
    state.take({0x11, 9});
    EXPECT_TRUE(state.known());
}

TEST(Etm4Timestamps, CompressAndTakeAgree) {
    wire::Random random(5);
    TimestampState state;
    state.reset();
    std::uint64_t last = 0;
    for (unsigned i = 0; i < 5000; ++i) {
        const std::uint64_t next = wire::random_number(random, 64);
        const std::uint64_t to = random() % 2 == 0 ? next : (last & ~std::uint64_t{0xffff}) | (next & 0xffff);
        ASSERT_EQ(state.take(compress_timestamp(to, last)), to);
        last = to;
    }
    EXPECT_EQ(compress_timestamp(5, 5).bytes, 1);
    EXPECT_EQ(compress_timestamp(0x80, 0).bytes, 2);
    EXPECT_EQ(compress_timestamp(std::uint64_t{1} << 56, 0).bytes, 9);
}

// Section 17: T = 0x16.
TEST(Etm4CycleCounts, HaveThresholdAndMaxspecInThem) {
    Config config = test::etmv4();
    config.max_speculation = 0x78;
    PacketState state(config);
    TraceInfo info;
    info.sections = 8;
    info.threshold = 0x16;
    state(info);
    using Count = std::optional<CycleCount>;
    EXPECT_EQ(state(CycleCountF2{.commit = 9, .count = 6, .from_maximum = false}).count, Count({10, 0x1c}));
    EXPECT_EQ(state(CycleCountF2{.commit = 9, .count = 6, .from_maximum = true}).count, Count({0x78 - 15 + 9, 0x1c}));
    EXPECT_EQ(state(CycleCountF1{.commit = 1, .count = 0x21, .unknown = false}).count, Count({1, 0x37}));
    EXPECT_EQ(state(CycleCountF1{.commit = 1, .count = 0, .unknown = true}).count, Count({1, std::nullopt}));
    EXPECT_EQ(state(CycleCountF3{.commit = 2, .count = 3}).count, Count({3, 0x19}));
    // No threshold applies in timestamps, and the sum is reduced to the counter's width: 12 bits here.
    EXPECT_EQ(state(Timestamp{.value = {5, 1}, .cycles = 0x1fff, .has_cycles = true}).count,
              Count({std::nullopt, 0xfff}));
    config.commit_mode_1 = true;
    PacketState mode_1(config);
    mode_1(info);
    EXPECT_EQ(mode_1(CycleCountF2{.commit = 15, .count = 4, .from_maximum = true}).count, Count({std::nullopt, 0x1a}));
    config.commit_mode_1 = false;
    config.max_speculation = 3;
    EXPECT_EQ(PacketState(config)(CycleCountF2{.commit = 2, .count = 0, .from_maximum = true}).count, Count({0, 0}));
}

TEST(Etm4State, EveryPacketWithAnAddressPushesIt) {
    const Config config = test::ete();
    PacketState state(config);
    state(TraceInfo{});
    const auto address = [&](const auto& packet) { return state(packet).address.value().address.value; };
    EXPECT_EQ(address(LongAddress{{.value = 0x1000, .bytes = 8}}), 0x1000U);
    EXPECT_EQ(address(ShortSourceAddress{{.value = 0x10, .bytes = 1}}), 0x1010U);
    EXPECT_EQ(address(ExactMatchAddress{1}), 0x1000U);
    Q q;
    q.type = 5;
    q.address = {.value = 0x40, .bytes = 1, .is1 = false};
    EXPECT_EQ(address(q), 0x1040U);
    q.type = 2;
    EXPECT_EQ(address(q), 0x1010U);
    q.type = 0xc;
    EXPECT_FALSE(state(q).address.has_value());
    EXPECT_EQ(state.addresses().entry(0).address.value, 0x1010U);
    // The unknown address of a failed transaction is 0, IS0.
    Exception failure;
    failure.type_4_0 = 0x18;
    failure.e0 = true;
    state(failure);
    EXPECT_EQ(state.addresses().entry(0), KnownAddress{});
    EXPECT_EQ(state.addresses().entry(1).address.value, 0x1010U);
    failure.type_4_0 = 0xe;
    state(failure);
    EXPECT_EQ(state.addresses().entry(1).address.value, 0x1010U);
    // A Trace Info resets the state, and after a gap nothing is known.
    TraceInfo info;
    info.sections = 8;
    info.threshold = 5;
    state(info);
    EXPECT_EQ(state(Timestamp{.value = {0x12345, 3}}).timestamp, 0x12345U);
    state(TraceInfo{});
    EXPECT_EQ(state.threshold(), 0U);
    EXPECT_EQ(state(Timestamp{.value = {0x11, 1}}).timestamp, 0x11U);
    EXPECT_EQ(state.addresses().entry(1), KnownAddress{});
    state(Gap{{0}, {1}, GapReason::framing});
    EXPECT_EQ(state.addresses().entry(0).known, 0U);
    EXPECT_FALSE(state(Timestamp{.value = {0x11, 1}}).timestamp.has_value());
}

}  // namespace
}  // namespace waymark::etm4
