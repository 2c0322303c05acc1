#include "waymark/record/vectors.h"

#include <gtest/gtest.h>

namespace waymark::record {
namespace {

constexpr std::uint32_t b = 0xea000010, ldr_pc = 0xe59ff018, nop = 0xe320f000, b_w = 0xb820f000, ldr_w = 0xf018f8df;

std::vector<Address> tables_of(std::uint64_t address, const std::vector<std::uint32_t>& words) {
    std::vector<std::uint8_t> bytes;
    for (const std::uint32_t word : words)
        for (unsigned i = 0; i < 4; ++i) bytes.push_back(static_cast<std::uint8_t>(word >> (8 * i)));
    image::MemoryMap memory;
    EXPECT_TRUE(memory.add_bytes(bytes, {address}).has_value());
    return vector_tables(memory);
}

TEST(VectorTables, AreFoundWhereTheirWordsBranch) {
    const std::vector<Address> without{{0}, {0xffff0000}}, with{{0}, {0x8020}, {0xffff0000}};
    const std::vector<std::uint32_t> before(8, nop);
    const auto behind = [&](std::vector<std::uint32_t> table) {
        table.insert(table.begin(), before.begin(), before.end());
        return tables_of(0x8000, table);
    };
    EXPECT_EQ(behind({b, b, b, b, b, nop, b, b}), with);
    EXPECT_EQ(behind({ldr_pc, ldr_pc, ldr_pc, ldr_pc, ldr_pc, 0, ldr_pc, nop}),
              with);  // the handler of the FIQ is there
    EXPECT_EQ(behind({b_w, b_w, b_w, b_w, b_w, b_w, b_w, b_w}), with);
    EXPECT_EQ(behind({ldr_w, ldr_w, ldr_w, ldr_w, ldr_w, 0, ldr_w, ldr_w}), with);
    EXPECT_EQ(behind({b, b, b, b, b, b, nop, b}), without);             // no IRQ
    EXPECT_EQ(behind({b, nop, b, nop, nop, b, b, b}), without);         // no aborts
    EXPECT_EQ(behind({b, b, b, b, b, nop, b}), without);                // cut off
    EXPECT_EQ(tables_of(0x8010, {b, b, b, b, b, nop, b, b}), without);  // not aligned
}

TEST(VectorTables, AreAtMostSixtyFour) {
    EXPECT_EQ(tables_of(0x8000, std::vector<std::uint32_t>(8000, b)).size(), 64U);
}

}  // namespace
}  // namespace waymark::record
