#include "waymark/record/images.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/temporary_folder.h"

namespace waymark::record {
namespace {

const std::vector<std::uint8_t> one{1, 2, 3, 4}, other{1, 2, 9, 4};

std::vector<std::uint8_t> bytes_of(const capture::MemoryDump& dump) {
    std::ifstream in(dump.file, std::ios::binary);
    in.seekg(static_cast<std::streamoff>(dump.offset));
    std::vector<std::uint8_t> out(*dump.length);
    in.read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(out.size()));
    return out;
}

TEST(Images, OnlyWhatExecutedMustFit) {
    const TemporaryFolder folder;
    Images images(folder.path());
    images.saw_page({0x8000}, std::vector<std::uint8_t>(page_bytes, 0xaa));
    EXPECT_TRUE(images.fits({0x8000}, one));
    images.add({0x8000}, one);
    EXPECT_TRUE(images.fits({0x8000}, one));
    EXPECT_FALSE(images.fits({0x8000}, other));
    EXPECT_TRUE(images.fits({0x8004}, other));
    images.new_epoch();
    EXPECT_TRUE(images.fits({0x8000}, other));
}

TEST(Images, NeighboursAreOneDumpAndNoneIsAtOffsetZero) {
    const TemporaryFolder folder;
    Images images(folder.path());
    images.add({0xa000}, one);
    images.add({0x8ffe}, one);
    images.saw_page({0xc000}, std::vector<std::uint8_t>(page_bytes, 0xaa));
    images.add({0xc004}, other);
    ASSERT_TRUE(images.write().has_value());
    const auto dumps = images.dumps("cpu0");
    ASSERT_EQ(dumps.size(), 2U);
    EXPECT_EQ(dumps[0].address, Address{0x8000});
    EXPECT_EQ(dumps[0].length, 3 * page_bytes);
    EXPECT_EQ(dumps[0].core, "cpu0");
    EXPECT_GT(dumps[0].offset, 0U);
    const auto first = bytes_of(dumps[0]), second = bytes_of(dumps[1]);
    EXPECT_EQ(std::vector<std::uint8_t>(first.begin() + 0xffe, first.begin() + 0x1002), one);
    EXPECT_EQ(second[3], 0xaa);
    EXPECT_EQ(second[6], 9);
}

TEST(Images, EpochsThatAreOverAreInOneFileWithEqualPagesOnce) {
    const TemporaryFolder folder;
    Images images(folder.path());
    const auto epoch = [&](const std::vector<std::uint8_t>& changing) {
        images.add({0x8000}, changing);
        images.add({0x20000}, one);
        EXPECT_TRUE(images.write().has_value());
        EXPECT_TRUE(images.archive().has_value());
        std::vector<capture::MemoryDump> dumps = images.dumps("cpu0");
        images.new_epoch();
        images.remove_outdated();
        return dumps;
    };
    const auto a = epoch(one), b = epoch(other), c = epoch(one);
    EXPECT_EQ(a, c);
    ASSERT_EQ(b.size(), 2U);
    EXPECT_EQ(a[1], b[1]);
    EXPECT_NE(a[0].offset, b[0].offset);
    EXPECT_GT(a[0].offset, 0U);
    EXPECT_EQ(bytes_of(a[0])[2], 3);
    EXPECT_EQ(bytes_of(b[0])[2], 9);
    EXPECT_EQ(images.bytes(), 2 * page_bytes) << "both versions, and what is beside them is as either";
    std::size_t files = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) ++files;
    EXPECT_EQ(files, 1U);
}

TEST(Images, WhatIsWrittenBesideCodeThatRanIsSeenAtTheNextCode) {
    const TemporaryFolder folder;
    Images images(folder.path());
    images.saw_page({0x8000}, std::vector<std::uint8_t>(page_bytes, 0xaa));
    images.add({0x8000}, one);
    images.saw_page({0x8000}, std::vector<std::uint8_t>(page_bytes, 0xbb));
    images.add({0x8100}, other);
    ASSERT_TRUE(images.write().has_value());
    const auto bytes = bytes_of(images.dumps("")[0]);
    EXPECT_EQ(std::vector<std::uint8_t>(bytes.begin(), bytes.begin() + 5),
              (std::vector<std::uint8_t>{1, 2, 3, 4, 0xbb}));
    EXPECT_EQ(bytes[0x102], 9);
}

TEST(Images, TheFileBeforeStaysUntilItIsOutdated) {
    const TemporaryFolder folder;
    Images images(folder.path());
    images.add({0x8000}, one);
    ASSERT_TRUE(images.write().has_value());
    const auto before = images.dumps("").front().file;
    images.add({0x9000}, one);
    ASSERT_TRUE(images.write().has_value());
    EXPECT_NE(images.dumps("").front().file, before);
    EXPECT_TRUE(std::filesystem::exists(before));
    images.remove_outdated();
    EXPECT_FALSE(std::filesystem::exists(before));
    EXPECT_FALSE(images.changed());
}

}  // namespace
}  // namespace waymark::record
