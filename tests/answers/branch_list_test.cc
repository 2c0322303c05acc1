// Lists of branches of several files for one image.
#include "waymark/answers/branch_list.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace waymark::answers {
namespace {

BranchListImage image(const std::string& path, const std::string& build, std::uint32_t type, std::uint64_t times) {
    BranchListImage out;
    out.path = path;
    out.build_id = build;
    out.type = type;
    out.lists[{0x1000, {}}] = times;
    return out;
}

// The order in which images come makes no difference.
TEST(BranchLists, OfOneBuildAreAdded) {
    for (const bool turned : {false, true}) {
        BranchLists lists;
        const BranchListImage one = image("/a", "ab12", 0, 3), other = image("/b", "ab12", 2, 4);
        add_image(lists, turned ? other : one);
        add_image(lists, turned ? one : other);
        add_image(lists, image("/a", "cd34", 0, 5));
        ASSERT_EQ(lists.size(), 2U);
        const BranchListImage& both = lists.begin()->second;
        EXPECT_EQ(both.path, "/a");
        EXPECT_EQ(both.build_id, "ab12");
        EXPECT_EQ(both.type, 2U);
        EXPECT_EQ(both.lists.size(), 1U);
        EXPECT_EQ(both.lists.begin()->second, 7U);
        add_image(lists, image("/a", "ab12", 0, std::numeric_limits<std::uint64_t>::max()));
        EXPECT_EQ(both.lists.begin()->second, std::numeric_limits<std::uint64_t>::max());
    }
}

TEST(BranchLists, WithoutABuildIdAreOfTheirPath) {
    BranchLists lists;
    add_image(lists, image("/a", "", 0, 1));
    add_image(lists, image("/b", "", 0, 1));
    add_image(lists, image("/a", "", 0, 1));
    EXPECT_EQ(lists.size(), 2U);
    BranchListImage elsewhere = image("/a", "", 0, 1);
    elsewhere.kernel_start = 0x1000;
    add_image(lists, elsewhere);
    EXPECT_EQ(lists.size(), 3U);
}

}  // namespace
}  // namespace waymark::answers
