#include "waymark/image/system_calls.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "waymark/image/memory_map.h"

namespace waymark::image {
namespace {

constexpr std::uint64_t base = 0x10000;

std::vector<std::uint8_t> bytes_of(const std::vector<std::uint32_t>& parts, unsigned each) {
    std::vector<std::uint8_t> out;
    for (const std::uint32_t part : parts)
        for (unsigned i = 0; i < each; ++i) out.push_back(static_cast<std::uint8_t>(part >> 8 * i));
    return out;
}

/// The number at the end of `code`, which is one function; nullopt if there is none.
std::optional<std::uint32_t> number(const std::vector<std::uint8_t>& code, std::size_t back, bool named = true) {
    MemoryMap memory;
    EXPECT_TRUE(memory.add_bytes(code, {base}));
    Symbols symbols;
    if (named) symbols.add("f", {base}, code.size(), SymbolKind::function);
    const auto found = system_call_before(memory, {}, symbols, {base + back});
    return found ? std::optional(found->number) : std::nullopt;
}
std::optional<std::uint32_t> a64(const std::vector<std::uint32_t>& code, bool named = true) {
    return number(bytes_of(code, 4), 4 * code.size(), named);
}
/// `svc #0` at this index, with more code behind it.
std::optional<std::uint32_t> a64_at(const std::vector<std::uint32_t>& code, std::size_t svc) {
    return number(bytes_of(code, 4), 4 * (svc + 1));
}
std::optional<std::uint32_t> a32(const std::vector<std::uint32_t>& code) {
    return number(bytes_of(code, 4), 4 * code.size());
}
std::optional<std::uint32_t> t32(const std::vector<std::uint32_t>& code, bool named = true) {
    return number(bytes_of(code, 2), 2 * code.size(), named);
}

constexpr std::uint32_t svc = 0xd4000001, nop = 0xd503201f;
constexpr std::uint32_t mov_x8_56 = 0xd2800708, mov_w8_56 = 0x52800708, mov_x9_56 = 0xd2800709;

TEST(SystemCalls, TheNumberIsTheConstantInX8) {
    EXPECT_EQ(a64({mov_x8_56, svc}), 56U);
    EXPECT_EQ(a64({mov_w8_56, svc}), 56U);
    EXPECT_EQ(a64({mov_x8_56, nop, svc}), 56U);
    EXPECT_EQ(a64({mov_x9_56, svc}), std::nullopt);
    EXPECT_EQ(a64({svc}), std::nullopt);
    EXPECT_EQ(a64({mov_x8_56, 0xd4000021}), std::nullopt) << "svc #1";
    EXPECT_EQ(a64({mov_x8_56, nop}), std::nullopt);
    EXPECT_EQ(a64({0xd2a00708, svc}), std::nullopt) << "mov x8, #56, lsl #16";
    EXPECT_EQ(a64({mov_x8_56, svc}, false), 56U) << "without a symbol";
}

TEST(SystemCalls, WhatMayChangeTheRegisterMakesTheNumberUnknown) {
    EXPECT_EQ(a64({mov_x8_56, 0xaa0003e8, svc}), std::nullopt) << "mov x8, x0";
    EXPECT_EQ(a64({mov_x8_56, 0xf9400008, svc}), std::nullopt) << "ldr x8, [x0]";
    EXPECT_EQ(a64({mov_x8_56, 0xa9402007, svc}), std::nullopt) << "ldp x7, x8, [x0]";
    EXPECT_EQ(a64({mov_x8_56, 0xaa0003e9, svc}), 56U) << "mov x9, x0";
    EXPECT_EQ(a64({mov_x8_56, 0xd2800728, svc}), 57U) << "mov x8, #57";
    EXPECT_EQ(a64({mov_x8_56, 0x94000100, svc}), std::nullopt) << "bl";
    EXPECT_EQ(a64({mov_x8_56, 0xd63f0020, svc}), std::nullopt) << "blr x1";
    EXPECT_EQ(a64({mov_x8_56, 0x00000000, svc}), std::nullopt) << "udf";
}

TEST(SystemCalls, AWayPastTheConstantMakesTheNumberUnknown) {
    // cbz x0 leads to the supervisor call, or to between the two.
    EXPECT_EQ(a64({0xb4000040, mov_x8_56, svc}), std::nullopt);
    EXPECT_EQ(a64({0xb4000040, mov_x8_56, nop, svc}), std::nullopt);
    EXPECT_EQ(a64({0xb4000020, mov_x8_56, svc}), 56U) << "to the constant itself";
    EXPECT_EQ(a64_at({mov_x8_56, nop, svc, 0xb5ffffc0}, 2), std::nullopt) << "cbnz x0 from behind to the nop";
    EXPECT_EQ(a64_at({mov_x8_56, svc, 0xb5ffffc0}, 1), 56U) << "cbnz x0 from behind to the constant";
}

TEST(SystemCalls, TheSearchIsBounded) {
    std::vector<std::uint32_t> code(66, nop);
    code.front() = mov_x8_56;
    code.back() = svc;
    EXPECT_EQ(a64(code), std::nullopt) << "260 bytes before the supervisor call";
    code.erase(code.begin() + 1);
    EXPECT_EQ(a64(code), 56U) << "256 bytes before it";

    std::vector<std::uint32_t> of_16_kib(0x1002, nop);
    of_16_kib[0] = mov_x8_56;
    of_16_kib[1] = svc;
    EXPECT_EQ(a64_at(of_16_kib, 1), 56U);
    std::swap(of_16_kib[0], of_16_kib[0x1000]);
    std::swap(of_16_kib[1], of_16_kib[0x1001]);
    EXPECT_EQ(a64(of_16_kib), std::nullopt) << "16 KiB after the beginning of the function";
}

TEST(SystemCalls, TheNumberIsTheConstantInR7) {
    constexpr std::uint32_t svc_a32 = 0xef000000;
    EXPECT_EQ(a32({0xe3a07005, svc_a32}), 5U);
    EXPECT_EQ(a32({0xe3007142, svc_a32}), 0x142U) << "movw";
    EXPECT_EQ(a32({0xe3a07e19, svc_a32}), 0x190U) << "a rotated constant";
    EXPECT_EQ(a32({0xe3a07104, svc_a32}), 1U) << "one rotated by two bits";
    EXPECT_EQ(a32({0x03a07005, svc_a32}), std::nullopt) << "moveq";
    EXPECT_EQ(a32({0xe3a07005, 0xe1a07000, svc_a32}), std::nullopt) << "mov r7, r0";
    EXPECT_EQ(a32({0xe3a07005, 0x0f000000}), std::nullopt) << "svceq";

    constexpr std::uint32_t svc_t32 = 0xdf00, movs_r7_5 = 0x2705, nop_t32 = 0xbf00;
    EXPECT_EQ(t32({movs_r7_5, svc_t32}), 5U);
    EXPECT_EQ(t32({movs_r7_5, nop_t32, svc_t32}), 5U);
    EXPECT_EQ(t32({0xf240, 0x1742, svc_t32}), 0x142U) << "movw";
    EXPECT_EQ(t32({0xf44f, 0x77c8, svc_t32}), 0x190U) << "mov.w";
    EXPECT_EQ(t32({0xf04f, 0x0705, svc_t32}), 5U) << "mov.w";
    EXPECT_EQ(t32({0xbf08, movs_r7_5, svc_t32}), std::nullopt) << "it eq";
    EXPECT_EQ(t32({movs_r7_5, 0x4607, svc_t32}), std::nullopt) << "mov r7, r0";
    EXPECT_EQ(t32({0xf240, 0x4742, svc_t32}), 0x442U) << "movw whose constant needs all of its bits";
    EXPECT_EQ(t32({0xf04f, 0x4700, svc_t32}), 0x80000000U) << "mov.w of the greatest bit";
    EXPECT_EQ(t32({0xf04f, 0x1700, svc_t32}), std::nullopt) << "mov.w of repeated zeros, which is unpredictable";
    EXPECT_EQ(t32({0xf04f, 0x37ff, svc_t32}), std::nullopt) << "mov.w of repeated ones";
    EXPECT_EQ(t32({0xdf01}), std::nullopt) << "svc #1";
    EXPECT_EQ(t32({movs_r7_5, svc_t32}, false), std::nullopt) << "without a symbol";
}

TEST(SystemCalls, HaveTheNamesOfTheKernel) {
    EXPECT_EQ((SystemCall{56, true}.name()), "openat");
    EXPECT_EQ((SystemCall{322, false}.name()), "openat");
    EXPECT_EQ((SystemCall{0, true}.name()), "io_setup");
    EXPECT_EQ((SystemCall{0xf0005, false}.name()), "set_tls");
    EXPECT_EQ((SystemCall{244, true}.name()), "");
    EXPECT_EQ((SystemCall{9999, true}.name()), "");
}

}  // namespace
}  // namespace waymark::image
