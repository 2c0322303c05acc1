#include "waymark/core/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

namespace waymark {
namespace {

Result<std::unique_ptr<int>> half(int number) {
    if (number % 2 != 0) return Error{Errc::bad_format, "odd", Offset{3}};
    return std::make_unique<int>(number / 2);
}
Result<int> quarter(int number) {
    WM_ASSIGN_OR_RETURN(const auto first, half(number));
    WM_ASSIGN_OR_RETURN(const auto second, half(*first));
    return *second;
}
Status check(int number) {
    WM_RETURN_IF_ERROR(quarter(number));
    return Nothing{};
}

TEST(Result, ValueOrError) {
    EXPECT_EQ(*quarter(8), 2);
    const auto wrong = quarter(6);
    ASSERT_FALSE(wrong.has_value());
    EXPECT_EQ(wrong.error().code, Errc::bad_format);
    EXPECT_EQ(wrong.error().message, "odd");
    EXPECT_EQ(wrong.error().offset, Offset{3});
    EXPECT_TRUE(check(4).has_value());
    EXPECT_FALSE(check(5).has_value());
}

// Asking for a missing value or error stops the program at that place.
TEST(ResultDeathTest, ChecksWhatIsAskedFor) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    auto good = quarter(8), wrong = quarter(6);
    EXPECT_DEATH((void)good.error(), "a result without an error");
    EXPECT_DEATH((void)wrong.value(), "a result without a value");
    EXPECT_DEATH((void)*std::as_const(wrong), "a result without a value");
}

}  // namespace
}  // namespace waymark
