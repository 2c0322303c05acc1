#include "waymark/pft/state.h"

#include <gtest/gtest.h>

#include "waymark/core/wire.h"

namespace waymark::pft {
namespace {

TEST(Compress, TakesTheFewestBytes) {
    const Place last{{0xc0010ef0}, Isa::t32};
    const auto bytes = [&](std::uint64_t address, unsigned least = 1) {
        return compress({{address}, Isa::t32}, last, least).bytes;
    };
    EXPECT_EQ(bytes(0xc0010ef0), 1);
    EXPECT_EQ(bytes(0xc0010ef0 ^ 0x7e), 1);  // six bits above bit 0
    EXPECT_EQ(bytes(0xc0010ef0 ^ 0x80), 2);
    EXPECT_EQ(bytes(0xc0010ef0 ^ 0x1000), 2);
    EXPECT_EQ(bytes(0xc0010ef0 ^ 0x2000), 3);
    EXPECT_EQ(bytes(0xc0010ef0 ^ 0x80000), 3);
    EXPECT_EQ(bytes(0xc0010ef0 ^ 0x100000), 4);
    EXPECT_EQ(bytes(0xc0010ef0 ^ 0x4000000), 4);
    EXPECT_EQ(bytes(0xc0010ef0 ^ 0x8000000), 5);
    EXPECT_EQ(bytes(0xc0010ef0, 2), 2);
    EXPECT_EQ(compress({{0xc0010ef0}, Isa::a32}, last).bytes, 5);
    EXPECT_EQ(compress({{0xc0010ef0}, Isa::tee}, last).bytes, 5);
}

TEST(Compress, IsUndoneByComplete) {
    wire::Random random(3);
    for (unsigned i = 0; i < 20000; ++i) {
        const Isa isas[] = {Isa::a32, Isa::t32, Isa::jazelle};
        const auto place = [&] {
            const Isa isa = isas[random() % 3];
            return Place{{wire::random_number(random, 32) >> address_shift(isa) << address_shift(isa)}, isa};
        };
        const Place last = place();
        Place to = place();
        if (random() % 2 == 0) to = {{(last.address.value ^ random() % 4096 * 4) & 0xffffffff}, last.isa};
        const Target target = compress(to, last, random() % 2 == 0 ? 1 : 2);
        ASSERT_EQ(complete(target, last), to) << std::hex << last.address.value << ' ' << to.address.value;
    }
}

TEST(Timestamps, PartialValuesReplaceTheLowBits) {
    Config config;
    config.timestamp_bytes = 9;
    config.gray_timestamps = false;
    TimestampState state;
    EXPECT_EQ(state.update({0x51, 1}, config), 0x51U);
    EXPECT_FALSE(state.known());
    state.update({0x82f9d18bcc, 9}, config);
    EXPECT_TRUE(state.known());
    EXPECT_EQ(state.update({0x51, 1}, config), 0x82f9d18bd1U);
    EXPECT_EQ(state.value(config), 0x82f9d18bd1U);
    state.forget();
    EXPECT_FALSE(state.known());
}

TEST(Timestamps, CompressAndUpdateAgree) {
    wire::Random random(5);
    for (const std::uint8_t bytes : std::initializer_list<std::uint8_t>{7, 9}) {
        Config config;
        config.timestamp_bytes = bytes;
        TimestampState state;
        std::uint64_t last = 0;
        for (unsigned i = 0; i < 5000; ++i) {
            const std::uint64_t next = wire::random_number(random, bytes == 7 ? 48 : 64);
            const std::uint64_t to = random() % 2 == 0 ? next : (last & ~std::uint64_t{0xffff}) | (next & 0xffff);
            ASSERT_EQ(state.update(compress_timestamp(to, last, i == 0, config), config), to);
            last = to;
        }
    }
}

TEST(Timestamps, GrayCode) {
    EXPECT_EQ(to_gray(0b1011), 0b1110U);
    wire::Random random(1);
    for (unsigned i = 0; i < 1000; ++i) {
        const std::uint64_t value = random();
        ASSERT_EQ(from_gray(to_gray(value)), value);
        ASSERT_EQ(std::popcount(to_gray(value) ^ to_gray(value + 1)), 1);
    }
}

TEST(Registers, FieldsAndValuesAgree) {
    wire::Random random(2);
    for (unsigned i = 0; i < 1000; ++i) {
        const auto value = static_cast<std::uint32_t>(random());
        EXPECT_EQ(to_value(from_value<Etmcr>(value)), value);
        EXPECT_EQ(to_value(from_value<Etmccer>(value)), value);
        EXPECT_EQ(to_value(from_value<Etmidr>(value)), value);
        EXPECT_EQ(to_value(from_value<Etmtraceidr>(value)), value);
    }
}

TEST(Config, FromCapturedRegisters) {
    // Cortex-A15, section 3: cycle-accurate, timestamps of 64 bits in natural binary.
    const auto a15 = Config::from_registers(from_value<Etmcr>(0x10001000), from_value<Etmccer>(0x34c01ac2),
                                            from_value<Etmidr>(0x411cf312));
    EXPECT_TRUE(a15.cycle_accurate && a15.timestamps);
    EXPECT_FALSE(a15.return_stack || a15.branch_broadcast || a15.vmid_trace || a15.gray_timestamps ||
                 a15.barrier_waypoints);
    EXPECT_EQ(a15.timestamp_bytes, 9);
    EXPECT_EQ(a15.context_id_bytes, 0);
    // Cortex-A9: v1.0 has 48-bit Gray timestamps with any ETMCCER.
    const auto a9 = Config::from_registers(from_value<Etmcr>(0x1000d000), from_value<Etmccer>(0x34c01ac2),
                                           from_value<Etmidr>(0x411cf301));
    EXPECT_TRUE(a9.gray_timestamps);
    EXPECT_EQ(a9.timestamp_bytes, 7);
    EXPECT_EQ(a9.context_id_bytes, 4);
    EXPECT_EQ(a9.minor_version, 0);
}

// ETMCCER states what a macrocell can do; ETMCR what it did.
TEST(Config, AFeatureThatTheMacrocellHasIsOffUnlessItWasEnabled) {
    const auto c =
        Config::from_registers(from_value<Etmcr>(0), from_value<Etmccer>(0xffffffff), from_value<Etmidr>(0x411cf312));
    EXPECT_FALSE(c.cycle_accurate || c.return_stack || c.branch_broadcast || c.vmid_trace || c.timestamps);
    EXPECT_EQ(c.context_id_bytes, 0);
}

}  // namespace
}  // namespace waymark::pft
