#include "waymark/record/a64_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace waymark::record {
namespace {

using Kind = A64Event::Kind;

// In QEMU 7.2's format.
constexpr const char* call =
    "Taking exception 13 [Secure Monitor Call] on CPU 1\n"
    "...from EL1 to EL3\n"
    "...with ESR 0x17/0x5e000000\n"
    "...with ELR 0x400823cc\n"
    "...to EL3 PC 0x40080400 PSTATE 0x3cd\n";
constexpr const char* registers =
    "Trace 0: 0x7f2c88000cc0 [000000000030000c/000000004008003c/00000061/ff000000] \n"
    " PC=000000004008003c X00=0000000040080030 X01=0000000000000077\n"
    "X02=ffff000000000001 X03=0000000000000000 X04=0000000000000000\n"
    "X29=0000000000000000 X30=0000000040080040  SP=0000000000000000\n"
    "PSTATE=000003c9 ---- NS EL2h  SVCR=00000000 --  BTYPE=0\n";

std::vector<A64Event> read(std::string_view text, std::size_t piece = 1 << 20) {
    A64Log log;
    std::vector<A64Event> out;
    for (; !text.empty(); text.remove_prefix(std::min(piece, text.size())))
        log.feed(text.substr(0, piece), [&](const A64Event& event) { out.push_back(event); });
    return out;
}

TEST(A64Log, AnException) {
    A64Event expected;
    expected.kind = Kind::exception;
    expected.cpu = 1;
    expected.number = 13;
    expected.exception_class = 0x17;
    expected.elr = 0x400823cc;
    expected.pc = 0x40080400;
    expected.el = 3;
    for (const std::size_t piece : {1000U, 1U, 7U}) EXPECT_EQ(read(call, piece), std::vector{expected});
}

TEST(A64Log, AnAbortHasItsAddressBetween) {
    const auto events = read(
        "Taking exception 4 [Data Abort] on CPU 0\n...from EL0 to EL1\n...with ESR 0x24/0x92000046\n"
        "...with FAR 0xffff000000001234\n...with ELR 0xffff0000400823ec\n"
        "...to EL1 PC 0xffff000040081400 PSTATE 0x3c5\n");
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].exception_class, 0x24U);
    EXPECT_EQ(events[0].elr, 0xffff0000400823ecU);
    EXPECT_EQ(events[0].pc, 0xffff000040081400U);
}

TEST(A64Log, ExceptionReturns) {
    const auto events = read(
        "Exception return from AArch64 EL3 to AArch64 EL2 PC 0x40080030\n"
        "Exception return from AArch64 EL1 to AArch32 EL0 PC 0x8000\n");
    ASSERT_EQ(events.size(), 2U);
    EXPECT_EQ(events[0].kind, Kind::exception_return);
    EXPECT_EQ(events[0].el, 2U);
    EXPECT_EQ(events[0].pc, 0x40080030U);
    EXPECT_FALSE(events[0].aarch32);
    EXPECT_EQ(events[1].el, 0U);
    EXPECT_TRUE(events[1].aarch32);
}

TEST(A64Log, Registers) {
    const auto events = read(registers, 5);
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].kind, Kind::registers);
    EXPECT_EQ(events[0].pc, 0x4008003cU);
    EXPECT_EQ(events[0].el, 2U);
    EXPECT_EQ(events[0].ns, true);
    EXPECT_EQ(events[0].x[1], 0x77U);
    EXPECT_EQ(events[0].x[2], 0xffff000000000001U);
    EXPECT_EQ(events[0].x[30], 0x40080040U);
    EXPECT_EQ(events[0].x[31], 0U);
}

TEST(A64Log, TheSecurityState) {
    const auto ns = [](const char* psr) {
        const auto events = read(std::string("Trace 0: 0x1 [0/40/0/0] \n PC=40\nPSTATE=") + psr + "\n");
        return events.empty() ? std::optional<bool>{} : events[0].ns;
    };
    EXPECT_EQ(ns("000003c5 ---- NS EL1h"), true);
    EXPECT_EQ(ns("000003c5 ---- S   EL1h"), false);
    EXPECT_EQ(ns("000003cd -Z-- EL3h"), false);
    EXPECT_EQ(ns("000003c5 ---- EL1h"), true);  // a core without EL3
}

TEST(A64Log, WhatQemuHandlesItselfIsNoException) {
    const std::string semihosting =
        "Taking exception 16 [Semihosting call] on CPU 0\n...from EL2 to EL2\n...handling as semihosting call 0x4\n";
    EXPECT_TRUE(read(semihosting).empty());
    EXPECT_EQ(read(semihosting + call).size(), 1U);
}

TEST(A64Log, WhatItCannotReadGivesNothing) {
    EXPECT_TRUE(read("Taking exception x on CPU 0\n...with ELR 0x4\n...to EL1 PC 0x4 PSTATE 0x3c5\n").empty());
    EXPECT_TRUE(read("Taking exception 2 [SVC] on CPU 0\n...with ELR 0x4\n...to EL7 PC 0x4 PSTATE 0x3c5\n").empty());
    EXPECT_TRUE(read("...with ELR 0x4\n...to EL1 PC 0x4 PSTATE 0x3c5\n").empty());
    EXPECT_TRUE(read("Exception return from AArch64 EL3 to AArch64 EL9 PC 0x4\n").empty());
    EXPECT_TRUE(read("Illegal exception return at EL1: resuming execution at 0x4\n").empty());
    EXPECT_TRUE(read("Trace 0: 0x1 [0/0/0/0] \nPSTATE=000003c5 ---- NS\n").empty());
    EXPECT_TRUE(read("X01=5\nPSTATE=000003c5 ---- NS EL1h\n").empty());
    EXPECT_TRUE(read(std::string(100000, 'X')).empty());
}

}  // namespace
}  // namespace waymark::record
