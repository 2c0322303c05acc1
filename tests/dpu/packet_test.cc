// Worked examples, word by word, in both directions (docs/spec/dpu.md, sections 6, 7.2 and 10), and words that are no
// entry.
#include <gtest/gtest.h>

#include <set>

#include "support.h"

namespace {

using namespace waymark;
using namespace waymark::dpu;
using namespace waymark::dpu::test;
using Texts = std::vector<std::string>;

const Counters step_1{0x7FFFFC17, 0x7FFFFF87, 0x7FFFFFFF, 0x7FFFFED3, 0x7FFFFFF3, 0x7FFFFFFE};
const Counters step_2{0x7FFFFB4F, 0x7FFFFF55, 0x7FFFFFFF, 0x7FFFFEAB, 0x7FFFFFEA, 0x7FFFFFFE};
const Counters step_3{0x7FFFE7C7, 0x7FFFFC99, 0x7FFFFFFF, 0x7FFFF8CF, 0x7FFFFFC9, 0x7FFFFFFC};

/// The entries encode to the words, and the words decode to the entries, in both byte orders.
void same(const std::string& text, const std::vector<Entry>& entries, const TraceFormat& format) {
    Words encoded;
    for (const Entry& entry : entries) ASSERT_TRUE(encode(encoded, entry, format));
    EXPECT_EQ(encoded, words(text));
    for (const ByteOrder order : {ByteOrder::big, ByteOrder::little}) {
        const Collector read = parse(memory(words(text), order), format, true, order);
        EXPECT_EQ(read.entries, entries);
        EXPECT_EQ(read.items.size(), entries.size());
    }
}

// Section 10.1.
// Requirements: R1 R2 R64 R68 R69 R72 R73 R74 R75 R76 R61 R101 R128
TEST(Packet, TaskSwitchesSampleAndUserData) {
    same(R"(00401011 FFFFF82E FFFFFF0E FFFFFFFE FFFFFDA6 FFFFFFE6 FFFFFFFC 00000200
            FFF0A40A 00000281 FFFFF69E FFFFFEAA FFFFFFFE FFFFFD56 FFFFFFD4 FFFFFFFC
            00402000 FFF0A20E FFF0A20F FFFFCF8E FFFFF932 FFFFFFFE FFFFF19E FFFFFF92
            FFFFFFF8 FFF0A000 FFF0AC0F FFF0A20E 000195FC 00000002 FFF0A001 FFF0A001)",
         {TaskSwitch{0x00401010, 0x00000200, step_1, {true, 5}}, TaskSwitch{0x00000280, 0x00402000, step_2, {false, 7}},
          Sample{{false, 7}, step_3}, UserData{{false, 7}, 0xCAFE0001}, Pad{}, Pad{}},
         in(TraceMode::task));
}

// Section 10.2.
// Requirements: R50 R51 R52 R77 R78 R45 R106 R117
TEST(Packet, CompressedFlowWithLoops) {
    same(R"(FFF0A20F 00402011 FFF0A20E 00403000 FFF0A60F 00403008 0000001E FFF0A80F
            0040301C 00000012 00403029 FFF0A20E 00402014 FFF0AA01 FFF0AA01 FFF0AA01)",
         {ContextEntry{{false, 7}}, CompressedFlow{0x00402010, 0x00403000, {false, 7}}, ShortLoop{7, 0x00403008, 15},
          LongLoop{7, 0x0040301C, 9}, CompressedFlow{0x00403028, 0x00402014, {false, 7}}, Closed{}, Closed{}, Closed{}},
         in(TraceMode::eonce_comp));
}

// Section 10.3.
// Requirements: R66 R122 R123
TEST(Packet, FlowEntry) {
    same("00402011 FFFFCF8E FFFFF932 FFFFFFFE FFFFF19E FFFFFF92 FFFFFFF8 FFF0A20E 00403000",
         {Flow{0x00402010, 0x00403000, step_3, {false, 7}}}, in(TraceMode::flow));
}

// Section 10.4.
TEST(Packet, GapOfLostEntries) { same("FFF0AE01 00000258", {GapEntry{300}}, in(TraceMode::flow)); }

// Section 10.4.
// Requirements: R71
TEST(Packet, SampleOnEdca5) {
    same("FFF0A40B FFFFF69E FFFFFEAA FFFFFFFE FFFFFD56 FFFFFFD4 FFFFFFFC FFF0A000", {Sample{{true, 5}, step_2}},
         in(TraceMode::edca5));
}

// Section 10.4.
// Requirements: R23
TEST(Packet, RawWithEonceCounter) {
    TraceFormat format = in(TraceMode::eonce_raw);
    format.eonce_counters = 1;
    same("00402011 00403000 FFFFFE00 00403009 FFFFFDFE",
         {RawPair{0x00402010, 0x00403000, {0x7FFFFF00, 0}}, RawPc{0x00403008, {0x7FFFFEFF, 0}}}, format);
}

TEST(Packet, RawWithBothCountersOrNone) {
    TraceFormat format = in(TraceMode::eonce_raw);
    same("00402011 00403000 00403009", {RawPair{0x00402010, 0x00403000, {}}, RawPc{0x00403008, {}}}, format);
    format.eonce_counters = 2;
    same("00402011 00403000 FFFFFE00 00000002 00403009 FFFFFDFE FFFFFFFE",
         {RawPair{0x00402010, 0x00403000, {0x7FFFFF00, 1}}, RawPc{0x00403008, {0x7FFFFEFF, 0x7FFFFFFF}}}, format);
}

TEST(Packet, MarkInCompressedTrace) {
    same("00402011 FFF0A40E", {CompressedPc{0x00402010, {true, 7}}}, in(TraceMode::eonce_comp));
}

// Literal user data: any word, also those with which the unit fills lines, unless a line ends with them.
TEST(Packet, UserRaw) {
    const TraceFormat format = in(TraceMode::user_raw);
    same("00000000 CAFE0001 FFF0A000 FFF0A20F FFF0AA01 FFF0A001 00000003",
         {UserRaw{0}, UserRaw{0xCAFE0001}, UserRaw{0xFFF0A000}, UserRaw{0xFFF0A20F}, UserRaw{0xFFF0AA01},
          UserRaw{0xFFF0A001}, UserRaw{3}},
         format);
    // A hold fills the rest of a line or a whole one; where tracing ends, the rest of the last line is filled.
    const std::string line = "00000001 00000002 00000003 00000004 00000005 00000006 ";
    const std::vector<Entry> data{UserRaw{1}, UserRaw{2}, UserRaw{3}, UserRaw{4}, UserRaw{5}, UserRaw{6}};
    const auto with = [&](std::vector<Entry> more) {
        more.insert(more.begin(), data.begin(), data.end());
        return more;
    };
    same(line + "FFF0A001 FFF0A001 00000003", with({Pad{}, Pad{}, UserRaw{3}}), format);
    same(line + "FFF0AA01 FFF0AA01", with({Closed{}, Closed{}}), format);
    same(line + "FFF0AA01 FFF0AA01 00000003", with({UserRaw{0xFFF0AA01}, UserRaw{0xFFF0AA01}, UserRaw{3}}), format);
    same(line + "FFF0AA01 FFF0A001 00000003", with({UserRaw{0xFFF0AA01}, Pad{}, UserRaw{3}}), format);
    same(line + "FFF0A001", with({UserRaw{0xFFF0A001}}), format);
    // At the end of tracing, such filling is never a whole line: the first word is one of the program's words.
    const std::string closed = " FFF0AA01 FFF0AA01 FFF0AA01 FFF0AA01 FFF0AA01 FFF0AA01 FFF0AA01 FFF0AA01";
    same(line + "00000007 00000008" + closed,
         with({UserRaw{7}, UserRaw{8}, UserRaw{0xFFF0AA01}, Closed{}, Closed{}, Closed{}, Closed{}, Closed{}, Closed{},
               Closed{}}),
         format);
}

// A counter at zero is a word of zero.
TEST(Packet, CounterAtZero) {
    same("FFF0A20F 00000000 00000000 00000000 00000000 00000000 00000000 FFF0A000", {Sample{{false, 7}, {}}},
         in(TraceMode::sw_sample));
}

// Section 6.1, the table of flags with the default base.
// Requirements: R56 R58 R59 R60 R62 R63 R124 R125 R126 R127
TEST(Flags, Table) {
    const TraceFormat format;
    struct Row {
        FlagKind kind;
        std::uint32_t word;
    };
    for (const Row& row : {Row{FlagKind::dummy, 0xFFF0A000}, Row{FlagKind::user_task, 0xFFF0A200},
                           Row{FlagKind::supervisor_task, 0xFFF0A400}, Row{FlagKind::short_loop, 0xFFF0A600},
                           Row{FlagKind::long_loop, 0xFFF0A800}, Row{FlagKind::vtb_filled, 0xFFF0AA00},
                           Row{FlagKind::user_data, 0xFFF0AC00}, Row{FlagKind::gap, 0xFFF0AE00}})
        for (unsigned id = 0; id < (has_id(row.kind) ? 256U : 1U); ++id)
            for (const bool first : {false, true}) {
                const Flag flag{row.kind, static_cast<std::uint8_t>(id), first};
                const std::uint32_t word = row.word + 2 * id + (first ? 1 : 0);
                EXPECT_EQ(format.word(flag), word);
                EXPECT_EQ(format.flag(word), flag);
            }
    EXPECT_EQ(format.word({FlagKind::dummy}), default_dpu_base);
}

// Every word of the page is one flag or invalid; no word outside is a flag, and no program counter lies inside.
// Requirements: R57 R63
TEST(Flags, AreNoAddresses) {
    for (const std::uint32_t base : {default_dpu_base, 0x00001000U, 0x80000000U, 0U}) {
        const TraceFormat format{.dpu_base = base, .mode = TraceMode::eonce_raw, .eonce_counters = 0};
        std::set<std::uint32_t> flags;
        for (std::uint32_t word = base; word < base + flag_page_bytes; ++word) {
            const auto flag = format.flag(word);
            if (flag) {
                EXPECT_EQ(format.word(*flag), word);
                flags.insert(word);
            }
            Words out;
            EXPECT_FALSE(encode(out, RawPc{word & ~1U, {}}, format));
            EXPECT_TRUE(out.empty());
        }
        EXPECT_EQ(flags.size(), 2U * (5 * 256 + 3));
        EXPECT_FALSE(format.flag(base - 1));
        EXPECT_FALSE(format.flag(base + flag_page_bytes));
        Words out;
        EXPECT_TRUE(encode(out, RawPc{base + flag_page_bytes, {}}, format));
    }
}

// The encoder writes an entry whole or not at all.
TEST(Packet, WhatCannotBeWritten) {
    const TraceFormat format = in(TraceMode::eonce_comp);
    for (const Entry& entry :
         {Entry(CompressedFlow{0x402011, 0x403000, {}}), Entry(CompressedFlow{0x402010, 0x403001, {}}),
          Entry(CompressedFlow{0xFFF0A200, 0x403000, {}}), Entry(CompressedFlow{0x402010, 0xFFF0AFFE, {}}),
          Entry(ShortLoop{7, 0x403008, 0}), Entry(LongLoop{7, 0x403008, 0x80000000}), Entry(GapEntry{0}),
          Entry(TaskSwitch{0x402010, 0xFFF0A000, {}, {}}), Entry(Flow{0xFFF0A000, 0x402010, {}, {}})}) {
        Words out{1};
        EXPECT_FALSE(encode(out, entry, format));
        EXPECT_EQ(out, Words{1});
    }
}

// First words have bit 0 set, the others not, for all values.
// Requirements: R75 R76
TEST(Packet, BitZeroMarksTheFirstWord) {
    for (const TraceFormat& format : formats()) {
        if (format.mode == TraceMode::user_raw) continue;  // literal
        RandomTrace trace(format, 1);
        for (unsigned i = 0; i < 2000; ++i) {
            const Entry entry = trace.entry();
            Words out;
            ASSERT_TRUE(encode(out, entry, format));
            ASSERT_LE(out.size(), max_entry_words);
            bool has_flag = false;
            for (std::size_t w = 0; w < out.size(); ++w) {
                EXPECT_EQ(out[w] & 1, w == 0 ? 1U : 0U);
                has_flag = has_flag || format.flag(out[w]).has_value();
            }
            // Words passed through from the EOnCE are exempt (7.1).
            EXPECT_TRUE(has_flag || std::holds_alternative<RawPair>(entry) || std::holds_alternative<RawPc>(entry));
        }
    }
}

TEST(Text, RoundTrip) {
    for (const TraceFormat& format : formats()) {
        RandomTrace trace(format, 2);
        for (unsigned i = 0; i < 2000; ++i) {
            const Entry entry = trace.entry();
            const std::string text = std::visit([&](const auto& e) { return to_text(e, format); }, entry);
            const auto read = from_text(text, format);
            ASSERT_TRUE(read.has_value()) << text << ": " << read.error().message;
            EXPECT_EQ(*read, entry) << text;
            (void)explain(entry);
        }
    }
}

TEST(Text, Errors) {
    const TraceFormat format = in(TraceMode::eonce_comp);
    EXPECT_EQ(from_text("NONE", format).error().message, "no trace entry is called 'NONE'");
    for (const std::string text :
         {"CONTEXT", "CONTEXT context=user", "CONTEXT context=user:256", "CONTEXT context=guest:1",
          "SHORT-LOOP id=7 last_address=0x403008 reps=0", "SHORT-LOOP id=7 last_address=0x403009 reps=1",
          "SHORT-LOOP id=7 last_address=0xfff0a000 reps=1", "PAD x=1", "GAP lost=0"})
        EXPECT_FALSE(from_text(text, format).has_value()) << text;
}

}  // namespace
