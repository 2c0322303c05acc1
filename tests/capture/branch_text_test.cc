/// Text of `perf script` for branch stacks (docs/branch-stacks.md), field by field, and the capture that is read from
/// it.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/temporary_folder.h"
#include "waymark/capture/branch_entry.h"
#include "waymark/capture/branch_stacks.h"
#include "waymark/capture/byte_file.h"

namespace waymark::capture::perf {
namespace {

PerfData read_text(const std::string& text) {
    const TemporaryFolder folder;
    auto data = read_branch_text(folder.write("text", text));
    EXPECT_TRUE(data) << data.error().message;
    return data ? std::move(*data) : PerfData{};
}

std::vector<BranchEntry> entries_of(const PerfData& data, std::size_t sample) {
    std::vector<BranchEntry> out;
    const BranchSample& s = data.branch_samples.at(sample);
    for (std::uint32_t i = 0; i < s.entries; ++i)
        out.push_back(parse_branch_entry(std::span<const std::uint8_t, branch_entry_bytes>(
            data.unpacked_branches.data() + s.offset + std::size_t{i} * branch_entry_bytes, branch_entry_bytes)));
    return out;
}

TEST(BranchText, AnEntryWithABlankInAFileNameIsALossThatIsCounted) {
    const PerfData data = read_text("prog 12/13 [007] 5.25: 0x10/0x20 0x1f(/a b)/0x2f(/c) 0x40/0x50\n");
    ASSERT_EQ(data.branch_samples.size(), 1U);
    EXPECT_EQ(data.branch_samples[0], (BranchSample{12, 13, 7, 5'250'000'000, 0, 1, 0, true}));
    ASSERT_EQ(data.loss_count, 1U);
    EXPECT_EQ(data.losses[0].message,
              "line 1: '0x1f(/a' is not an entry of a branch stack (0xFROM/0xTO/…); the rest of the stack is omitted");
}

TEST(BranchText, ALossIsWhereItsLineBegins) {
    const std::string first = "prog 12/13 [007] 5.25: 0x10/0x20 0x1f(/a b)/0x2f(/c)\n";
    const PerfData data = read_text(first + "# a remark\n\n" + first);
    ASSERT_EQ(data.losses.size(), 2U);
    EXPECT_EQ(data.losses[0].first.value, 0U);
    EXPECT_EQ(data.losses[1].first.value, first.size() + 12);
    EXPECT_TRUE(data.losses[1].message.starts_with("line 4: ")) << data.losses[1].message;
}

TEST(BranchText, EachFieldOfAnEntry) {
    const PerfData data = read_text(
        "0x10/0x20/P/-/-/12/COND/- 0x1f(/a)/0x2f(/c)/M/X/A/70000/FAULT_DATA/NON_SPEC_CORRECT_PATH "
        "0xffffffffffffff80/0x30\n");
    ASSERT_EQ(data.branch_samples.size(), 1U);
    EXPECT_EQ(data.loss_count, 0U);
    const auto entries = entries_of(data, 0);
    ASSERT_EQ(entries.size(), 3U);
    EXPECT_EQ(
        entries[0],
        (BranchEntry{.from = 0x10, .to = 0x20, .predicted = true, .cycles = 12, .type = BranchEntryType::conditional}));
    EXPECT_EQ(entries[1], (BranchEntry{.from = 0x1f,
                                       .to = 0x2f,
                                       .mispredicted = true,
                                       .in_transaction = true,
                                       .aborted = true,
                                       .cycles = 0xffff,
                                       .type = BranchEntryType::extended,
                                       .speculation = Speculation::not_speculative,
                                       .new_type = 1}));
    EXPECT_EQ(entries[2], (BranchEntry{.from = 0xffffffffffffff80, .to = 0x30}));
}

TEST(BranchText, WhatStandsBeforeASample) {
    const PerfData data = read_text(
        "# a comment with 0x10/0x20/P\n"
        "my prog 12/13 [0] 1.5: 0x10/0x20\n"
        "  other 14 [10] 10.000000001: 0x10/0x20\n"
        "15 [3] 0x10/0x20\n"
        "400500 0x10/0x20\n"
        "x [a] 12345678901.5: 0x10/0x20\n"
        "nothing here\n");
    ASSERT_EQ(data.branch_samples.size(), 5U);
    const auto is = [&](std::size_t i, BranchSample expected) {
        expected.offset = i * branch_entry_bytes;
        expected.entries = 1;
        expected.unpacked = true;
        EXPECT_EQ(data.branch_samples[i], expected) << i;
    };
    is(0, {12, 13, 0, 1'500'000'000});
    is(1, {14, 14, 10, 10'000'000'001});
    is(2, {15, 15, 3, std::nullopt});
    is(3, {nobody, nobody, nobody, std::nullopt});  // an address
    is(4, {nobody, nobody, nobody, std::nullopt});
    ASSERT_EQ(data.tasks.size(), 2U);
    EXPECT_EQ(data.tasks[0].name, "my prog");
    EXPECT_EQ(data.tasks[0].tid, 13U);
    EXPECT_EQ(data.tasks[1].name, "other");
}

TEST(BranchText, RecordsOfMapsAndTasks) {
    const PerfData data = read_text(
        "prog 12/12 1.0: PERF_RECORD_MMAP2 12/13: [0x400000(0x1000) @ 0x2000 08:01 123 0]: r-xp /usr/bin/a b \r\n"
        "PERF_RECORD_MMAP2 -1/0: [0x500000(0x10) @ 0x20 <0aff10>]: r--p /lib/c\n"
        "PERF_RECORD_COMM: new name:12/14\n"
        "PERF_RECORD_COMM exec: run:15/15\n"
        "2.0: PERF_RECORD_FORK(16:17):(12:13)\n"
        "PERF_RECORD_EXIT(16:17):(12:13)\n"
        "PERF_RECORD_MMAP 12/13: [400000)]: x f\n");
    ASSERT_EQ(data.mappings.size(), 2U);
    EXPECT_EQ(data.mappings[0],
              (Mapping{12, 13, Address{0x400000}, 0x1000, 0x2000, 1'000'000'000, 4, 0, false, {}, "/usr/bin/a b"}));
    EXPECT_EQ(data.mappings[1],
              (Mapping{nobody, 0, Address{0x500000}, 0x10, 0x20, 0, 0, 0, true, {0x0a, 0xff, 0x10}, "/lib/c"}));
    ASSERT_EQ(data.tasks.size(), 3U);
    EXPECT_EQ(data.tasks[0], (TaskEvent{TaskEvent::Kind::comm, 12, 14, nobody, nobody, 0, "new name"}));
    EXPECT_EQ(data.tasks[1], (TaskEvent{TaskEvent::Kind::exec, 15, 15, nobody, nobody, 0, "run"}));
    EXPECT_EQ(data.tasks[2], (TaskEvent{TaskEvent::Kind::fork, 16, 17, 12, 13, 2'000'000'000, ""}));
    ASSERT_EQ(data.loss_count, 1U);
    EXPECT_EQ(data.losses[0].message, "line 7: a map in another form: PERF_RECORD_MMAP 12/13: [400000)]: x f");
}

TEST(BranchText, ASampleWithoutAProcessIsOfTheOnlyOneThatMapsIt) {
    const std::string maps =
        "PERF_RECORD_MMAP2 1/1: [0x1000(0x100) @ 0 0:0 0 0]: r-xp /a\n"
        "PERF_RECORD_MMAP2 2/2: [0x2000(0x100) @ 0 0:0 0 0]: r-xp /b\n";
    const PerfData data = read_text(maps + "0x1010/0x5000\n0x5000/0x20ff\n0x1010/0x2010\n0x1100/0x2100\n");
    std::vector<std::uint32_t> processes;
    for (const BranchSample& s : data.branch_samples) processes.push_back(s.pid);
    EXPECT_EQ(processes, (std::vector<std::uint32_t>{1, 2, nobody, nobody}));
    EXPECT_EQ(read_text(maps.substr(0, maps.find('\n') + 1) + "0x9000/0x9010\n").branch_samples.at(0).pid, 1U);
}

TEST(BranchText, IsKnownByItsFirstLines) {
    EXPECT_TRUE(is_branch_text("a 1 [0] 0x10/0x20/P/-/-/1\n"));
    EXPECT_TRUE(is_branch_text("# comment\n\nPERF_RECORD_MMAP2 "));
    EXPECT_FALSE(is_branch_text("a 1 [0] 0x10\n0x/0x\nPERF_RECORD_COMM: a:1/1\n"));
    EXPECT_FALSE(is_branch_text(""));
}

TEST(BranchStacks, EachCpuIsASource) {
    const TemporaryFolder folder;
    const auto path = folder.write("text",
                                   "a 12/13 [1] 3.0: 0x10/0x20 0x30/0x40\n"
                                   "a 12/13 [1] 2.0: 0x10/0x20\n"
                                   "0x50/0x60\n");
    auto data = read_branch_text(path);
    ASSERT_TRUE(data) << data.error().message;
    data->architecture = "aarch64";
    data->version = "6.1";
    data->release = "5.10";
    data->command_line = "perf record -b";
    const auto capture = branch_stack_capture(path, byte_file_from_memory({}), std::move(*data));
    ASSERT_TRUE(capture) << capture.error().message;
    EXPECT_EQ(capture->description, "branch stacks, recorded by perf 6.1 under Linux 5.10: perf record -b");
    ASSERT_EQ(capture->buffers.size(), 2U);
    EXPECT_EQ(capture->buffers[0].name, "branches_cpu1");
    EXPECT_EQ(capture->buffers[1].name, "branches_samples");
    ASSERT_EQ(capture->cores.size(), 2U);
    EXPECT_EQ(capture->cores[0].name, "CPU 1");
    EXPECT_EQ(capture->cores[1].name, "CPU");
    EXPECT_EQ(capture->cores[0].type, "ARM-AA64");
    ASSERT_EQ(capture->buffers[0].parts.size(), 2U);
    const BufferPart &first = capture->buffers[0].parts[0], &second = capture->buffers[0].parts[1];
    EXPECT_EQ(first.offset, 48U) << "the earlier one first";
    EXPECT_EQ(first.bytes, 24U);
    EXPECT_EQ(first.from, 2'000'000'000U);
    EXPECT_EQ(first.thread, 13U);
    EXPECT_EQ(second.bytes, 48U);
    EXPECT_FALSE(capture->buffers[1].parts.at(0).thread);
}

TEST(BranchStacks, SaysWhatTheKernelLost) {
    const TemporaryFolder folder;
    const auto path = folder.write("text", "a 12/13 [1] 3.0: 0x10/0x20\n");
    const auto problems = [&](std::uint64_t lost) {
        auto data = read_branch_text(path);
        EXPECT_TRUE(data);
        data->lost_records = lost;
        return branch_stack_capture(path, byte_file_from_memory({}), std::move(*data))->problems;
    };
    EXPECT_TRUE(problems(0).empty());
    const auto lost = problems(3);
    ASSERT_EQ(lost.size(), 1U);
    EXPECT_EQ(lost[0].kind, Problem::Kind::part);
    EXPECT_TRUE(lost[0].message.starts_with("3 records of the kernel were lost")) << lost[0].message;
}

TEST(BranchStacks, WithoutAStackThereIsNoCapture) {
    PerfData none;
    none.lost_records = 3;
    const auto capture = branch_stack_capture("f", byte_file_from_memory({}), none);
    ASSERT_FALSE(capture);
    EXPECT_NE(capture.error().message.find("no sample with a branch stack"), std::string::npos);
    none.empty_branch_samples = 2;
    const auto empty = branch_stack_capture("f", byte_file_from_memory({}), none);
    ASSERT_FALSE(empty);
    EXPECT_NE(empty.error().message.find("its 2 samples have empty branch stacks"), std::string::npos);
    EXPECT_EQ(is_x86_64(none), std::nullopt);
    none.architecture = "x86_64";
    EXPECT_EQ(is_x86_64(none), true);
    none.architecture = "arm64";
    EXPECT_EQ(is_x86_64(none), false);
}

}  // namespace
}  // namespace waymark::capture::perf
