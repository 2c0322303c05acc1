#include "waymark/record/modules.h"

#include <gtest/gtest.h>

namespace waymark::record {
namespace {

MapPart part(std::uint64_t address, std::uint64_t bytes, std::uint64_t offset = 0) {
    MapPart out;
    out.address = address;
    out.bytes = bytes;
    out.file_offset = offset;
    return out;
}
UnmapPart gone(std::uint64_t address, std::uint64_t bytes) {
    UnmapPart out;
    out.address = address;
    out.bytes = bytes;
    return out;
}

// Files that do not exist: only their mappings are known.
constexpr const char *first = "/nowhere/first.so", *second = "/nowhere/second.so";

TEST(Modules, OnlyWhatRanIsListed) {
    Modules modules;
    modules.mapped(part(0x1000, 0x1000), first, 0);
    modules.mapped(part(0x3000, 0x1000), second, 1);
    EXPECT_EQ(modules.at({0x2000}), Modules::none);
    modules.run(modules.at({0x3abc}), 2);
    const capture::ModuleMap map = modules.map();
    ASSERT_EQ(map.modules.size(), 1U);
    EXPECT_EQ(map.modules[0].file, second);
    EXPECT_EQ(map.modules[0].from, 1U);
    EXPECT_FALSE(map.modules[0].to);
    EXPECT_EQ(map.clock, "instructions");
}

TEST(Modules, WhatIsToldAgainOrPieceByPieceIsOne) {
    Modules modules;
    modules.mapped(part(0x1000, 0x1000), first, 0);
    modules.mapped(part(0x1000, 0x1000), first, 5);
    modules.mapped(part(0x2000, 0x1000, 0x1000), first, 6);
    modules.mapped(part(0x1000, 0x3000), first, 7);
    const std::uint32_t module = modules.at({0x3fff});
    EXPECT_EQ(modules.at({0x1000}), module);
    modules.run(module, 8);
    ASSERT_EQ(modules.map().modules.size(), 1U);
    EXPECT_EQ(modules.map().modules[0].bytes, 0x3000U);
    // The same file elsewhere is another module.
    modules.mapped(part(0x9000, 0x1000), first, 9);
    EXPECT_NE(modules.at({0x9000}), module);
}

TEST(Modules, AnotherFileAtAnAddressThatRanNeedsAnEpoch) {
    Modules modules;
    modules.mapped(part(0x1000, 0x1000), first, 0);
    const std::uint32_t a = modules.at({0x1000});
    modules.run(a, 1);
    modules.source_began("s1", 1, 0);
    modules.unmapped(gone(0x1000, 0x1000), 10);
    EXPECT_EQ(modules.at({0x1000}), Modules::none);
    modules.mapped(part(0x1000, 0x1000), second, 11);
    const std::uint32_t b = modules.at({0x1000});
    EXPECT_NE(a, b);
    ASSERT_TRUE(modules.conflicts(b));
    modules.source_ended("s1", 12);
    modules.new_epoch();
    EXPECT_FALSE(modules.conflicts(b));
    modules.run(b, 12);
    modules.source_began("s2", 1, 12);
    // A thread that still has code of the first file to run, as far as the recorder has read.
    ASSERT_TRUE(modules.conflicts(a));
    modules.source_ended("s2", 20);
    modules.new_epoch();
    modules.run(a, 20);
    modules.source_began("s3", 1, 20);

    const capture::ModuleMap map = modules.map();
    const auto files = [&](const char* source) {
        std::vector<std::string> out;
        for (const std::size_t i : map.seen_by(source)) out.push_back(map.modules[i].file);
        return out;
    };
    EXPECT_EQ(files("s1"), std::vector<std::string>{first});
    EXPECT_EQ(files("s2"), std::vector<std::string>{second});
    EXPECT_EQ(files("s3"), std::vector<std::string>{first});
}

TEST(Modules, WhatWasNotUnmappedAfterAllIsThereAsBefore) {
    Modules modules;
    modules.mapped(part(0x1000, 0x1000), first, 0);
    const std::uint32_t a = modules.at({0x1000});
    modules.run(a, 1);
    UnmapPart failing = gone(0x1000, 0x1000);
    failing.number = 7;
    modules.unmapped(failing, 10);
    EXPECT_EQ(modules.at({0x1000}), Modules::none);
    StillMappedPart other;
    other.number = 6;
    modules.still_mapped(other);
    EXPECT_EQ(modules.at({0x1000}), Modules::none);
    other.number = 7;
    modules.still_mapped(other);
    EXPECT_EQ(modules.at({0x1000}), a);
    EXPECT_FALSE(modules.map().modules.front().to);

    // Another thread mapped a file there before the call returned.
    failing.number = 8;
    modules.unmapped(failing, 20);
    modules.mapped(part(0x1000, 0x1000), second, 21);
    const std::uint32_t b = modules.at({0x1000});
    ASSERT_NE(b, a);
    other.number = 8;
    modules.still_mapped(other);
    EXPECT_EQ(modules.at({0x1000}), b);
    EXPECT_EQ(modules.map().modules.front().to, 20U) << "it stays replaced";
}

TEST(Modules, WhatRunsOnAfterItsEndWasToldLastedSoLong) {
    Modules modules;
    modules.mapped(part(0x1000, 0x1000), first, 0);
    const std::uint32_t a = modules.at({0x1000});
    modules.run(a, 5);
    modules.unmapped(gone(0x1000, 0x1000), 5);
    modules.run(a, 9);
    EXPECT_EQ(modules.map().modules.front().to, 10U);
    // Another file takes its place: the end of the first is the beginning of the second.
    modules.mapped(part(0x1000, 0x1000), second, 9);
    const std::uint32_t b = modules.at({0x1000});
    ASSERT_TRUE(modules.conflicts(b));
    modules.new_epoch();
    modules.run(b, 9);
    EXPECT_EQ(modules.map().modules.front().to, 9U);
}

TEST(Modules, WhatRunsAfterItsEndWasToldLastedSoLong) {
    Modules modules;
    modules.mapped(part(0x1000, 0x1000), first, 5);
    const std::uint32_t a = modules.at({0x1000});
    modules.unmapped(gone(0x1000, 0x1000), 5);
    // Blocks that ran before the unmapping are reported later.
    modules.source_began("s1", 1, 9);
    modules.run(a, 9);
    EXPECT_EQ(modules.map().seen_by("s1").size(), 1U);
}

TEST(Modules, AMappingThatNothingReplacedIsTheSameAgain) {
    Modules modules;
    modules.mapped(part(0x1000, 0x1000), first, 0);
    const std::uint32_t a = modules.at({0x1000});
    modules.run(a, 1);
    // Another file without executed code is mapped over it, then the first file is mapped again.
    modules.mapped(part(0x1000, 0x1000), second, 5);
    modules.mapped(part(0x1000, 0x1000), first, 6);
    EXPECT_FALSE(modules.conflicts(modules.at({0x1000})));
    modules.run(modules.at({0x1000}), 7);
    for (const capture::Module& m : modules.map().modules) EXPECT_EQ(m.file, first);
}

TEST(Modules, CodeOfNoFile) {
    Modules modules;
    modules.mapped(part(0x7000, 0x1000, 0x1234), {}, 3);
    modules.run(modules.at({0x7010}), 4);
    ASSERT_EQ(modules.map().modules.size(), 1U);
    EXPECT_EQ(modules.map().modules[0].file, "");
    EXPECT_EQ(modules.map().modules[0].offset, 0U);
}

}  // namespace
}  // namespace waymark::record
