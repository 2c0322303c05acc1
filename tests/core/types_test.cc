#include "waymark/core/types.h"

#include <gtest/gtest.h>

namespace waymark {
namespace {

TEST(Address, ComparesAndMoves) {
    EXPECT_LT(Address{4}, Address{8});
    EXPECT_EQ(Address{4} + 4, Address{8});
    EXPECT_EQ(Address{8} - Address{4}, 4U);
}

}  // namespace
}  // namespace waymark
