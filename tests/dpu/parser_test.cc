// Words → entries and gaps (docs/spec/dpu.md, section 7.3).
#include <gtest/gtest.h>

#include "support.h"
#include "support/sanitized.h"

namespace {

using namespace waymark;
using namespace waymark::dpu;
using namespace waymark::dpu::test;
using Texts = std::vector<std::string>;

// Requirements: R57 R73 R76
TEST(Parser, RoundTripOfRandomEntries) {
    for (const TraceFormat& format : formats())
        for (std::uint64_t seed = 0; seed < 20; ++seed) {
            const std::vector<Entry> entries = RandomTrace(format, seed).entries(300);
            const Bytes8 bytes = encoded(entries, format);
            EXPECT_EQ(parse(bytes, format).entries, entries) << "seed " << seed;
        }
}

// With TMODE unknown whole entries are distinguished all the same: all but literal user data.
TEST(Parser, RoundTripWithUnknownMode) {
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
        const std::vector<Entry> entries = RandomTrace(any_mode(), seed).entries(300);
        EXPECT_EQ(parse(encoded(entries, any_mode()), any_mode()).entries, entries) << "seed " << seed;
    }
}

TEST(Parser, ChunksChangeNothing) {
    for (const TraceFormat& format : formats()) {
        RandomTrace trace(format, 5);
        Bytes8 bytes = encoded(trace.entries(60), format);
        for (unsigned i = 0; i < 8; ++i) {
            std::uint8_t& byte = bytes[trace.random()() % bytes.size()];
            byte = static_cast<std::uint8_t>(byte ^ 1U << trace.random()() % 8);
        }
        bytes.erase(bytes.end() - 3, bytes.end());
        const Collector whole = parse(bytes, format, false);
        for (std::size_t piece = 1; piece < 50; ++piece)
            ASSERT_EQ(parse(bytes, format, false, ByteOrder::big, piece).items, whole.items) << "pieces of " << piece;
    }
}

// Any words at all: each byte is in exactly one entry or gap, in order, and entries encode to their words again.
TEST(Parser, AccountsForEveryByte) {
    wire::Random random(7);
    for (const TraceFormat& format : formats())
        for (unsigned round = 0; round < 200; ++round) {
            Words in;
            for (unsigned i = 0; i < 60; ++i) {
                const auto kind = static_cast<FlagKind>(random() % 8);
                in.push_back(random() % 2 == 0
                                 ? format.word({kind, static_cast<std::uint8_t>(has_id(kind) ? random() : random() % 2),
                                                random() % 2 == 0})
                                 : static_cast<std::uint32_t>(wire::random_number(random, 32)));
            }
            const Bytes8 bytes = memory(in);
            const Collector out = parse(bytes, format, random() % 2 == 0);
            std::uint64_t at = 0;
            std::size_t next = 0;
            for (const Item& item : out.items) {
                ASSERT_EQ(item.first, at);
                at += item.bytes;
                if (item.text.starts_with("no entry")) continue;
                Words again;
                ASSERT_TRUE(encode(again, out.entries[next++], format));
                EXPECT_EQ(memory(again), Bytes8(bytes.begin() + static_cast<std::ptrdiff_t>(item.first),
                                                bytes.begin() + static_cast<std::ptrdiff_t>(at)));
            }
            EXPECT_EQ(at, bytes.size());
        }
}

// Section 10.4: counters that look like flags.
// Requirements: R57
TEST(Parser, CountersThatLookLikeFlags) {
    const std::string text = "00401011 FFF0A20E FFF0A20E FFF0A20E FFF0A20E FFF0A20E FFF0A20E 00000200 FFF0A40A";
    const TraceFormat format = in(TraceMode::task);
    EXPECT_EQ(parsed(text, format),
              (Texts{"TASK-SWITCH last_pc=0x401010 A0=0x7ff85107 A1=0x7ff85107 A2=0x7ff85107 B0=0x7ff85107 "
                     "B1=0x7ff85107 B2=0x7ff85107 first_pc=0x200 context=supervisor:5"}));
    EXPECT_EQ(parsed("00401011 FFF0A20E FFF0A20E", format, false), Texts{"no entry: incomplete packet"});
    EXPECT_EQ(parsed("00401011 FFF0A20E FFF0A20E", format, true), Texts{"no entry: malformed packet"});
}

// Section 10.4: the last words of a compressed trace.
TEST(Parser, TailThatMayBeCut) {
    const TraceFormat format = in(TraceMode::eonce_comp);
    EXPECT_EQ(parsed("00402011 FFF0A20E", format, false), Texts{"no entry: incomplete packet"});
    EXPECT_EQ(parsed("00402011 FFF0A20E", format, true), Texts{"COMPRESSED-PC pc=0x402010 context=user:7"});
    // A cut sample would read as a context, unless the trace was complete.
    EXPECT_EQ(parsed("FFF0A20F", format, false), Texts{"no entry: incomplete packet"});
    EXPECT_EQ(parsed("FFF0A20F", format, true), Texts{"CONTEXT context=user:7"});
    // No longer entry begins with these words.
    EXPECT_EQ(parsed("00402011 FFF0A20E 00403000", format, false),
              Texts{"COMPRESSED-FLOW source=0x402010 context=user:7 destination=0x403000"});
    EXPECT_EQ(parsed("FFF0A001 FFF0AA01", format, false), (Texts{"PAD", "CLOSED"}));
    // A cut raw pair would read as one address.
    EXPECT_EQ(parsed("00402011", in(TraceMode::eonce_raw), false), Texts{"no entry: incomplete packet"});
}

// Section 10.4: damage to bit 0 of a counter word.
TEST(Parser, DamagedBitZero) {
    EXPECT_EQ(parsed("FFF0A20F FFF0A20F FFF0A20E FFF0A20E FFF0A20E FFF0A20E FFF0A20E FFF0A000 00000281 FFFFF69E "
                     "FFFFFEAA FFFFFFFE FFFFFD56 FFFFFFD4 FFFFFFFC 00402000 FFF0A20E",
                     in(TraceMode::task)),
              (Texts{"CONTEXT context=user:7 doubtful", "no entry: malformed packet",
                     "TASK-SWITCH last_pc=0x280 A0=0x7ffffb4f A1=0x7fffff55 A2=0x7fffffff B0=0x7ffffeab "
                     "B1=0x7fffffea B2=0x7ffffffe first_pc=0x402000 context=user:7"}));
}

// Contexts, pads and gaps directly before and after damage are in doubt; no other entry is.
TEST(Parser, DoubtBesideDamage) {
    EXPECT_EQ(
        parsed("FFF0A001 FFF0AE01 00000002 FFF0A003 FFF0AA01 FFF0A20F FFF0AC0F FFF0A40F FFF0A001", in(TraceMode::task)),
        (Texts{"PAD", "GAP lost=1 doubtful", "no entry: malformed packet", "CLOSED", "CONTEXT context=user:7 doubtful",
               "no entry: malformed packet", "CONTEXT context=supervisor:7 doubtful", "PAD"}));
}

// A buffer that wrapped begins anywhere; memory that was never written is zero and says nothing.
// Requirements: R41
TEST(Parser, BeginsInsideAnEntry) {
    const TraceFormat format = in(TraceMode::task);
    EXPECT_EQ(parsed("FFFFFFFE 00000200 FFF0A40A FFF0A20F FFF0A001", format),
              (Texts{"no entry: unsynchronised", "CONTEXT context=user:7", "PAD"}));
    EXPECT_EQ(parsed("00000000 00000000 FFF0A20F FFF0A001", format),
              (Texts{"no entry: padding", "CONTEXT context=user:7", "PAD"}));
    EXPECT_EQ(parsed("00000000 00000000", format), Texts{"no entry: padding"});
    EXPECT_EQ(parsed("", format), Texts{});
}

// Entries of other modes, and flags with an ID that they cannot have, are no entries.
TEST(Parser, WhatAModeCannotHold) {
    const std::string flow = "00402011 00000000 00000000 00000000 00000000 00000000 00000000 FFF0A20E 00403000";
    EXPECT_EQ(parsed(flow, in(TraceMode::task)), Texts{"no entry: malformed packet"});
    EXPECT_EQ(parsed("00402011", in(TraceMode::flow)), Texts{"no entry: malformed packet"});
    for (const char* word : {"FFF0A003", "FFF0AA03", "FFF0AFFF"})
        EXPECT_EQ(parsed(word, any_mode()), Texts{"no entry: malformed packet"}) << word;
    EXPECT_EQ(parsed("FFF0A60F 00403008 00000000", in(TraceMode::eonce_comp)), Texts{"no entry: malformed packet"});
    EXPECT_EQ(parsed("FFF0A60F FFF0A008 00000002", in(TraceMode::eonce_comp)), Texts{"no entry: malformed packet"});
    EXPECT_EQ(parsed("FFF0AC0F FFF0A210 00000000 00000000", in(TraceMode::user)), Texts{"no entry: malformed packet"});
    EXPECT_EQ(parsed("FFF0AC0F FFF0A20E 00020000 00000000", in(TraceMode::user)), Texts{"no entry: malformed packet"});
    EXPECT_EQ(parsed("FFF0AE01 00000000", in(TraceMode::flow)), Texts{"no entry: malformed packet"});
}

// One to three damaged words spoil the entries that contain them and the entry before; all others are decoded exactly
// (7.3, 4).
TEST(Parser, DamageStaysWhereItIs) {
    for (const TraceFormat& format : formats()) {
        if (format.mode == TraceMode::user_raw) continue;
        for (std::uint64_t seed = 0; seed < sized(100U, 25U); ++seed) {
            RandomTrace trace(format, seed);
            const std::vector<Entry> entries = trace.entries(60);
            Bytes8 bytes = encoded(entries, format);
            const Collector whole = parse(bytes, format);
            const std::size_t first = trace.random()() % (bytes.size() / 4);
            const std::size_t count = std::min<std::size_t>(1 + trace.random()() % 3, bytes.size() / 4 - first);
            for (std::size_t i = 4 * first; i < 4 * (first + count); ++i)
                bytes[i] = static_cast<std::uint8_t>(trace.random()());
            const Collector out = parse(bytes, format);
            std::size_t touched = 0;  // the first item that holds damage
            while (whole.items[touched].first + whole.items[touched].bytes <= 4 * first) ++touched;
            for (std::size_t i = 0; i < whole.items.size(); ++i) {
                const Item& item = whole.items[i];
                const bool before = i + 1 < touched, behind = item.first >= 4 * (first + count);
                if (!before && !behind) continue;
                Item doubted = item;
                doubted.text += " doubtful";
                EXPECT_TRUE(std::find(out.items.begin(), out.items.end(), item) != out.items.end() ||
                            std::find(out.items.begin(), out.items.end(), doubted) != out.items.end())
                    << item.text;
            }
        }
    }
}

TEST(Parser, JumpsAndBytesLeftOver) {
    const TraceFormat format = in(TraceMode::eonce_raw);
    Collector out(format);
    Parser<Collector> parser(format, ByteOrder::big, out);
    const Bytes8 bytes = memory(words("00402011 00403000"));
    parser.feed(bytes);
    parser.feed(Bytes(bytes).first(2));
    parser.reset();
    parser.reset();
    parser.feed(bytes);
    parser.feed(Bytes(bytes).first(3));
    parser.finish(true);
    EXPECT_EQ(out.texts(), (Texts{"no entry: framing", "no entry: framing", "no entry: framing",
                                  "RAW-PAIR source=0x402010 destination=0x403000", "no entry: incomplete packet"}));
    EXPECT_EQ(parser.offset().value, 2U * 8 + 5);
}

}  // namespace
