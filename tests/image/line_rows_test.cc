/// Handmade line-number programs (DWARF 5, section 6.2.5): which of several rows at one address has code.
#include "../../src/image/line_rows.h"

#include <gtest/gtest.h>

#include <string>

namespace waymark::image {
namespace {

using Octets = std::vector<std::uint8_t>;

void append(Octets& to, const Octets& more) { to.insert(to.end(), more.begin(), more.end()); }
void number(Octets& to, std::uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) to.push_back(static_cast<std::uint8_t>(value >> 8 * i));
}

constexpr std::uint64_t meeting = 0x20000;  // where one sequence ends and another begins

struct Head {
    unsigned version = 4;
    bool wide = false;  // 64-bit DWARF
    std::uint8_t least_bytes = 1, operations = 1, line_range = 12, first_special = 13;
};
/// A table of one program, whose operations are given.
Octets table(const Octets& operations, const Head& head = {}) {
    constexpr std::uint8_t operands[] = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 2, 0};
    Octets fields{head.least_bytes};
    if (head.version >= 4) fields.push_back(head.operations);
    append(fields, {1, 0xfd, head.line_range, head.first_special});  // default of is_stmt, least line
    for (unsigned i = 1; i < head.first_special; ++i) fields.push_back(operands[i - 1]);
    append(fields, {0, 'f', 0, 0, 0, 0, 0});  // no folders, one file
    Octets contents;
    number(contents, head.version, 2);
    if (head.version == 5) append(contents, {8, 0});
    number(contents, fields.size(), head.wide ? 8 : 4);
    append(contents, fields);
    append(contents, operations);
    Octets out;
    if (head.wide) number(out, 0xffffffff, 4);
    number(out, contents.size(), head.wide ? 8 : 4);
    append(out, contents);
    return out;
}

const Octets add_row{1}, end_sequence{0, 1, 1};
Octets set_address(std::uint64_t address, unsigned bytes = 8) {
    Octets out{0, static_cast<std::uint8_t>(bytes + 1), 2};
    number(out, address, bytes);
    return out;
}
Octets joined(std::initializer_list<Octets> all) {
    Octets out;
    for (const Octets& one : all) append(out, one);
    return out;
}
/// A sequence whose code begins at `meeting`, and one that begins `before` bytes earlier and gets there by
/// `operations`.
Octets begins_there() { return joined({set_address(meeting), add_row, {2, 8}, end_sequence}); }
Octets ends_there(const Octets& operations, std::uint64_t before) {
    return joined({set_address(meeting - before), add_row, operations, add_row, end_sequence});
}

TEST(LineRows, ARowWhereItsSequenceEndsHasNoCode) {
    const LineRows rows(table(joined({begins_there(), ends_there({2, 16}, 16)})), 0);
    EXPECT_FALSE(rows.empty());
    EXPECT_TRUE(rows.shared(meeting));
    EXPECT_TRUE(rows.has_code(meeting, 0, 2));
    EXPECT_FALSE(rows.has_code(meeting, 1, 2));
    EXPECT_EQ(rows.last_with_code(meeting, 2), 0U);
    // The caller sees another number of rows.
    EXPECT_TRUE(rows.has_code(meeting, 1, 3));
    EXPECT_EQ(rows.last_with_code(meeting, 3), std::nullopt);
    for (const std::uint64_t address : {meeting - 16, meeting + 8, meeting + 1}) {
        EXPECT_FALSE(rows.shared(address));
        EXPECT_TRUE(rows.has_code(address, 0, 1));
        EXPECT_EQ(rows.last_with_code(address, 1), std::nullopt);
    }
}

TEST(LineRows, TheLastRowMayBeTheOneWithCode) {
    const LineRows rows(table(joined({ends_there({2, 16}, 16), begins_there()})), 0);
    EXPECT_FALSE(rows.empty());
    EXPECT_FALSE(rows.shared(meeting));
    EXPECT_FALSE(rows.has_code(meeting, 0, 2));
    EXPECT_TRUE(rows.has_code(meeting, 1, 2));
    EXPECT_EQ(rows.last_with_code(meeting, 2), 1U);
}

TEST(LineRows, AnAddressWithRowsOfOneKindIsNotKept) {
    EXPECT_TRUE(LineRows().empty());
    EXPECT_TRUE(LineRows(table(begins_there()), 0).empty());
    EXPECT_TRUE(LineRows(table(ends_there({2, 16}, 16)), 0).empty());
    EXPECT_TRUE(LineRows(table(joined({ends_there({2, 16}, 16), ends_there({2, 8}, 8)})), 0).empty());
    EXPECT_TRUE(LineRows(table(joined({begins_there(), ends_there({2, 16}, 17)})), 0).empty());
}

TEST(LineRows, EachOperationAdvancesAsTheStandardSays) {
    const auto arrives = [](const Octets& operations, std::uint64_t bytes, Head head = {.least_bytes = 4}) {
        const Octets made = table(joined({begins_there(), ends_there(operations, bytes)}), head);
        return LineRows(made, 0).shared(meeting);
    };
    EXPECT_TRUE(arrives({13 + 12 * 5 + 3}, 20)) << "special";
    EXPECT_TRUE(arrives({13 + 11, 2, 1}, 4)) << "a special one that advances the line alone";
    EXPECT_TRUE(arrives({255}, 80)) << "the last special one";
    EXPECT_TRUE(arrives({2, 0xc8, 0x01}, 800)) << "advance_pc";
    EXPECT_TRUE(arrives({8}, 80)) << "const_add_pc";
    EXPECT_TRUE(arrives({9, 0x34, 0x12}, 0x1234)) << "fixed_advance_pc";
    EXPECT_TRUE(arrives({2, 1, 8, 9, 2, 0, 8, 13 + 12}, 4 + 80 + 2 + 80 + 4)) << "one after the other";
    EXPECT_TRUE(arrives(set_address(meeting), 100)) << "set_address";
    EXPECT_TRUE(arrives(set_address(meeting, 4), 100)) << "set_address of four bytes";
    // What changes other registers.
    for (const Octets& other : std::initializer_list<Octets>{{3, 0xff, 0x7f},
                                                             {4, 1},
                                                             {5, 0x80, 0x01},
                                                             {6},
                                                             {7},
                                                             {10},
                                                             {11},
                                                             {12, 0x82, 0x01},
                                                             {0, 2, 4, 2},
                                                             {0, 0x83, 0x00, 0x80, 1, 1},
                                                             {0, 0},
                                                             {0, 10, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1}})
        EXPECT_TRUE(arrives(joined({other, {2, 1}}), 4)) << unsigned{other[0]};
    // The table says how many operands an operation has, and from where on they are special.
    EXPECT_TRUE(arrives({13, 8, 0x88, 0x08, 14, 2, 1}, 4, {.least_bytes = 4, .first_special = 15}));
    EXPECT_TRUE(arrives({8, 15 + 12}, 80 + 4, {.least_bytes = 4, .first_special = 15}));
    EXPECT_TRUE(arrives({8, 10 + 14}, 17 + 1, {.line_range = 14, .first_special = 10}));
    EXPECT_TRUE(arrives({8, 255}, 2 * 242, {.line_range = 1}));
}

TEST(LineRows, OfEachVersion) {
    for (const unsigned version : {1U, 2U, 3U, 4U, 5U, 6U})
        for (const bool wide : {false, true}) {
            const Head head{.version = version, .wide = wide};
            const Octets made = table(joined({begins_there(), ends_there({2, 16}, 16)}), head);
            EXPECT_EQ(LineRows(made, 0).shared(meeting), version >= 2 && version <= 5) << version << wide;
        }
    const Octets operations = joined({begins_there(), ends_there({2, 16}, 16)});
    EXPECT_TRUE(LineRows(table(operations, {.operations = 2}), 0).empty()) << "several operations of an instruction";
    EXPECT_TRUE(LineRows(table(operations, {.line_range = 0}), 0).empty());
    EXPECT_TRUE(LineRows(table(operations, {.first_special = 0}), 0).empty());
}

TEST(LineRows, OfOneTableAmongOthers) {
    const Octets with = table(joined({begins_there(), ends_there({2, 16}, 16)})), without = table(begins_there());
    const Octets section = joined({without, with, without});
    EXPECT_TRUE(LineRows(section, 0).empty());
    EXPECT_TRUE(LineRows(section, without.size()).shared(meeting));
    EXPECT_TRUE(LineRows(section, without.size() + with.size()).empty());
    EXPECT_TRUE(LineRows(section, section.size()).empty());
    EXPECT_TRUE(LineRows(section, ~std::uint64_t{0}).empty());
}

TEST(LineRows, ThereAreNoneOfADamagedTable) {
    for (const bool wide : {false, true}) {
        const Octets good = table(joined({begins_there(), ends_there({2, 16}, 16)}), {.version = 5, .wide = wide});
        for (std::size_t keep = 0; keep < good.size(); ++keep)
            EXPECT_TRUE(LineRows(Bytes(good).first(keep), 0).empty()) << keep;
    }
    // The table is as long as it says, but an operation, or the head, is cut.
    EXPECT_TRUE(LineRows(table(joined({begins_there(), ends_there({2, 16}, 16), {9, 0}})), 0).empty());
    EXPECT_TRUE(LineRows(table(joined({begins_there(), ends_there({2, 16}, 16), {0, 9, 2, 0}})), 0).empty());
    Octets head = table(joined({begins_there(), ends_there({2, 16}, 16)}));
    head[6] = 0xff;  // the length of the head
    EXPECT_TRUE(LineRows(head, 0).empty());
}

}  // namespace
}  // namespace waymark::image
