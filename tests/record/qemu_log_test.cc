#include "waymark/record/qemu_log.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace waymark::record {
namespace {

constexpr const char* interrupt =
    "Taking exception 5 [IRQ] on CPU 0\n"
    "...from EL1 to EL1\n"
    "Trace 0: 0x7f0128000a00 [00000000/60010018/00000370/ff000000] \n"
    "R00=60010000 R01=00000000 R02=00000000 R03=00000000\n"
    "R12=00000000 R13=60100000 R14=6001004c R15=60010018\n"
    "PSR=400001d2 -Z-- A S irq32\n"
    "Linking TBs 0x7f0128000a00 index 0 -> 0x7f0128000b00\n";

std::vector<LoggedEntry> read(std::string_view text, std::size_t piece = 1 << 20) {
    QemuLog log;
    std::vector<LoggedEntry> out;
    for (; !text.empty(); text.remove_prefix(std::min(piece, text.size())))
        log.feed(text.substr(0, piece), [&](const LoggedEntry& entry) { out.push_back(entry); });
    return out;
}

TEST(QemuLog, AnExceptionAndWhereItReturns) {
    const std::vector<LoggedEntry> expected{{0, 5U, 0x60010018, 0x6001004c, 0x400001d2, false, false, false}};
    EXPECT_EQ(read(interrupt), expected);
    EXPECT_EQ(read(interrupt, 1), expected);
    EXPECT_EQ(read(interrupt, 7), expected);
}

TEST(QemuLog, ABranchToAVectorIsNoException) {
    const std::string text =
        std::string(interrupt) + std::string(interrupt).substr(std::string(interrupt).find("Trace"));
    const auto entries = read(text);
    ASSERT_EQ(entries.size(), 2U);
    EXPECT_EQ(entries[1].exception, std::nullopt);
}

TEST(QemuLog, WhatQemuHandlesItselfIsNoException) {
    const auto entries = read(
        "Taking exception 16 [Semihosting call] on CPU 0\n...from EL3 to EL3\n...handling as semihosting call 0x4\n"
        "Trace 0: 0x1 [00000000/00000018/0/0] \nR12=0 R13=0 R14=00000010 R15=00000018\nPSR=000001f3 ---- T svc32\n");
    ASSERT_EQ(entries.size(), 1U);
    EXPECT_EQ(entries[0].exception, std::nullopt);
    EXPECT_TRUE(entries[0].thumb);
    EXPECT_TRUE(entries[0].ns);  // no EL3: neither security state is known
}

TEST(QemuLog, ProcessorsAreKeptApart) {
    const auto entries = read(
        "Taking exception 2 [SVC] on CPU 1\nTaking exception 6 [FIQ] on CPU 0\n"
        "Trace 1: 0x1 [00000000/00000008/0/0] \nR12=0 R13=0 R14=00000010 R15=00000008\nPSR=000001d6 ---- A mon32\n"
        "Trace 0: 0x1 [00000000/0000001c/0/0] \nR12=0 R13=0 R14=00000020 R15=0000001c\nPSR=000001da ---- A NS hyp32\n");
    ASSERT_EQ(entries.size(), 2U);
    EXPECT_EQ(entries[0], (LoggedEntry{1, 2U, 8, 0x10, 0x1d6, false, false, false}));
    EXPECT_EQ(entries[1], (LoggedEntry{0, 6U, 0x1c, 0x20, 0x1da, true, true, false}));
}

TEST(QemuLog, WhatItCannotReadGivesNothing) {
    EXPECT_TRUE(read("Trace x: [\nR12=0 R14=5\nPSR=0 \n").empty());
    EXPECT_TRUE(read("Trace 0: 0x1 [00000000/00000018/0/0] \nPSR=zz\n").empty());
    EXPECT_TRUE(read("Trace 0: 0x1 [00000000/00000018/0/0] \nPSR=1d3 S \n").size() <= 1);
    EXPECT_TRUE(read("Taking exception 5 on CPU 4000000000\nPSR=000001d3 ---- A S svc32\n").empty());
    EXPECT_TRUE(read(std::string(100000, 'x')).empty());
    EXPECT_EQ(read(std::string(100000, 'x') + "\n" + interrupt).size(), 1U);
}

// In QEMU 7.2's format: a signal that an instruction causes is queued first, a signal from another process comes from
// the host.
TEST(SignalLog, RaisedAndSent) {
    SignalLog log;
    std::vector<LoggedSignal> found;
    const auto feed = [&](std::string_view text) {
        log.feed(text, [&](const LoggedSignal& signal) { found.push_back(signal); });
    };
    feed(
        "user_queue_signal env=0x56169476d560 signal 5\nuser_handle_signal env=0x56169476d560 signal 5\nuser_setup_rt");
    EXPECT_TRUE(found.empty());
    feed(
        "_frame env=0x56169476d560 frame_addr=0x408005b8\nuser_host_signal env=0x56169476d560 signal 10 (target 10)\n");
    feed(
        "user_handle_signal env=0x56169476d560 signal 10\nuser_setup_frame env=0x56169476d560 frame_addr=0x40800640\n");
    // A signal with default handling has no frame.
    feed("user_handle_signal env=0x56169476d560 signal 17\n");
    feed(
        "user_handle_signal env=0x56169476d560 signal 11\nuser_setup_frame env=0x56169476d560 frame_addr=0x40800640\n");
    EXPECT_EQ(found, (std::vector<LoggedSignal>{
                         {5, true, 0x408005b8, true}, {10, false, 0x40800640, false}, {11, false, 0x40800640, false}}));
}

}  // namespace
}  // namespace waymark::record
