#include "waymark/analysis/profiled_files.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "waymark/answers/account.h"
#include "waymark/answers/answers.h"

namespace waymark::analysis {
namespace {

using answers::AccountReason;
using answers::AccountRow;

/// For a run with 1,000 decoded instructions in 200 ranges, 500 of them in the profile.
std::string cover_text(answers::Account rows) {
    answers::Answers a;
    a.images.push_back({.name = "program"});
    a.images.push_back({.name = "library"});
    for (answers::Index i = 0; i < 2; ++i) {
        answers::ImageRange range;
        range.image = i;
        range.times = 100;
        range.instructions = 5;
        a.ranges.push_back(range);
    }
    a.account = std::move(rows);
    return profile_cover(a, [](answers::Index i) { return i == 0; }, {}).text();
}

const AccountRow decoded{.reason = AccountReason::decoded, .instructions = 1000, .ranges = 200};

TEST(ProfileCover, IsOfTheRunAsFarAsItsAccountKnowsIt) {
    EXPECT_EQ(cover_text({decoded}), "50.0% of the run");
    // Execution in code without an image is counted in ranges, of an instruction or more; execution in a Q element in
    // instructions.
    EXPECT_EQ(cover_text({decoded, {.reason = AccountReason::no_image, .ranges = 1500}}),
              "at most 20.0% of the run as far as it is known, and 50.0% of what was decoded");
    EXPECT_EQ(cover_text({decoded, {.reason = AccountReason::untraced_way, .instructions = 1000}}),
              "25.0% of the run as far as it is known, and 50.0% of what was decoded");
    // The size of an overflow's loss is unknown.
    EXPECT_EQ(cover_text({decoded, {.reason = AccountReason::overflow}}),
              "at most 50.0% of the run as far as it is known, and 50.0% of what was decoded");
    EXPECT_EQ(
        cover_text({decoded, {.reason = AccountReason::overflow}, {.reason = AccountReason::no_image, .ranges = 1500}}),
        "at most 20.0% of the run as far as it is known, and 50.0% of what was decoded");
    // At most 100 % is no statement.
    answers::Answers whole;
    whole.images.push_back({.name = "program"});
    whole.ranges.emplace_back();
    whole.ranges.back().image = 0;
    whole.ranges.back().times = whole.ranges.back().instructions = 10;
    whole.account = {decoded, {.reason = AccountReason::overwritten}};
    EXPECT_EQ(profile_cover(whole, [](answers::Index) { return true; }, {}).text(),
              "100.0% of everything that was decoded; it is not known how much of the run that is");
    // Samples and bursts represent all that ran.
    const std::string not_known = "50.0% of everything that was decoded; it is not known how much of the run that is";
    EXPECT_EQ(cover_text({decoded, {.reason = AccountReason::sampled}}), not_known);
    EXPECT_EQ(cover_text({decoded, {.reason = AccountReason::strobing}, {.reason = AccountReason::handlers}}),
              not_known);
    // Branch lists have no account.
    EXPECT_EQ(cover_text({}), not_known);
}

}  // namespace
}  // namespace waymark::analysis
