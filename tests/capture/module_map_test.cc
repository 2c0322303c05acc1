#include "waymark/capture/module_map.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "support/sanitized.h"
#include "support/temporary_folder.h"
#include "waymark/capture/snapshot.h"

namespace waymark::capture {
namespace {

ModuleMap some_map() {
    ModuleMap map;
    map.clock = "instructions";
    map.sources = {{"PTM_1", 0, 500}, {"PTM_1_2", 500, std::nullopt}, {"a name\nof two lines", 7, 9}};
    map.threads = {{1, "PTM_1"}, {2, "a name\nof two lines"}, {1, "PTM_1_2"}};
    map.names = {{GeneratedNames::Format::perf_map, "perf.map"}, {GeneratedNames::Format::jitdump, "a dump"}};
    map.copies = {{"image0.elf", {0xab, 0x01}, "/bin/a program"}, {"image1.elf", {}, "/lib/100%\tr\xc3\xa4re.so"}};
    map.modules = {{0, {0x10000}, 0x1000, 0, "/bin/a program", {0xab, 0x01}, 0, std::nullopt},
                   {0, {0x3f000000}, 0x2000, 0x3000, "/lib/100%\tr\xc3\xa4re.so", {}, 5, 500},
                   {0, {0x3f000000}, 0x2000, 0, "/lib/other.so", std::vector<std::uint8_t>(20, 0x5a), 500, 700},
                   {4711, {0xffffffffffff0000}, 0x10000, 0, "", {}, 1, std::nullopt}};
    return map;
}

ModuleMap read(const std::string& text, std::vector<Problem>& problems) {
    return read_module_map(text, "maps.txt", problems);
}

TEST(ModuleMap, ReadsBackWhatWasWritten) {
    std::vector<Problem> problems;
    EXPECT_EQ(read(to_text(some_map()), problems), some_map());
    // Other programs write hexadecimal digits in capitals.
    std::string capitals = to_text(some_map());
    const std::size_t line_feed = capitals.find("%0a");
    ASSERT_NE(line_feed, std::string::npos);
    capitals.replace(line_feed, 3, "%0A");
    EXPECT_EQ(read(capitals, problems), some_map());
    EXPECT_TRUE(problems.empty());
}

TEST(ModuleMap, ASnapshotHoldsIt) {
    TemporaryFolder folder;
    Capture capture;
    capture.cores.push_back({.name = "core", .type = "Cortex-A9"});
    capture.modules = some_map();
    ASSERT_TRUE(write_snapshot(capture, folder.path()));
    const auto back = read_snapshot(folder.path());
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(back->modules, some_map());
    EXPECT_TRUE(back->problems.empty());
}

TEST(ModuleMap, ASourceSeesWhatWasMappedWhileItTraced) {
    const ModuleMap map = some_map();
    EXPECT_EQ(map.seen_by("PTM_1"), (std::vector<std::size_t>{0, 1, 3}));
    EXPECT_EQ(map.seen_by("PTM_1_2"), (std::vector<std::size_t>{0, 2, 3}));
    EXPECT_EQ(map.seen_by("not listed"), (std::vector<std::size_t>{0, 1, 2, 3}));
}

TEST(ModuleMap, ASourceGoesOnWithTheThreadOfTheOneBefore) {
    const ModuleMap map = some_map();
    EXPECT_EQ(map.before("PTM_1_2"), "PTM_1");
    EXPECT_EQ(map.before("PTM_1"), "");
    EXPECT_EQ(map.before("a name\nof two lines"), "");
    EXPECT_EQ(map.before("not listed"), "");
}

TEST(ModuleMap, WhatIsWrongIsToldWithItsLineAndTheRestIsRead) {
    const std::string head = "waymark-maps 1\n", good = "map 0 0 - 0x1000 0x10 0x0 - /good\n";
    for (const std::string bad : {"map",
                                  "map 0 0",
                                  "map x 0 - 1 1 1 - /x",
                                  "map 0 9 3 1 1 1 - /x",
                                  "map 0 0 - 1 0 1 - /x",
                                  "map 0 0 - 0xffffffffffffffff 2 0 - /x",
                                  "map 0 0 - 1 1 1 abc /x",
                                  "map 0 0 - 1 1 1 xy /x",
                                  "map 0 0 - 1 1 1 -",
                                  "map 0 0 - 1 1 1 - %4",
                                  "map 0 0 - 1 1 1 - %zz",
                                  "map 4294967296 0 - 1 1 1 - /x",
                                  "source 0 -",
                                  "source 3 1 name",
                                  "clock %",
                                  "thread x name",
                                  "thread 1",
                                  "thread 4294967296 name",
                                  "names perf-map",
                                  "names perf-map ../elsewhere",
                                  "names other file",
                                  "other 1"}) {
        std::vector<Problem> problems;
        const ModuleMap map = read(head + bad + "\n" + good, problems);
        ASSERT_EQ(problems.size(), 1U) << bad;
        EXPECT_EQ(problems[0].line, 2U) << bad;
        EXPECT_NE(problems[0].message.find("omitted"), std::string::npos) << bad;
        ASSERT_EQ(map.modules.size(), 1U) << bad;
        EXPECT_EQ(map.modules[0].file, "/good");
    }
}

TEST(ModuleMap, AnotherVersionOrNoHeadIsNotRead) {
    for (const std::string text : {"", "\n\n", "waymark-maps 2\nmap 0 0 - 1 1 1 - /x\n", "map 0 0 - 1 1 1 - /x\n",
                                   "\x7f"
                                   "ELF",
                                   "waymark-maps\n"}) {
        std::vector<Problem> problems;
        EXPECT_TRUE(read(text, problems).empty());
        ASSERT_EQ(problems.size(), 1U) << text;
        EXPECT_NE(problems[0].message.find("ot known"), std::string::npos) << problems[0].message;
    }
}

TEST(ModuleMap, DamageNeverDoesMoreThanThat) {
    const std::string text = to_text(some_map());
    std::mt19937 random(20260805);
    for (unsigned round = 0; round < sized(20000U, 4000U); ++round) {
        std::string damaged = text;
        for (auto n = 1 + random() % 3; n > 0; --n) damaged[random() % damaged.size()] = static_cast<char>(random());
        if (round % 3 == 0) damaged.resize(random() % damaged.size());
        std::vector<Problem> problems;
        const ModuleMap map = read(damaged, problems);
        EXPECT_LE(map.modules.size(), some_map().modules.size() + 3);
        EXPECT_LE(problems.size(), 22U);
        for (const Module& m : map.modules) {
            EXPECT_NE(m.bytes, 0U);
            EXPECT_LE(m.bytes - 1, ~std::uint64_t{0} - m.address.value);
        }
    }
}

TEST(ModuleMap, ProblemsAreBounded) {
    std::string text = "waymark-maps 1\n";
    for (unsigned i = 0; i < 1000; ++i) text += "nonsense\n";
    std::vector<Problem> problems;
    EXPECT_TRUE(read(text, problems).empty());
    EXPECT_EQ(problems.size(), 21U);
    EXPECT_NE(problems.back().message.find("More lines"), std::string::npos);
}

}  // namespace
}  // namespace waymark::capture
