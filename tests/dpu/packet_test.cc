// Worked examples to the word: entries → words (docs/spec/dpu.md, section 10).
#include <gtest/gtest.h>

#include "waymark/dpu/encoder.h"

namespace {

using namespace waymark::dpu;
using Words = std::vector<std::uint32_t>;

Words encoded(const std::vector<Entry>& entries, const Format& format = {}) {
    Words out;
    for (const Entry& entry : entries) EXPECT_TRUE(encode(out, entry, format));
    return out;
}

const Counters step_1{0x7FFFFC17, 0x7FFFFF87, 0x7FFFFFFF, 0x7FFFFED3, 0x7FFFFFF3, 0x7FFFFFFE};
const Counters step_2{0x7FFFFB4F, 0x7FFFFF55, 0x7FFFFFFF, 0x7FFFFEAB, 0x7FFFFFEA, 0x7FFFFFFE};
const Counters step_3{0x7FFFE7C7, 0x7FFFFC99, 0x7FFFFFFF, 0x7FFFF8CF, 0x7FFFFFC9, 0x7FFFFFFC};

TEST(Packet, TaskSwitchesSampleAndUserData) {
    const std::vector<Entry> entries{TaskSwitch{0x00401010, 0x00000200, step_1, {true, 5}},
                                     TaskSwitch{0x00000280, 0x00402000, step_2, {false, 7}},
                                     Sample{{false, 7}, step_3},
                                     UserData{{false, 7}, 0xCAFE0001},
                                     Pad{},
                                     Pad{}};
    EXPECT_EQ(encoded(entries),
              (Words{0x00401011, 0xFFFFF82E, 0xFFFFFF0E, 0xFFFFFFFE, 0xFFFFFDA6, 0xFFFFFFE6, 0xFFFFFFFC, 0x00000200,
                     0xFFF0A40A, 0x00000281, 0xFFFFF69E, 0xFFFFFEAA, 0xFFFFFFFE, 0xFFFFFD56, 0xFFFFFFD4, 0xFFFFFFFC,
                     0x00402000, 0xFFF0A20E, 0xFFF0A20F, 0xFFFFCF8E, 0xFFFFF932, 0xFFFFFFFE, 0xFFFFF19E, 0xFFFFFF92,
                     0xFFFFFFF8, 0xFFF0A000, 0xFFF0AC0F, 0xFFF0A20E, 0x000195FC, 0x00000002, 0xFFF0A001, 0xFFF0A001}));
}

}  // namespace
