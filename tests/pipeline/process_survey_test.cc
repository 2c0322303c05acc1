// How much of a capture is looked at to find the processes in it.
#include "waymark/pipeline/process_survey.h"

#include <gtest/gtest.h>

#include <vector>

namespace waymark::pipeline {
namespace {

std::vector<std::uint64_t> shortened_to(std::vector<std::vector<std::uint64_t>> buffers, std::uint64_t most,
                                        std::size_t shown) {
    capture::Capture c;
    for (const auto& sizes : buffers) {
        c.buffers.emplace_back();
        for (const std::uint64_t bytes : sizes) {
            capture::BufferPart part;
            part.bytes = bytes;
            c.buffers.back().parts.push_back(part);
        }
    }
    shorten(c, most);
    std::vector<std::uint64_t> out;
    if (c.buffers.empty()) return out;
    for (const capture::BufferPart& part : c.buffers[shown].parts) out.push_back(part.bytes);
    return out;
}
using Parts = std::vector<std::uint64_t>;

TEST(Shorten, KeepsWholePartsFromTheBeginningOn) {
    EXPECT_EQ(shortened_to({}, 100, 0), Parts{});
    EXPECT_EQ(shortened_to({{100, 200, 300}}, 300, 0), (Parts{100, 200}));
    EXPECT_EQ(shortened_to({{100, 200, 300}}, 299, 0), Parts{100});
    EXPECT_EQ(shortened_to({{100, 200, 300}}, 600, 0), (Parts{100, 200, 300}));
    // Each buffer has the same share.
    EXPECT_EQ(shortened_to({{100, 200}, {150, 150}}, 600, 0), (Parts{100, 200}));
    EXPECT_EQ(shortened_to({{100, 200}, {150, 150}}, 598, 1), Parts{150});
}

TEST(Shorten, KeepsWholeFramesOfTheFirstPart) {
    EXPECT_EQ(shortened_to({{100}}, 50, 0), Parts{48});
    EXPECT_EQ(shortened_to({{100, 20}}, 48, 0), Parts{48});
    EXPECT_EQ(shortened_to({{100}}, 3, 0), Parts{16});
    EXPECT_EQ(shortened_to({{10}}, 3, 0), Parts{10});
}

}  // namespace
}  // namespace waymark::pipeline
