/// The modelled machine: the effect of accesses and branches on each part.
#include "waymark/record_spe/machine.h"

#include <gtest/gtest.h>

#include "waymark/spe/model.h"

namespace waymark::record {
namespace {

namespace event = spe::event;
using Kind = MachineSimulation::Kind;

/// Small enough to be filled by hand: 2 sets of 2 lines, then 4 sets of 4.
MachineModel small() {
    MachineModel model;
    model.cpus = 4;
    model.line_bytes = 256;
    model.l1d = {1, 2, 4};
    model.l2 = {4, 4, 11};
    model.llc = {64, 4, 45};
    model.dtlb = {2, 2};
    model.l2_tlb = {4, 4};
    return model;
}

TEST(MachineSimulation, DefaultsCanBe) { EXPECT_TRUE(check(MachineModel{}).has_value()); }

TEST(MachineSimulation, DataComesFromWhereItIs) {
    MachineSimulation machine(small());
    const Address here{0x10000};
    const Accessed first = machine.access(0, here, 8, Kind::load);
    EXPECT_EQ(first.source, 0xe);
    EXPECT_EQ(first.cycles, 240U + 35U);
    EXPECT_EQ(first.translation, 35U);
    EXPECT_EQ(first.events, event::l1d_access | event::l1d_refill | event::tlb_access | event::tlb_walk |
                                event::l2d_access | event::l2d_miss | event::llc_access | event::llc_miss);
    const Accessed again = machine.access(0, here + 8, 8, Kind::load);
    EXPECT_EQ(again.source, 0x0);
    EXPECT_EQ(again.cycles, 4U);
    EXPECT_EQ(again.events, event::l1d_access | event::tlb_access);
    // Two more lines of the same set evict it from the first level, and enough lines of the second level's set evict it
    // from there.
    for (std::uint32_t i = 1; i <= 2; ++i) machine.access(0, here + i * 512, 8, Kind::load);
    EXPECT_EQ(machine.access(0, here, 8, Kind::load).source, 0x8);
    for (std::uint32_t i = 1; i <= 5; ++i) machine.access(0, here + i * 1024, 8, Kind::load);
    EXPECT_EQ(machine.access(0, here, 8, Kind::load).source, 0xb);
}

TEST(MachineSimulation, ALineWrittenElsewhereComesFromThere) {
    MachineSimulation machine(small());
    const Address line{0x20000};
    machine.access(0, line, 8, Kind::store);
    const Accessed near = machine.access(1, line + 8, 8, Kind::load);
    EXPECT_EQ(near.source, 0x9);
    EXPECT_NE(near.events & event::data_modified, 0U);
    EXPECT_NE(near.events & event::snooped, 0U);
    // Both CPUs have the line now; a store takes it from the other, and so it moves back and forth.
    machine.access(1, line + 8, 8, Kind::store);
    EXPECT_EQ(machine.access(0, line, 8, Kind::load).source, 0x9);
    EXPECT_EQ(machine.access(2, line, 8, Kind::load).source, 0xb) << "shared lines are not taken from peers";
    machine.access(0, line, 8, Kind::store);
    EXPECT_EQ(machine.access(2, line, 8, Kind::load).source, 0xc) << "of another cluster";
}

TEST(MachineSimulation, StoresDoNotWait) {
    MachineSimulation machine(small());
    const Accessed store = machine.access(0, Address{0x30000}, 8, Kind::store);
    EXPECT_EQ(store.cycles, 1U + 35U);
    EXPECT_EQ(store.events & (event::llc_access | event::llc_miss), 0U);
}

TEST(MachineSimulation, StoresToALineThatIsSharedInVainCostTime) {
    // Two CPUs increment in turn: each its own number, both in one line or in two.
    const auto cycles = [](std::uint64_t apart, std::uint32_t second) {
        MachineSimulation machine{MachineModel{}};
        constexpr std::uint64_t base = 0x40000;
        for (int i = 0; i < 1000; ++i)
            for (const std::uint32_t cpu : {0U, second}) {
                machine.access(cpu, Address{base + (cpu == 0 ? 0 : apart)}, 8, Kind::store);
                machine.dispatch(cpu, 50);
            }
        return machine.cycle(0);
    };
    const std::uint64_t apart = cycles(64, 1), near = cycles(8, 1), far = cycles(8, 2);
    // 50 operations take 12.5 cycles; the window of 128 operations lets two or three fetches of the line overlap.
    EXPECT_LT(apart, 13'000U);
    EXPECT_GT(near, apart * 3 / 2);
    EXPECT_GT(far, near * 5 / 4) << "another cluster is further away";
}

TEST(MachineSimulation, TranslationsAreKept) {
    MachineSimulation machine(small());
    const auto walk = [&](std::uint64_t page) {
        return machine.access(0, Address{page * 4096}, 8, Kind::load).translation;
    };
    EXPECT_EQ(walk(1), 35U);
    EXPECT_EQ(walk(2), 35U);
    EXPECT_EQ(walk(1), 0U);
    EXPECT_EQ(walk(3), 35U);
    EXPECT_EQ(walk(2), 5U) << "from the second level";
    for (std::uint64_t page = 10; page < 14; ++page) walk(page);
    EXPECT_EQ(walk(1), 35U);
}

TEST(MachineSimulation, AnAccessToTwoLinesIsMisaligned) {
    MachineSimulation machine(small());
    const Address end{0x40000 + 252};
    machine.access(0, end, 4, Kind::load);
    const Accessed two = machine.access(0, end, 8, Kind::load);
    EXPECT_NE(two.events & event::misaligned, 0U);
    EXPECT_EQ(two.source, 0xe);
}

TEST(MachineSimulation, TheQuickWayGivesTheSame) {
    MachineSimulation quick(small()), slow(small());
    std::uint64_t random = 1;
    unsigned taken = 0;
    for (int i = 0; i < 100'000; ++i) {
        random = random * 6364136223846793005U + 1442695040888963407U;
        const auto cpu = static_cast<std::uint32_t>(random >> 60 & 3);
        const Address address{0x10000 + (random >> 33 & 0xfff) + (random >> 50 & 3) * (random >> 52 & 1) * 4096};
        const std::uint32_t bytes = 1U << (random >> 57 & 3);
        const auto kind = static_cast<Kind>((random >> 45 & 7) % 3);
        const Accessed expected = slow.access(cpu, address, bytes, kind);
        slow.dispatch(cpu, 3);
        if (quick.is_quick(cpu, address, bytes, kind)) {
            ++taken;
            ASSERT_EQ(expected.translation, 0U);
            ASSERT_LE(expected.cycles, 4U);
        } else {
            ASSERT_EQ(quick.access(cpu, address, bytes, kind).cycles, expected.cycles);
        }
        quick.dispatch(cpu, 3);
        ASSERT_EQ(quick.cycle(cpu), slow.cycle(cpu));
    }
    EXPECT_GT(taken, 1000U);
}

TEST(MachineSimulation, BranchesAreLearnt) {
    MachineSimulation machine(MachineModel{});
    const isa::A64Instruction conditional{.kind = isa::A64Class::branch, .conditional = true};
    const Address pc{0x1000}, to{0x2000};
    unsigned wrong = 0;
    for (int i = 0; i < 100; ++i) wrong += machine.branch(0, pc, conditional, true, to) ? 1 : 0;
    EXPECT_LE(wrong, 14U) << "the history has 12 bits";
    EXPECT_FALSE(machine.branch(0, pc, conditional, true, to));
    EXPECT_TRUE(machine.branch(0, pc, conditional, false, pc + 4));

    const isa::A64Instruction call{.kind = isa::A64Class::branch, .link = true};
    const isa::A64Instruction back{.kind = isa::A64Class::branch, .indirect = true, .function_return = true};
    machine.branch(0, pc, call, true, to);
    EXPECT_FALSE(machine.branch(0, to, back, true, pc + 4));
    EXPECT_TRUE(machine.branch(0, to, back, true, pc + 4)) << "nothing is on the stack";
}

TEST(MachineSimulation, TimeGoesOnByWidthAndWaitsForMemory) {
    MachineModel model;
    MachineSimulation machine(model);
    machine.dispatch(0, 400);
    EXPECT_EQ(machine.cycle(0), 100U);
    // After a load from memory, operations are dispatched only as far as the window reaches until the data arrive.
    machine.access(0, Address{0x50000}, 8, Kind::load);
    machine.dispatch(0, 128);
    EXPECT_EQ(machine.cycle(0), 100U + 1 + 240 + 35);
}

TEST(MachineSimulation, NumbersAreSetByName) {
    MachineModel model;
    EXPECT_TRUE(set_from_json(model, R"({"l2": {"kib": 512}, "memory_cycles": 300})").has_value());
    EXPECT_EQ(model.l2.kib, 512U);
    EXPECT_EQ(model.memory_cycles, 300U);
    EXPECT_EQ(set_from_json(model, R"({"l4": {"kib": 512}})").error().message,
              "l4.kib is not a number of the modelled machine; --machine-help lists them");
    EXPECT_FALSE(set_from_json(model, "[1]").has_value());
    EXPECT_FALSE(set_from_json(model, "{").has_value());
    EXPECT_FALSE(set_from_json(model, R"({"hz": -1})").has_value());
    EXPECT_FALSE(set(model, "l2.kib", 1ULL << 40).has_value());
    EXPECT_NE(to_text(model).find("l2.kib                   512"), std::string::npos);
}

TEST(MachineSimulation, WhatCannotBeIsRefused) {
    const auto refused = [](std::string_view name, std::uint64_t value) {
        MachineModel model;
        EXPECT_TRUE(set(model, name, value).has_value());
        return !check(model).has_value();
    };
    EXPECT_TRUE(refused("l1d.kib", 0));
    EXPECT_TRUE(refused("l1d.kib", 48));
    EXPECT_TRUE(refused("l1d.ways", 0));
    EXPECT_TRUE(refused("line_bytes", 0));
    EXPECT_TRUE(refused("line_bytes", 48));
    EXPECT_TRUE(refused("dtlb.ways", 0));
    EXPECT_TRUE(refused("dtlb.entries", 50));
    EXPECT_TRUE(refused("dispatch_width", 0));
    EXPECT_TRUE(refused("cpus", 0));
    EXPECT_TRUE(refused("return_stack", 0));
    EXPECT_TRUE(refused("memory_cycles", 2'000'000));
    EXPECT_FALSE(refused("l2.kib", 512));
}

}  // namespace
}  // namespace waymark::record
