#include "waymark/record/truth.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/temporary_folder.h"

namespace waymark::record {
namespace {

TEST(Truth, TextRoundTrip) {
    Truth truth;
    truth.complete = true;
    truth.sources.push_back({"PTM_1", 12, 345, 0xfeedfacecafebeef, 2, 30, 4, "truth_PTM_1.bin"});
    truth.sources.push_back({.source = "PTM_2"});
    truth.sources.push_back({.source = "PTM_3", .wrapped = true});
    const auto again = truth_from_text(to_text(truth), "truth.txt");
    ASSERT_TRUE(again.has_value()) << again.error().message;
    EXPECT_EQ(*again, truth);
}

TEST(Truth, WhatIsNoTruthIsRefused) {
    for (const char* text : {"", "something\n", "waymark-truth 1\nsource A ranges x\n", "waymark-truth 1\nranges 3\n",
                             "waymark-truth 1\nsource A ranges\n"}) {
        const auto truth = truth_from_text(text, "truth.txt");
        ASSERT_FALSE(truth.has_value()) << text;
        EXPECT_EQ(truth.error().code, Errc::bad_format);
        EXPECT_TRUE(truth.error().message.starts_with("truth.txt:"));
    }
}

TEST(Truth, Ranges) {
    const TemporaryFolder folder;
    const auto path = folder.path() / "ranges.bin";
    std::vector<TruthRange> ranges;
    for (std::uint32_t i = 0; i < 3000; ++i)
        ranges.push_back({0x10000 + 64 * (i % 700), 0x10010 + 64 * (i % 700), 4, i % 97 == 0});
    {
        auto writer = RangeWriter::create(path);
        ASSERT_TRUE(writer.has_value());
        for (const TruthRange& range : ranges) (*writer)->add(range);
        EXPECT_TRUE((*writer)->flush());
    }
    const auto read = [&] {
        auto reader = RangeReader::open(path);
        std::vector<TruthRange> out;
        while (const auto range = reader->next()) out.push_back(*range);
        return out;
    };
    EXPECT_EQ(read(), ranges);

    // In a file that is cut anywhere, the remaining ranges are right.
    for (std::uintmax_t size = std::filesystem::file_size(path); size > 0;
         size -= std::min<std::uintmax_t>(size, 131)) {
        std::filesystem::resize_file(path, size);
        const auto some = read();
        ASSERT_LE(some.size(), ranges.size());
        EXPECT_TRUE(std::equal(some.begin(), some.end(), ranges.begin()));
    }
}

}  // namespace
}  // namespace waymark::record
