// The answers file: what is written is read again, damage is reported, other versions are read as docs/answers-file.md
// says. And merging, of which the file is the witness: the same bytes in any order and by any tree.
#include "waymark/answers/file.h"

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "support/any_answers.h"
#include "support/random.h"
#include "support/sanitized.h"

namespace waymark::answers {
namespace {

using Buffer = std::vector<std::uint8_t>;

Buffer written(const Answers& a) {
    ByteCollector out;
    write_answers(a, out);
    return out.take();
}
std::string why(const Buffer& file) {
    const auto read = read_answers(file, "file");
    return read ? "" : read.error().message;
}

/// Where each section of a file begins, by name.
std::map<std::string, Buffer> sections_of(const Buffer& file) {
    std::map<std::string, Buffer> out;
    for (std::size_t at = 16; file[at] != 0;) {
        const std::size_t name = file[at];
        std::uint64_t stored = 0;
        for (unsigned b = 0; b < 8; ++b) stored |= std::uint64_t{file[at + 18 + name + b]} << 8 * b;
        const auto begin = file.begin() + static_cast<std::ptrdiff_t>(at);
        const std::size_t size = 26 + name + stored + 4;
        out[{begin + 1, begin + 1 + static_cast<std::ptrdiff_t>(name)}] = {begin,
                                                                           begin + static_cast<std::ptrdiff_t>(size)};
        at += size;
    }
    return out;
}
/// The tables in which two files differ.
std::string difference(const Buffer& a, const Buffer& b) {
    if (a == b) return {};
    const auto x = sections_of(a), y = sections_of(b);
    std::string out = "differ:";
    for (const auto& [name, bytes] : x)
        if (!y.contains(name) || y.at(name) != bytes) out += " " + name;
    for (const auto& [name, bytes] : y)
        if (!x.contains(name)) out += " " + name;
    return out;
}

void put(Buffer& out, std::uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) out.push_back(static_cast<std::uint8_t>(value >> 8 * i));
}
std::uint32_t sum_of(const std::uint8_t* bytes, std::size_t size) {
    return static_cast<std::uint32_t>(crc32(0, bytes, static_cast<uInt>(size)));
}
/// A section as the document has it.
Buffer section(const std::string& name, std::uint8_t flags, std::uint64_t rows, const Buffer& table) {
    Buffer stored(ZSTD_compressBound(table.size()));
    stored.resize(ZSTD_compress(stored.data(), stored.size(), table.data(), table.size(), 1));
    Buffer out{static_cast<std::uint8_t>(name.size())};
    out.insert(out.end(), name.begin(), name.end());
    out.push_back(flags);
    put(out, rows, 8);
    put(out, table.size(), 8);
    put(out, stored.size(), 8);
    out.insert(out.end(), stored.begin(), stored.end());
    put(out, sum_of(out.data(), out.size()), 4);
    return out;
}
Buffer file_of(const std::vector<Buffer>& sections, std::uint32_t version = 1) {
    Buffer out{0x89, 0x57, 0x4d, 0x41, 0x4e, 0x53, 0x0d, 0x0a};
    put(out, version, 4);
    put(out, 0, 4);
    for (const Buffer& s : sections) out.insert(out.end(), s.begin(), s.end());
    out.push_back(0);
    put(out, sections.size(), 4);
    put(out, sum_of(out.data(), out.size()), 4);
    return out;
}
Buffer text_column(const std::string& name, const std::vector<std::string>& values) {
    Buffer data;
    for (const std::string& value : values) {
        data.push_back(static_cast<std::uint8_t>(value.size()));
        data.insert(data.end(), value.begin(), value.end());
    }
    Buffer out{static_cast<std::uint8_t>(name.size())};
    out.insert(out.end(), name.begin(), name.end());
    out.push_back(2);
    out.push_back(static_cast<std::uint8_t>(data.size()));
    out.insert(out.end(), data.begin(), data.end());
    return out;
}
Buffer joined(std::initializer_list<Buffer> parts) {
    Buffer out;
    for (const Buffer& part : parts) out.insert(out.end(), part.begin(), part.end());
    return out;
}
// The bytes alone could agree if writer and reader both forgot the same field.
Buffer head() { return section("head", 0, 1, joined({{1}, text_column("capture", {"c"})})); }
Buffer metrics() { return section("metrics", 0, 1, joined({{1}, text_column("name", {"n"})})); }

TEST(AnswersFile, WhatIsWrittenIsRead) {
    for (std::uint64_t seed = 0; seed < sized(120U, 30U); ++seed) {
        const Answers a = support::any_answers(seed);
        const Buffer file = written(a);
        const auto read = read_answers(file, "file");
        ASSERT_TRUE(read) << read.error().message << " seed " << seed;
        EXPECT_EQ(written(*read), file) << "seed " << seed;
        // The bytes alone could agree if both forgot the same.
        ASSERT_EQ(read->instructions.size(), a.instructions.size());
        for (std::size_t i = 0; i < a.instructions.size(); ++i) {
            EXPECT_EQ(read->instructions[i].address, a.instructions[i].address);
            EXPECT_EQ(read->instructions[i].costs, a.instructions[i].costs);
            EXPECT_EQ(read->instructions[i].inlined, a.instructions[i].inlined);
            EXPECT_EQ(read->instructions[i].text, a.instructions[i].text);
        }
        EXPECT_EQ(read->hides_others, a.hides_others);
        ASSERT_EQ(read->images.size(), a.images.size());
        for (std::size_t i = 0; i < a.images.size(); ++i) {
            EXPECT_EQ(read->images[i].has_symbols, a.images[i].has_symbols);
            EXPECT_EQ(read->images[i].load_bias, a.images[i].load_bias);
            EXPECT_EQ(read->images[i].hides, a.images[i].hides);
        }
        ASSERT_EQ(read->tables.size(), a.tables.size());
        for (std::size_t i = 0; i < a.tables.size(); ++i) {
            ASSERT_EQ(read->tables[i].rows.size(), a.tables[i].rows.size());
            for (std::size_t r = 0; r < a.tables[i].rows.size(); ++r)
                for (std::size_t c = 0; c < a.tables[i].rows[r].size(); ++c) {
                    EXPECT_EQ(read->tables[i].rows[r][c].shown, a.tables[i].rows[r][c].shown);
                    EXPECT_EQ(read->tables[i].rows[r][c].value.get(), a.tables[i].rows[r][c].value.get());
                }
        }
        EXPECT_EQ(read->timeline.axis.unit, a.timeline.axis.unit);
        EXPECT_EQ(read->cut, a.cut);
    }
}

TEST(AnswersFile, IsWhatTheDocumentSays) {
    const Buffer functions = joined({{3},
                                     text_column("name", {"f", "g"}),
                                     // 0x1000, then 0x0ffe: twice 0x1000, and 2 * 2 - 1.
                                     {7, 'a', 'd', 'd', 'r', 'e', 's', 's', 1, 3, 0x80, 0x40, 0x03},
                                     {5, 'i', 'm', 'a', 'g', 'e', 4, 2, 0, 1}});
    const Buffer images = joined(
        {{2}, text_column("name", {"p"}), {11, 'h', 'a', 's', '_', 's', 'y', 'm', 'b', 'o', 'l', 's', 6, 2, 1, 1}});
    // Lists of numbers: none in the first row, {5, 300} in the second.
    const Buffer costs{2, 0, 2, 1, 5, 'v', 'a', 'l', 'u', 'e', 0, 3, 5, 0xac, 0x02};
    const Buffer lines = joined({{2},
                                 {4, 'l', 'i', 'n', 'e', 1, 2, 6, 2},
                                 {5, 'c', 'o', 's', 't', 's', 7, static_cast<std::uint8_t>(costs.size())},
                                 costs});
    const auto read = read_answers(file_of({head(), metrics(), section("images", 0, 1, images),
                                            section("functions", 0, 2, functions), section("lines", 0, 2, lines)}),
                                   "file");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->capture, "c");
    ASSERT_EQ(read->functions.size(), 2U);
    EXPECT_EQ(read->functions[1].name, "g");
    EXPECT_EQ(read->functions[0].address, 0x1000U);
    EXPECT_EQ(read->functions[1].address, 0xffeU);
    EXPECT_EQ(read->functions[0].image, none);
    EXPECT_EQ(read->functions[1].image, 0U);
    EXPECT_EQ(read->images[0].has_symbols, true);
    ASSERT_EQ(read->lines.size(), 2U);
    EXPECT_EQ(read->lines[1].line, 4U);
    EXPECT_TRUE(read->lines[0].costs.empty());
    EXPECT_EQ(read->lines[1].costs, (Costs{5, 300}));
}

/// Answers with `count` inlined calls of two functions, in turn.
Answers with_inlined_calls(std::uint32_t count, const std::string& name) {
    Answers a;
    a.capture = "c";
    a.metrics.push_back({"n", "n"});
    a.functions.emplace_back().name = "main";
    for (std::uint32_t i = 0; i < count; ++i)
        a.inlined.push_back({none, 0, i % 2 == 0 ? name : "other", i % 2 == 0 ? "" : "linkage", none, i, 0, 0});
    return a;
}

TEST(AnswersFile, NamesOfInlinedCallsAreStoredOnce) {
    const std::string name(100'000, 'n');
    const Buffer file = written(with_inlined_calls(9, name));
    const auto at = sections_of(file).at("inlined");
    std::uint64_t plain = 0;
    for (unsigned b = 0; b < 8; ++b) plain |= std::uint64_t{at[1 + 7 + 1 + 8 + b]} << 8 * b;
    EXPECT_LT(plain, name.size() + 1'000);
    const auto read = read_answers(file, "file");
    ASSERT_TRUE(read) << read.error().message;
    ASSERT_EQ(read->inlined.size(), 9U);
    for (std::size_t i = 0; i < 9; ++i) {
        EXPECT_EQ(read->inlined[i].name.str(), i % 2 == 0 ? name : "other");
        EXPECT_EQ(read->inlined[i].linkage_name.str(), i % 2 == 0 ? "" : "linkage");
        // Equal names are one text in memory, too.
        EXPECT_EQ(read->inlined[i].name.str().data(), read->inlined[i % 2].name.str().data());
    }
}

TEST(AnswersFile, NamesOfInlinedCallsMayBeTexts) {
    const Buffer inlined = section("inlined", 0, 2, joined({{1}, text_column("name", {"f", "f"})}));
    const auto read = read_answers(file_of({head(), metrics(), inlined}), "file");
    ASSERT_TRUE(read) << read.error().message;
    ASSERT_EQ(read->inlined.size(), 2U);
    EXPECT_EQ(read->inlined[1].name.str(), "f");
}

TEST(AnswersFile, NamesOfInlinedCallsThatAreNotThereAreDamage) {
    const auto of = [&](std::vector<std::uint8_t> data, std::uint64_t rows) {
        Buffer column{4, 'n', 'a', 'm', 'e', 8, static_cast<std::uint8_t>(data.size())};
        column.insert(column.end(), data.begin(), data.end());
        return why(file_of({head(), metrics(), section("inlined", 0, rows, joined({{1}, column}))}));
    };
    EXPECT_EQ(of({0, 1, 'f', 1}, 2), "");
    EXPECT_NE(of({0, 1, 'f', 2}, 2).find("its column name"), std::string::npos);
    EXPECT_NE(of({1}, 1).find("its column name"), std::string::npos);
    EXPECT_NE(of({0, 5, 'f'}, 1).find("its column name"), std::string::npos);
}

TEST(AnswersFile, OtherVersions) {
    // Columns that a later version adds are skipped; columns that it leaves out have their defaults.
    const Buffer later = section("weather", 0, 1, joined({{1}, text_column("sky", {"blue"})}));
    const Buffer images =
        section("images", 0, 1, joined({{2}, text_column("name", {"p"}), text_column("colour", {"red"})}));
    const auto read = read_answers(file_of({head(), later, metrics(), images}), "file");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->images[0].name, "p");
    EXPECT_EQ(read->images[0].build_id, "");
    // Columns that are marked as necessary are not skipped.
    const auto needed = read_answers(
        file_of({head(), metrics(), section("weather", 1, 1, joined({{1}, text_column("sky", {"blue"})}))}), "file");
    ASSERT_FALSE(needed);
    EXPECT_EQ(needed.error().code, Errc::unsupported);
    EXPECT_NE(needed.error().message.find("weather"), std::string::npos);
    const auto version = read_answers(file_of({head(), metrics()}, 2), "file");
    ASSERT_FALSE(version);
    EXPECT_EQ(version.error().code, Errc::unsupported);
    EXPECT_NE(version.error().message.find("version 2"), std::string::npos);
}

TEST(AnswersFile, SaysWhatIsWrong) {
    EXPECT_NE(why({1, 2, 3}).find("not an answers file"), std::string::npos);
    EXPECT_NE(why(file_of({head()})).find("metric"), std::string::npos);
    EXPECT_NE(why(file_of({head(), metrics(), metrics()})).find("twice"), std::string::npos);
    Buffer more = file_of({head(), metrics()});
    more.push_back(0);
    EXPECT_NE(why(more).find("extra bytes follow its end"), std::string::npos);
    // A call tree whose second row has no parent; a line of a source that is not there.
    const Buffer calls{1, 6, 'p', 'a', 'r', 'e', 'n', 't', 4, 2, 0, 0};
    EXPECT_NE(why(file_of({head(), metrics(), section("calls", 0, 2, calls)})).find("does not exist"),
              std::string::npos);
    const Buffer lines{1, 6, 's', 'o', 'u', 'r', 'c', 'e', 4, 1, 7};
    EXPECT_NE(why(file_of({head(), metrics(), section("lines", 0, 1, lines)})).find("does not exist"),
              std::string::npos);
    // 16 MiB of zeros need a few hundred bytes when compressed, and would become a gigabyte of rows.
    const Buffer names = joined({{1}, text_column("name", {"p"})});
    EXPECT_NE(why(file_of({head(), metrics(), section("images", 0, 2, names)})).find("images"), std::string::npos);
    EXPECT_NE(why(file_of({head(), metrics(), section("images", 0, std::uint64_t{1} << 60, names)})).find("images"),
              std::string::npos);
    const Buffer wide{1, 4, 'l', 'i', 'n', 'e', 1, 6, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01};
    EXPECT_NE(why(file_of({head(), metrics(), section("lines", 0, 1, wide)})).find("line"), std::string::npos);
}

TEST(AnswersFile, DoesNotUnpackWithoutEnd) {
    // Damage with correct checksums: every index in the rows that were read leads to a row.
    Buffer table{1, 4, 't', 'e', 'x', 't', 2, 0x80, 0x80, 0x80, 0x08};
    const std::size_t zeros = std::size_t{1} << 24;
    table.resize(table.size() + zeros);
    const Buffer file = file_of({head(), metrics(), section("instructions", 0, zeros, table)});
    EXPECT_LT(file.size(), 4000U);
    EXPECT_NE(why(file).find("memory"), std::string::npos);
}

TEST(AnswersFile, DamageIsSaid) {
    for (std::uint64_t seed = 0; seed < sized(30U, 8U); ++seed) {
        synthetic::Random random(seed);
        const Buffer file = written(support::any_answers(seed));
        for (int i = 0; i < 60; ++i) {
            Buffer damaged = file;
            damaged[random.below(static_cast<std::uint32_t>(file.size()))] ^=
                static_cast<std::uint8_t>(1 + random.below(255));
            EXPECT_NE(why(damaged), "") << "seed " << seed;
            damaged = file;
            damaged.resize(random.below(static_cast<std::uint32_t>(file.size())));
            EXPECT_NE(why(damaged), "") << "seed " << seed;
        }
    }
}

/// No function that uses the rows may crash.
TEST(AnswersFile, WhatIsWrongBehindRightChecksumsIsBounded) {
    std::size_t read_all = 0, refused = 0;
    for (std::uint64_t seed = 0; seed < sized(200U, 40U); ++seed) {
        synthetic::Random random(seed);
        const Buffer whole = written(support::any_answers(seed));
        std::vector<Buffer> sections;
        std::size_t at = 16;
        while (whole[at] != 0) {
            const std::size_t name = whole[at];
            const std::string called(whole.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                                     whole.begin() + static_cast<std::ptrdiff_t>(at + 1 + name));
            std::uint64_t numbers[3]{};
            for (unsigned n = 0; n < 3; ++n)
                for (unsigned b = 0; b < 8; ++b) numbers[n] |= std::uint64_t{whole[at + 2 + name + 8 * n + b]} << 8 * b;
            const std::size_t data = at + 2 + name + 24;
            Buffer table(numbers[1]);
            ASSERT_EQ(ZSTD_decompress(table.data(), table.size(), whole.data() + data, numbers[2]), table.size());
            if (random.below(10) == 0 && !table.empty())
                table[random.below(static_cast<std::uint32_t>(table.size()))] ^=
                    static_cast<std::uint8_t>(1U << random.below(8));
            sections.push_back(section(called, 0, numbers[0] + (random.below(20) == 0 ? random.below(3) : 0), table));
            at = data + numbers[2] + 4;
        }
        const auto read = read_answers(file_of(sections), "file");
        ++(read ? read_all : refused);
        if (!read) continue;
        // Programs are searched by these identifiers, and files are named after them.
        static_cast<void>(function_costs(*read));
        static_cast<void>(inlined_costs(*read));
        static_cast<void>(written(merged(std::array{&*read, &*read})));
    }
    EXPECT_GT(read_all, 0U);
    EXPECT_GT(refused, 0U);
}

/// Merges any two of the remaining answers until one is left.
TEST(AnswersFile, IdentifiersAreChecked) {
    const auto wrong = [](auto&& change) {
        Answers a;
        a.capture = "c";
        a.metrics.push_back({"n", "n"});
        a.images.push_back({"p", "/bin/p", "0123456789abcdef0123456789abcdef01234567"});
        a.sources.push_back({"/src/p.c"});
        change(a);
        return why(written(a));
    };
    using namespace std::string_literals;
    EXPECT_EQ(wrong([](Answers&) {}), "");
    for (const std::string& id : {"ab\0"s, "\0"s, "../../x"s, "ab cd"s, std::string(129, 'a')})
        EXPECT_NE(wrong([&](Answers& a) { a.images[0].build_id = id; }).find("the build ID of its image 0"),
                  std::string::npos)
            << id;
    EXPECT_NE(wrong([](Answers& a) { a.images[0].name = "p\0x"s; }).find("NUL"), std::string::npos);
    EXPECT_NE(wrong([](Answers& a) { a.images[0].path = "p\0x"s; }).find("NUL"), std::string::npos);
    EXPECT_NE(wrong([](Answers& a) { a.sources[0].path = "p\0x"s; }).find("NUL"), std::string::npos);
    EXPECT_NE(wrong([](Answers& a) { a.capture = "p\0x"s; }).find("NUL"), std::string::npos);
}

TEST(AnswersFile, ParentsAreEarlierRows) {
    const auto is_read = [](auto&& change) {
        Answers a;
        a.metrics.push_back({"n", "n"});
        a.functions.resize(2);
        a.calls = {{none, none, CallNode::Kind::root, 0, {}},
                   {0, 0, CallNode::Kind::call, 1, {}},
                   {1, 1, CallNode::Kind::call, 1, {}}};
        a.inlined.resize(2);
        a.timeline.tracks = {{"a", none}, {"b", 0}, {"c", none}};
        change(a);
        return why(written(a)).empty();
    };
    EXPECT_TRUE(is_read([](Answers&) {}));
    EXPECT_FALSE(is_read([](Answers& a) { a.calls[1].parent = 1; })) << "its own parent";
    EXPECT_FALSE(is_read([](Answers& a) { a.calls[1].parent = 2; }));
    EXPECT_FALSE(is_read([](Answers& a) { a.calls[1].parent = none; })) << "a second root";
    EXPECT_FALSE(is_read([](Answers& a) { a.calls[0].parent = 0; }));
    EXPECT_FALSE(is_read([](Answers& a) { a.inlined[1].parent = 1; }));
    EXPECT_TRUE(is_read([](Answers& a) { a.inlined[1].parent = 0; }));
    EXPECT_FALSE(is_read([](Answers& a) { a.timeline.tracks[1].parent = 1; }));
}

TEST(AnswersFile, Document) {
    const std::string path = WAYMARK_SOURCE_DIR "/docs/answers-file.md";
    if (std::getenv("WM_UPDATE_APPROVED") != nullptr) std::ofstream(path) << answers_document();
    std::ifstream in(path);
    std::ostringstream text;
    text << in.rdbuf();
    EXPECT_EQ(text.str(), answers_document()) << "run with WM_UPDATE_APPROVED=1, then read the difference";
}

// ---- merging

Answers merged_pair(const Answers& a, const Answers& b) { return merged(std::array{&a, &b}); }

TEST(MergedAnswers, AreTheSameBytesByAnyTree) {
    for (std::uint64_t seed = 0; seed < sized(150U, 40U); ++seed) {
        synthetic::Random random(seed);
        std::vector<Answers> leaves;
        for (std::uint32_t i = 2 + random.below(5); i != 0; --i) leaves.push_back(support::any_answers(random()));
        std::vector<const Answers*> all;
        for (const Answers& a : leaves) all.push_back(&a);
        const Buffer at_once = written(merged(all));
        // Half of the sums also pass through a file.
        std::vector<Answers> left = leaves;
        while (left.size() > 1) {
            const auto take = [&] {
                const std::size_t at = random.below(static_cast<std::uint32_t>(left.size()));
                Answers out = std::move(left[at]);
                left.erase(left.begin() + static_cast<std::ptrdiff_t>(at));
                return out;
            };
            Answers a = take();
            const Answers b = take();
            a = merged_pair(a, b);
            // By way of a file, too.
            if (random.half()) {
                auto read = read_answers(written(a), "file");
                ASSERT_TRUE(read) << read.error().message << " seed " << seed;
                a = std::move(*read);
            }
            left.push_back(std::move(a));
        }
        ASSERT_EQ(difference(written(left.front()), at_once), "") << "seed " << seed;
    }
}

TEST(MergedAnswers, Saturate) {
    Answers a;
    a.metrics.push_back({"instructions", "instructions"});
    a.images.push_back({"program", {}, "aa"});
    a.ranges.push_back({0, 0x10, 0x20, isa::Isa::a64, 5, ~std::uint64_t{0} - 1});
    a.functions.push_back({"f", "f", 0, 0x10, 16});
    Instruction i;
    i.address = 0x10;
    i.function = 0;
    i.times = ~std::uint64_t{0};
    i.costs = {~std::uint64_t{0}};
    a.instructions.push_back(i);
    const Answers sum = merged_pair(a, a);
    EXPECT_EQ(sum.ranges.at(0).times, ~std::uint64_t{0});
    EXPECT_EQ(sum.instructions.at(0).times, ~std::uint64_t{0});
    EXPECT_EQ(sum.instructions.at(0).costs, Costs{~std::uint64_t{0}});
}

TEST(MergedAnswers, FindCodeWhereverItWasLoaded) {
    const auto loaded = [](std::uint64_t bias, std::uint64_t times) {
        Answers a;
        a.capture = "at " + std::to_string(bias);
        a.metrics.push_back({"instructions", "instructions"});
        a.images.push_back({"program", {}, "aa"});
        a.images.back().load_bias = bias;
        a.functions.push_back({"f", "f", 0, bias + 0x100, 16});
        Instruction i;
        i.address = bias + 0x104;
        i.function = 0;
        i.times = times;
        a.instructions.push_back(i);
        a.edges.push_back({bias + 0x104, bias + 0x100, 0, 0, Branch::Kind::conditional, times});
        a.loops.push_back({bias + 0x100, bias + 0x104, 0, none, 0, 1, times});
        return a;
    };
    const Answers sum = merged_pair(loaded(0x5000, 3), loaded(0x4000, 4));
    ASSERT_EQ(sum.instructions.size(), 1U);
    EXPECT_EQ(sum.images.at(0).load_bias, 0x4000U);
    EXPECT_EQ(sum.instructions[0].address, 0x4104U);
    EXPECT_EQ(sum.instructions[0].times, 7U);
    ASSERT_EQ(sum.edges.size(), 1U);
    EXPECT_EQ(sum.edges[0].to, 0x4100U);
    EXPECT_EQ(sum.edges[0].times, 7U);
    ASSERT_EQ(sum.loops.size(), 1U);
    EXPECT_EQ(sum.loops[0].tail, 0x4104U);
    ASSERT_EQ(sum.parts.size(), 2U);
    EXPECT_EQ(sum.capture, "2 captures");
}

TEST(MergedAnswers, SayWhatIsLeftOut) {
    Answers a, b;
    a.metrics = b.metrics = {{"instructions", "instructions"}};
    a.timeline.tracks = {{"core 0"}};
    a.timeline.slices = {{0, 1, 0, none, 0, 1}};
    a.charts.emplace_back().title = "latency";
    b.tables = {{"tasks", {}, {}, {}}};
    b.calls = {{none, none, CallNode::Kind::root, 0, {0}}};
    const Answers sum = merged_pair(a, b);
    EXPECT_EQ(sum.timeline.slices.size(), 1U);
    std::string said;
    for (const Finding& f : sum.health) said += f.what + "\n";
    for (const char* what : {"timeline", "Charts and the unit's own tables", "The call tree"})
        EXPECT_NE(said.find(what), std::string::npos) << what;
}

}  // namespace
}  // namespace waymark::answers
