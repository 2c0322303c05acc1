// Places in programs, and ways to record programs.
#include "waymark/record/recorded_program.h"

#include <gtest/gtest.h>

#include <string>

#include "support/temporary_folder.h"
#include "support/tiny_elf.h"
#include "waymark/pft/unit.h"
#include "waymark/record/flow_recording.h"

namespace waymark::record {
namespace {

class RecordedProgram : public testing::Test {
protected:
    std::string program(TinyElf elf) {
        elf.segments = {{.address = 0x8000, .bytes = std::vector<std::uint8_t>(64)}};
        elf.sections = {{.name = ".text", .address = 0x8000, .bytes = std::vector<std::uint8_t>(64)}};
        elf.symbols = {{.name = "main", .value = 0x8010, .bytes = 16, .section = 1},
                       {.name = "no_size", .value = 0x8020, .section = 1},
                       {.name = "_Zmi1AS_", .value = 0x8030, .bytes = 8, .section = 1}};
        return folder_.write("program", elf.build()).string();
    }
    static std::string error_of(const auto& result) { return result ? "" : result.error().message; }
    const TemporaryFolder folder_;
};

TEST_F(RecordedProgram, AddressesAndSymbols) {
    const std::string fixed = program({});
    EXPECT_EQ(address_of("0x8005", "mark", fixed)->value, 0x8004U);
    EXPECT_EQ(address_of("main", "mark", fixed)->value, 0x8010U);
    EXPECT_NE(error_of(address_of("gone", "mark", fixed)).find("--mark gone: "), std::string::npos);
    EXPECT_EQ(code_place("main", "start-at", fixed, false)->text(), "main");
    const std::string anywhere = program({.type = ET_DYN});
    EXPECT_NE(error_of(address_of("main", "mark", anywhere)).find("position-independent"), std::string::npos);
    // Its address is known only after it is mapped.
    const auto later = code_place("main", "start-at", anywhere, false);
    ASSERT_TRUE(later.has_value());
    EXPECT_FALSE(later->address().has_value());
}

TEST_F(RecordedProgram, RangesAreAddressesOrFunctions) {
    const std::string fixed = program({});
    const auto range = code_range("0x8000-main", "view-range", fixed, false);
    ASSERT_TRUE(range.has_value()) << range.error().message;
    EXPECT_EQ(range->first.address()->value, 0x8000U);
    EXPECT_EQ(range->end->address()->value, 0x8010U);
    const auto function = code_range("main", "view-range", fixed, false);
    ASSERT_TRUE(function.has_value());
    EXPECT_EQ(function->first.bytes(), 16U);
    // The minus in an operator's name is not a separator.
    const auto minus = code_range("operator-(A, A)", "view-range", fixed, false);
    ASSERT_TRUE(minus.has_value()) << minus.error().message;
    EXPECT_EQ(minus->first.address()->value, 0x8030U);
    for (const char* wrong : {"main-0x8000", "0x8000", "no_size", "gone"})
        EXPECT_EQ(code_range(wrong, "view-range", fixed, false).error().code, Errc::usage) << wrong;
}

TEST_F(RecordedProgram, OnlyProgramsOfTheRightKind) {
    constexpr LinuxProgram a32{1, EM_ARM, "qemu-arm", "", "a 32-bit program"};
    EXPECT_TRUE(check_linux_program(program({}), a32).has_value());
    EXPECT_EQ(check_linux_program(program({.is_64 = true, .machine = EM_AARCH64}), a32).error().code,
              Errc::unsupported);
    EXPECT_EQ(check_linux_program((folder_.path() / "none").string(), a32).error().code, Errc::not_found);
}

TEST_F(RecordedProgram, WhatDoesNotGoTogetherIsRefused) {
    FlowRecording options;
    options.program = {program({})};
    options.folder = "out";
    options.units = &pft::unit_factory();
    options.unit_name = "ptm";
    options.unit = options.units->defaults();
    const auto refused = [&](const char* option, const auto& change) {
        FlowRecording changed = options;
        change(changed);
        const auto setup = set_up(changed);
        return !setup && setup.error().code == Errc::usage && setup.error().message.find(option) != std::string::npos;
    };
    EXPECT_TRUE(refused("--fifo", [](FlowRecording& o) {
        o.unit.fifo_bytes = 64;
        o.view_ranges = {"main"};
    }));
    EXPECT_TRUE(refused("--machine", [](FlowRecording& o) { o.machine = "virt"; }));
    EXPECT_TRUE(refused("--smp", [](FlowRecording& o) { o.processors = 2; }));
    EXPECT_TRUE(refused("--sysroot", [](FlowRecording& o) {
        o.system = true;
        o.sysroot = "/";
    }));
    EXPECT_TRUE(refused("--blocks", [](FlowRecording& o) {
        o.system = o.blocks = true;
        o.qemu_options = {"-icount", "1"};
    }));
    EXPECT_EQ(options.machine_name(), "vexpress-a15");
}

TEST(RecordOutcome, SignalsAndStatus) {
    RecordOutcome out;
    Ending ending;
    EXPECT_FALSE(out.ended_by_signal(ending));
    out.say_status(ending);
    EXPECT_TRUE(out.remarks.empty());
    ending.code = 3;
    out.say_status(ending);
    ASSERT_EQ(out.remarks.size(), 1U);
    EXPECT_EQ(out.remarks.front().text, "the program exited with 3");
    ending.kind = Ending::Kind::signalled;
    ending.code = 11;
    EXPECT_TRUE(out.ended_by_signal(ending));
    EXPECT_EQ(out.kind, RecordOutcome::Kind::program_died);
    EXPECT_EQ(out.remarks.back().text, "the program was ended by SIGSEGV; everything up to there is recorded");
    ending.interrupt = 2;
    EXPECT_TRUE(out.ended_by_signal(ending));
    EXPECT_EQ(out.kind, RecordOutcome::Kind::interrupted);
    EXPECT_EQ(out.failed(RecordOutcome::Kind::nothing, "no").kind, RecordOutcome::Kind::nothing);
}

}  // namespace
}  // namespace waymark::record
