// Names of generated code: perf maps and jitdump files as programs write them, damaged ones, and which name applies to
// an address.
#include "waymark/image/generated_code.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "support/jitdump.h"
#include "support/temporary_folder.h"

namespace waymark::image {
namespace {

using Dump = JitDump;

class GeneratedCodeFiles : public testing::Test {
protected:
    Result<GeneratedCodeFile> perf_map(const std::string& text) { return read_perf_map(write(text)); }
    Result<GeneratedCodeFile> jitdump(const std::string& bytes) { return read_jitdump(write(bytes)); }
    static std::string text(const GeneratedCodeFile& file) {
        std::string out;
        for (const GeneratedCode& c : file.pieces)
            out += c.name + "@" + std::to_string(c.address.value) + "+" + std::to_string(c.bytes) + ":" +
                   std::string(c.code.begin(), c.code.end()) + " ";
        return out;
    }
    /// The name of each address from `first` on.
    static std::string names(const GeneratedCodeFile& file, const MemoryMap& memory, std::uint64_t first,
                             std::uint64_t count) {
        const NamedPieces found = named_pieces(file.pieces, memory);
        std::string out;
        for (std::uint64_t a = first; a < first + count; ++a) {
            const auto at = std::find_if(found.pieces.begin(), found.pieces.end(), [&](const NamedPiece& p) {
                return a >= p.address.value && a - p.address.value < p.bytes;
            });
            out += at == found.pieces.end() ? "-" : file.pieces[at->from].name;
        }
        return out;
    }

private:
    std::filesystem::path write(const std::string& bytes) {
        const std::filesystem::path path = folder_.path() / "file";
        std::ofstream(path, std::ios::binary) << bytes;
        return path;
    }
    TemporaryFolder folder_;
};

TEST_F(GeneratedCodeFiles, APerfMapHasALineForEachPiece) {
    const auto file = perf_map("1000 10 one\n0x2001 0X4 with blanks \xc3\xa4\r\n\n3000 8\ttab\n4000 8 last");
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(text(*file), "one@4096+16: with blanks \xc3\xa4@8192+4: tab@12288+8: last@16384+8: ");
    EXPECT_TRUE(file->problems.empty());
    EXPECT_TRUE(perf_map("")->pieces.empty());
    EXPECT_EQ(read_perf_map("/nowhere").error().code, Errc::not_found);
}

TEST_F(GeneratedCodeFiles, AJitdumpOfEitherByteOrderHasCodeThatIsLoadedAndMoved) {
    for (const bool big : {false, true}) {
        Dump dump(big);
        dump.load(1, 0x1000, "one", "abcd").load(2, 0x2001, "two", "ef").move(1, 0x1000, 0x3000, 4);
        dump.number(4, 2).number(4, 24).number(8, 0).number(8, 0);  // debug information
        dump.number(4, 99).number(4, 16).number(8, 0);              // of a later version
        dump.number(4, 3).number(4, 16).number(8, 0).load(3, 0x4000, "behind the end", "x");
        const auto file = jitdump(dump.bytes);
        ASSERT_TRUE(file) << file.error().message;
        EXPECT_EQ(text(*file), "one@4096+4:abcd two@8192+2:ef one@12288+4:abcd ");
        EXPECT_TRUE(file->problems.empty());
    }
}

TEST_F(GeneratedCodeFiles, NoByteOfAJitdumpThatIsCutOrChangedHarms) {
    const std::string whole =
        Dump().load(1, 0x1000, "one", "abcd").move(1, 0x1000, 0x3000, 4).load(2, 0x2000, "two", "ef").bytes;
    const std::string all = text(*jitdump(whole));
    for (std::size_t bytes = 1; bytes < whole.size(); ++bytes) {
        const auto file = jitdump(whole.substr(0, bytes));
        if (bytes < 40) {
            EXPECT_FALSE(file) << bytes;
            continue;
        }
        ASSERT_TRUE(file) << bytes;
        EXPECT_TRUE(all.starts_with(text(*file))) << bytes;
        // A cut between two records cannot be noticed.
        const bool between = bytes == 40 || bytes == 40 + 64 || bytes == 40 + 64 + 64;
        EXPECT_EQ(file->problems.size(), between ? 0U : 1U) << bytes;
        if (between) continue;
        EXPECT_NE(file->problems[0].find("offset 0x"), std::string::npos);
    }
    for (std::size_t at = 0; at < whole.size(); ++at)
        for (const char value : {'\0', '\x7f', '\xff'}) {
            std::string changed = whole;
            changed[at] = value;
            static_cast<void>(jitdump(changed));
        }
    EXPECT_EQ(jitdump("").error().code, Errc::bad_format);
}

TEST_F(GeneratedCodeFiles, TheLastNameOfAnAddressHolds) {
    const auto file = perf_map("1000 8 a\n1002 2 b\n1006 4 c\n0ffe 3 d\n");
    EXPECT_EQ(names(*file, {}, 0xffd, 14), "-dddabbaacccc-");
    const NamedPieces found = named_pieces(file->pieces, {});
    EXPECT_EQ(found.replaced, 1U) << "a begins where d is";
    EXPECT_EQ(found.doubtful, 0U);
    EXPECT_EQ(names(*perf_map("fffffffffffffff0 10 e\n"), {}, 0xffffffffffffffef, 3), "-ee");
}

TEST_F(GeneratedCodeFiles, OfSeveralNamesThatOfTheCodeInMemoryHolds) {
    const auto file =
        jitdump(Dump().load(1, 0x1000, "a", "1234").load(2, 0x1000, "b", "5678").load(3, 0x1000, "c", "5699").bytes);
    const auto in = [&](const std::string& code) {
        MemoryMap memory;
        EXPECT_TRUE(memory.add_bytes({code.begin(), code.end()}, {0x1000}));
        const NamedPieces found = named_pieces(file->pieces, memory);
        return names(*file, memory, 0x1000, 4) + " " + std::to_string(found.doubtful);
    };
    EXPECT_EQ(in("1234"), "aaaa 0");
    EXPECT_EQ(in("5678"), "bbbb 0");
    EXPECT_EQ(in("5699"), "cccc 0");
    EXPECT_EQ(in("5670"), "bbbb 1");  // the nearest
    EXPECT_EQ(in("0000"), "cccc 1");  // the last
    EXPECT_EQ(in("56"), "cccc 0");    // no more is known here
    EXPECT_EQ(names(*file, {}, 0x1000, 4), "cccc");
}

// Pages that never ran are not in a capture. Code after them is compared nevertheless.
TEST_F(GeneratedCodeFiles, CodeIsComparedBeyondAHoleInMemory) {
    constexpr std::size_t page = 4096;
    const std::string first(page, 'x'), unknown(page, 'y');
    const auto file = jitdump(
        Dump().load(1, 0x1000, "a", first + unknown + "1234").load(2, 0x1000, "b", first + unknown + "5678").bytes);
    ASSERT_TRUE(file.has_value());
    for (const auto& [code, name, doubtful] : {std::tuple("1234", 'a', 0U), {"5678", 'b', 0U}, {"1290", 'a', 1U}}) {
        MemoryMap memory;
        EXPECT_TRUE(memory.add_bytes({first.begin(), first.end()}, {0x1000}));
        EXPECT_TRUE(memory.add_bytes({code, code + 4}, {0x1000 + 2 * page}));
        EXPECT_EQ(names(*file, memory, 0x1000 + 2 * page, 4), std::string(4, name));
        EXPECT_EQ(named_pieces(file->pieces, memory).doubtful, doubtful) << code;
    }
}

TEST_F(GeneratedCodeFiles, CodeBetweenTwoPiecesHasNoName) {
    const auto file = perf_map("1000 2 a\n1004 2 b\n");
    EXPECT_EQ(names(*file, {}, 0xfff, 8), "-aa--bb-");
    MemoryMap memory;
    EXPECT_TRUE(memory.add_bytes(std::vector<std::uint8_t>(8), {0x1000}));
    EXPECT_EQ(names(*file, memory, 0xfff, 8), "-aa--bb-");
    // A piece of code that another piece divides keeps both ends.
    EXPECT_EQ(names(*perf_map("1000 6 a\n1002 2 b\n"), {}, 0xfff, 8), "-aabbaa-");
}

TEST(SymbolsWithABase, SayWhatTheBaseSaysWhereTheyAreSilent) {
    auto base = std::make_shared<Symbols>();
    base->add("below", {0x1000}, 0x100, SymbolKind::function);
    base->add("beside", {0x2000}, 0x100, SymbolKind::function);
    base->add_area("/lib/file.so", {0x1000}, 0x2000, 0);
    Symbols symbols;
    symbols.set_base(base);
    symbols.add("above", {0x1040}, 0x20, SymbolKind::function);
    EXPECT_EQ(symbols.text({0x1000}), "below");
    EXPECT_EQ(symbols.text({0x1044}), "above+0x4");
    EXPECT_EQ(symbols.text({0x1060}), "below+0x60");
    EXPECT_EQ(symbols.text({0x2110}), "beside+0x110?");
    EXPECT_EQ(symbols.address_of("beside"), Address{0x2000});
    EXPECT_EQ(symbols.address_of("above"), Address{0x1040});
    EXPECT_EQ(symbols.size(), 3U);
    std::string all;
    for (const Symbol& s : symbols.all()) all += std::string(s.name) + " ";
    EXPECT_EQ(all, "below above beside ");
}

TEST(Jitdumps, WhatIsNoneIsRefusedWithTheReason) {
    const TemporaryFolder folder;
    const std::string whole = JitDump().bytes;
    ASSERT_EQ(whole.size(), 40U);
    const auto why = [&](const std::string& bytes) {
        const std::string path = folder.write("dump", bytes);
        const auto read = read_jitdump(path);
        if (read) return std::string("none");
        EXPECT_EQ(read.error().code, Errc::bad_format);
        const std::string begin = path + ": ", end = "; give a jitdump file, or a perf map with --perf-map";
        const std::string& message = read.error().message;
        EXPECT_TRUE(message.starts_with(begin) && message.ends_with(end)) << message;
        return message.substr(begin.size(), message.size() - begin.size() - end.size());
    };
    const auto with = [&](std::size_t place, char value) {
        std::string out = whole;
        out[place] = value;
        return why(out);
    };
    EXPECT_EQ(why(whole), "none");
    EXPECT_EQ(why(whole.substr(0, 3)), "it does not begin with 0x4a695444, so it is not a jitdump file");
    EXPECT_EQ(why("text"), "it does not begin with 0x4a695444, so it is not a jitdump file");
    EXPECT_EQ(why(whole.substr(0, 4)), "it ends inside its header");
    EXPECT_EQ(why(whole.substr(0, 39)), "it ends inside its header");
    EXPECT_EQ(with(4, 2), "it is of version 2; the known version is 1");
    EXPECT_EQ(with(8, 39), "its header claims to be 39 bytes long");
    EXPECT_EQ(with(8, 41), "its header claims to be 41 bytes long");
}

}  // namespace
}  // namespace waymark::image
