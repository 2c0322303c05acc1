#include "waymark/record/tracker.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "support/sanitized.h"

namespace waymark::record {
namespace {

using isa::Isa;

/// Writes down the calls.
class Notes final : public flow::Unit {
public:
    std::vector<std::string> lines;
    std::uint64_t losing = 0;         ///< with each call
    bool may = false, keeps = false;  ///< it may lose some waypoints, and keeps the last one

    void start(Place first, std::uint64_t cycle) override { add("start {:x} @{}", first.address.value, cycle); }
    void waypoint(const Straight& before, const flow::RetiredWaypoint& w, std::uint64_t cycle) override {
        add("{} {:x}+{} -> {:x} {} @{}", w.passed ? "E" : "N", w.address.value, before.bytes, w.next.address.value,
            isa::name(w.next.isa), cycle);
    }
    std::unique_ptr<flow::PreparedSequence> prepare(Place from, std::uint64_t,
                                                    std::span<const flow::RetiredBlock> blocks) override {
        if (!prepares) return nullptr;
        auto made = std::make_unique<Prepared>();
        made->from = from;
        made->blocks.assign(blocks.begin(), blocks.end());
        return made;
    }
    std::size_t sequences(std::span<const flow::RetiredSequence> sequences) override {
        for (std::size_t n = 0; n < sequences.size(); ++n) {
            if (++asked % 5 == 0) return n;
            const auto& made = static_cast<const Prepared&>(*sequences[n].prepared);
            std::vector<flow::RetiredBlock> blocks = made.blocks;
            for (flow::RetiredBlock& b : blocks) b.cycle += sequences[n].cycle - made.blocks.back().cycle;
            static_cast<void>(waypoints(made.from, blocks));
            ++taken;
        }
        return sequences.size();
    }
    bool prepares = false;  ///< takes sequences, four of five
    std::uint64_t asked = 0, taken = 0;
    void context(const flow::Context& context) override {
        if (context != flow::Context{.ns = true}) add("state {} {}", context.ns ? "NS" : "S", context.hyp ? "Hyp" : "");
    }
    void exception(const Straight& before, ExceptionClass kind, std::optional<Place> handler,
                   std::uint64_t cycle) override {
        add("{} after {} ({}){} @{}", name(kind), before.bytes, before.last_bytes,
            handler ? fmt::format(" to {:x}", handler->address.value) : "", cycle);
    }
    void wait(std::uint64_t cycle) override { add("wait @{}", cycle); }
    void program(const flow::UnitOptions&, std::uint64_t cycle) override { add("program @{}", cycle); }
    [[nodiscard]] std::uint64_t untraced() const override { return untraced_; }
    std::uint64_t untraced_ = 0;
    void resume(Place next, std::uint64_t cycle) override { add("resume {:x} @{}", next.address.value, cycle); }
    void finish() override { add("finish"); }
    [[nodiscard]] std::uint64_t lost() const override { return lost_; }
    [[nodiscard]] bool overflowing() const override { return losing != 0 && !keeps; }
    [[nodiscard]] bool may_lose() const override { return may; }

private:
    template <class... Args>
    void add(fmt::format_string<Args...> format, Args&&... args) {
        lines.push_back(fmt::format(format, std::forward<Args>(args)...));
        lost_ += losing;
    }
    struct Prepared final : flow::PreparedSequence {
        Place from;
        std::vector<flow::RetiredBlock> blocks;
    };
    std::uint64_t lost_ = 0;
};

Code arm(std::uint64_t address, std::vector<std::uint32_t> words, bool each = false) {
    Definition d{{address}, {}, static_cast<std::uint32_t>(words.size()), {}, {}};
    for (const std::uint32_t word : words)
        for (unsigned i = 0; i < 4; ++i) d.bytes.push_back(static_cast<std::uint8_t>(word >> (8 * i)));
    return understand(d, Isa::a32, {}, each);
}

constexpr std::uint32_t nop = 0xe320f000, svc = 0xef000000, bx_lr = 0xe12fff1e, ldr = 0xe5912000, isb = 0xf57ff06f,
                        udf = 0xe7f000f0, bkpt = 0xe1200070, beq_plus_16 = 0x0a000002, b_self = 0xeafffffe,
                        bxeq_lr = 0x012fff1e;

struct Case {
    Clock clock;
    Notes unit;
    SourceTruth truth;
    Tracker tracker;
    explicit Case(bool system = false, bool may_lose = false, bool each = false) : tracker(clock, system, !each, each) {
        unit.may = may_lose;
        tracker.attach(unit, truth, nullptr);
    }
    void run(const Code& code) { run(code, static_cast<std::uint32_t>(code.instructions.size()), false); }
    void run(const Code& code, std::uint32_t end, bool stopped) {
        tracker.arrive({code.address, code.isa});
        tracker.run(code, 0, end, stopped);
    }
    std::vector<std::string> finish() {
        tracker.detach();
        return unit.lines;
    }
};
using Lines = std::vector<std::string>;

TEST(Tracker, ConditionalBranchTakenAndNot) {
    Case c;
    const Code code = arm(0x8000, {nop, beq_plus_16});
    c.run(code);
    c.run(arm(0x8014, {nop, bx_lr}));
    c.run(code);
    c.run(arm(0x8008, {nop}));
    EXPECT_EQ(c.finish(), (Lines{"start 8000 @0", "E 8004+4 -> 8014 A32 @2", "E 8018+4 -> 8000 A32 @4",
                                 "N 8004+4 -> 8008 A32 @6", "finish"}));
    EXPECT_EQ(c.truth.ranges, 3U);
    EXPECT_EQ(c.truth.instructions, 6U);
    EXPECT_EQ(c.truth.unfinished_instructions, 1U);
    std::uint64_t hash = truth_hash(truth_hash_start, 0x8000, 0x8008);
    hash = truth_hash(hash, 0x8014, 0x801c);
    EXPECT_EQ(c.truth.hash, truth_hash(hash, 0x8000, 0x8008));
}

// An ETMv3 has an outcome of each instruction (flow/each_instruction.h).
TEST(Tracker, EachInstructionIsAWaypoint) {
    Case c(false, false, true);
    c.run(arm(0x8000, {nop, beq_plus_16}, true));
    c.run(arm(0x8014, {nop, svc}, true));
    c.tracker.system_call();
    c.run(arm(0x801c, {nop, ldr, nop}, true), 1, true);  // a data abort at the second
    c.run(arm(0x9000, {udf}, true));                     // does not execute
    c.run(arm(0x9000, {bx_lr}, true));
    c.run(arm(0x8000, {nop}, true));
    EXPECT_EQ(c.finish(), (Lines{"start 8000 @0", "E 8000+0 -> 8004 A32 @1", "E 8004+0 -> 8014 A32 @2",
                                 "E 8014+0 -> 8018 A32 @3", "E 8018+0 -> 801c A32 @4", "supervisor call after 0 (0) @4",
                                 "resume 801c @4", "E 801c+0 -> 8020 A32 @5", "data abort after 0 (0) @5",
                                 "resume 9000 @5", "E 9000+0 -> 8000 A32 @6", "E 8000+0 -> 8004 A32 @7", "finish"}));
    EXPECT_EQ(c.truth.ranges, 7U);
    EXPECT_EQ(c.truth.instructions, 7U);
    EXPECT_EQ(c.truth.unfinished_instructions, 0U);
}

// A system that leaves a block before an access to a device, and continues after it.
TEST(Tracker, EachInstructionBehindADeviceAccess) {
    Case c(true, false, true);
    c.run(arm(0x8000, {nop, ldr, nop}, true), 1, true);
    c.run(arm(0x8008, {bx_lr}, true));
    c.run(arm(0x9000, {nop}, true));
    EXPECT_EQ(c.finish(), (Lines{"start 8000 @0", "E 8000+0 -> 8004 A32 @1", "E 8004+0 -> 8008 A32 @2",
                                 "E 8008+0 -> 9000 A32 @3", "E 9000+0 -> 9004 A32 @4", "finish"}));
}

// QEMU cuts blocks at page ends and elsewhere; the trace does not show that.
TEST(Tracker, BlocksThatFollowEachOtherAreOne) {
    Case c;
    c.run(arm(0x8ff8, {nop, nop}));
    c.run(arm(0x9000, {nop, b_self}));
    c.run(arm(0x9004, {b_self}));
    EXPECT_EQ(c.finish(), (Lines{"start 8ff8 @0", "E 9004+12 -> 9004 A32 @4", "finish"}));
    EXPECT_EQ(c.truth.instructions, 4U);
}

TEST(Tracker, SystemCall) {
    Case c;
    c.run(arm(0x8000, {nop, svc}));
    c.tracker.system_call();
    c.run(arm(0x8008, {nop, bx_lr}));
    EXPECT_EQ(c.finish(), (Lines{"start 8000 @0", "supervisor call after 8 (4) @2", "resume 8008 @2", "finish"}));
    EXPECT_EQ(c.truth.ranges, 1U);
    EXPECT_EQ(c.truth.instructions, 2U);
}

// A conditional SVC that failed makes no call.
TEST(Tracker, SystemCallNotMade) {
    Case c;
    c.run(arm(0x8000, {nop, 0x1f000000}));
    c.run(arm(0x8008, {b_self}));
    c.run(arm(0x8008, {b_self}));
    EXPECT_EQ(c.finish(), (Lines{"start 8000 @0", "E 8008+8 -> 8008 A32 @3", "finish"}));
}

TEST(Tracker, FaultInsideBlock) {
    Case c;
    c.run(arm(0x8000, {nop, ldr, nop, bx_lr}), 1, true);
    c.run(arm(0x9000, {nop, bx_lr}));
    EXPECT_EQ(c.finish(), (Lines{"start 8000 @0", "data abort after 4 (4) @1", "resume 9000 @1", "finish"}));
    EXPECT_EQ(c.truth.instructions, 1U);
}

// docs/spec/pft.md, 4.7: exception 11, and the BKPT itself has not executed.
TEST(Tracker, Breakpoint) {
    Case c;
    c.run(arm(0x8000, {nop, bkpt}));
    c.run(arm(0x9000, {bx_lr}));
    c.run(arm(0x8008, {bkpt}));
    c.run(arm(0x9000, {nop}));
    EXPECT_EQ(c.finish(), (Lines{"start 8000 @0", "breakpoint after 4 (4) @1", "resume 9000 @1",
                                 "E 9000+0 -> 8008 A32 @2", "breakpoint after 0 (0) @2", "resume 9000 @2", "finish"}));
    EXPECT_EQ(c.truth.instructions, 2U);
}

// The interrupted place is known: it shows the target of an indirect branch, and the outcome of a conditional one.
TEST(Tracker, SignalRightBehindBranch) {
    Case c;
    c.run(arm(0x8000, {bx_lr}));
    c.tracker.exception(ExceptionClass::irq, Place{{0x8100}, Isa::t32}, std::nullopt);
    c.run(arm(0x9000, {nop}));
    c.tracker.exception(ExceptionClass::irq, Place{{0x9004}, Isa::a32}, std::nullopt);
    c.run(arm(0x8000, {beq_plus_16}));
    c.tracker.exception(ExceptionClass::irq, Place{{0x8004}, Isa::a32}, std::nullopt);
    EXPECT_EQ(c.finish(), (Lines{"start 8000 @0", "E 8000+0 -> 8100 T32 @1", "IRQ after 0 (0) @1", "resume 9000 @1",
                                 "IRQ after 4 (4) @2", "resume 8000 @2", "N 8000+0 -> 8004 A32 @3",
                                 "IRQ after 0 (0) @3", "finish"}));
}

// A reset brings no waypoint update, so instructions since the last waypoint are in no range.
TEST(Tracker, Reset) {
    Case c(true);
    c.tracker.resets_to({0x8000});
    c.run(arm(0x8000, {nop, b_self}));
    c.run(arm(0x8004, {b_self}));
    c.run(arm(0x8000, {nop, b_self}));
    EXPECT_EQ(c.finish(), (Lines{"start 8000 @0", "E 8004+4 -> 8004 A32 @2", "E 8004+0 -> 8004 A32 @3",
                                 "reset after 0 (0) to 8000 @3", "finish"}));
    EXPECT_EQ(c.truth.ranges, 2U);
}

TEST(Tracker, FaultRightBehindWaypoint) {
    Case c;
    c.run(arm(0x8000, {bx_lr}));
    c.run(arm(0x8800, {ldr, bx_lr}), 0, true);
    c.run(arm(0x9000, {nop}));
    EXPECT_EQ(c.finish(), (Lines{"start 8000 @0", "E 8000+0 -> 8800 A32 @1", "data abort after 0 (0) @1",
                                 "resume 9000 @1", "finish"}));
    EXPECT_EQ(c.truth.ranges, 1U);
}

// QEMU starts some instructions over; the program does not notice.
TEST(Tracker, StartedOver) {
    Case c;
    c.run(arm(0x8000, {nop, ldr, bx_lr}), 1, true);
    c.run(arm(0x8004, {ldr, bx_lr}));
    c.run(arm(0x9000, {nop}));
    EXPECT_EQ(c.finish(), (Lines{"start 8000 @0", "E 8008+8 -> 9000 A32 @3", "finish"}));
    EXPECT_EQ(c.truth.instructions, 3U);
}

// With -icount QEMU itself executes an access to a device.
TEST(Tracker, CompletedUnseen) {
    Case c;
    c.run(arm(0x8000, {nop, ldr, bx_lr}), 1, true);
    c.run(arm(0x8008, {bx_lr}));
    c.run(arm(0x9000, {nop}));
    EXPECT_EQ(c.finish(), (Lines{"start 8000 @0", "E 8008+8 -> 9000 A32 @3", "finish"}));
    EXPECT_EQ(c.truth.instructions, 3U);
}

TEST(Tracker, UndefinedInstruction) {
    Case c;
    c.run(arm(0x8000, {nop, udf}));
    c.run(arm(0x9000, {nop}));
    EXPECT_EQ(c.finish(), (Lines{"start 8000 @0", "undefined instruction after 8 (4) @2", "resume 9000 @2", "finish"}));
}

TEST(Tracker, SignalBetweenBlocks) {
    Case c;
    c.run(arm(0x8000, {nop}));
    c.run(arm(0x9000, {nop}));
    EXPECT_EQ(c.finish(), (Lines{"start 8000 @0", "IRQ after 4 (4) @1", "resume 9000 @1", "finish"}));
}

TEST(Tracker, SignalBehindDirectBranch) {
    Case c;
    c.run(arm(0x8000, {b_self}));
    c.run(arm(0x9000, {nop}));
    EXPECT_EQ(c.finish(),
              (Lines{"start 8000 @0", "E 8000+0 -> 8000 A32 @1", "IRQ after 0 (0) @1", "resume 9000 @1", "finish"}));
}

TEST(Tracker, BarrierInsideBlockIsAWaypoint) {
    Case c;
    c.run(arm(0x8000, {nop, isb, nop, b_self}));
    c.run(arm(0x800c, {b_self}));
    EXPECT_EQ(c.finish(), (Lines{"start 8000 @0", "E 8004+4 -> 8008 A32 @2", "E 800c+4 -> 800c A32 @4", "finish"}));
}

TEST(Tracker, IndirectBranchThatFailed) {
    Case c;
    c.run(arm(0x8000, {bxeq_lr}));
    c.run(arm(0x8004, {bx_lr}));
    c.run(arm(0x8008, {bx_lr}));  // an unconditional branch: execution went there
    EXPECT_EQ(c.finish(), (Lines{"start 8000 @0", "N 8000+0 -> 8004 A32 @1", "E 8004+0 -> 8008 A32 @2", "finish"}));
}

TEST(Tracker, KernelHelper) {
    Case c;
    c.run(arm(0x8000, {bx_lr}));
    c.tracker.arrive({{0xffff0fc0}, Isa::a32});
    c.tracker.leave();
    c.run(arm(0x8100, {nop}));
    EXPECT_EQ(c.finish(), (Lines{"start 8000 @0", "E 8000+0 -> ffff0fc0 A32 @1", "resume 8100 @1", "finish"}));
}

// ---- a whole system, whose handlers are recorded

TEST(TrackerOfASystem, AnInterruptBehindAnIndirectBranchTellsWhereItWent) {
    Case c(true);
    c.run(arm(0x8000, {nop, bx_lr}));
    c.tracker.exception(ExceptionClass::irq, Place{{0x8100}, Isa::t32}, Place{{0x18}, Isa::a32});
    c.run(arm(0x18, {b_self}));
    EXPECT_EQ(c.finish(), (Lines{"start 8000 @0", "E 8004+4 -> 8100 T32 @2", "IRQ after 0 (0) to 18 @2", "finish"}));
    EXPECT_EQ(c.truth.ranges, 1U);
}

TEST(TrackerOfASystem, AnInterruptTellsHowAConditionalBranchCameOut) {
    for (const bool passed : {false, true}) {
        Case c(true);
        c.run(arm(0x8000, {beq_plus_16}));
        c.tracker.exception(ExceptionClass::irq, Place{{passed ? 0x8010U : 0x8004U}, Isa::a32},
                            Place{{0x18}, Isa::a32});
        c.run(arm(0x18, {nop}));
        EXPECT_EQ(c.finish(), (Lines{"start 8000 @0", passed ? "E 8000+0 -> 8010 A32 @1" : "N 8000+0 -> 8004 A32 @1",
                                     "IRQ after 0 (0) to 18 @1", "finish"}));
    }
}

TEST(TrackerOfASystem, HandlersAreTraced) {
    Case c(true);
    c.run(arm(0x8000, {nop, svc}));
    c.tracker.context({});
    c.tracker.exception(ExceptionClass::supervisor_call, std::nullopt, Place{{0x8}, Isa::a32});
    c.tracker.exception(ExceptionClass::fiq, Place{{0x8}, Isa::a32},
                        Place{{0x1c}, Isa::a32});  // before an instruction of the handler ran
    c.run(arm(0x1c, {nop, 0xe25ef004}));           // subs pc, lr, #4
    c.run(arm(0x8, {nop, b_self}));
    c.run(arm(0xc, {b_self}));
    EXPECT_EQ(c.finish(), (Lines{"start 8000 @0", "state S ", "supervisor call after 8 (4) to 8 @2",
                                 "FIQ after 0 (0) to 1c @2", "E 20+4 -> 8 A32 @4", "E c+4 -> c A32 @6", "finish"}));
    EXPECT_EQ(c.truth.instructions, 6U);
}

TEST(TrackerOfASystem, WaitsForAnInterrupt) {
    constexpr std::uint32_t wfi = 0xe320f003;
    for (const bool system : {false, true}) {
        Case c(system);
        c.run(arm(0x8000, {nop, wfi}));
        c.run(arm(0x8008, {b_self}));
        c.run(arm(0x8008, {b_self}));
        EXPECT_EQ(c.finish(), system ? (Lines{"start 8000 @0", "wait @2", "E 8008+8 -> 8008 A32 @3", "finish"})
                                     : (Lines{"start 8000 @0", "E 8008+8 -> 8008 A32 @3", "finish"}));
    }
}

TEST(TrackerOfASystem, AnAbortStopsItsBlock) {
    Case c(true);
    c.run(arm(0x8000, {nop, ldr, nop, bx_lr}), 1, true);
    c.tracker.exception(ExceptionClass::data_abort, Place{{0x8004}, Isa::a32}, Place{{0x10}, Isa::a32});
    c.run(arm(0x10, {nop}));
    EXPECT_EQ(c.finish(), (Lines{"start 8000 @0", "data abort after 4 (4) to 10 @1", "finish"}));
}

TEST(TrackerOfASystem, AnUnknownVectorTableIsSeenByItsPlaces) {
    for (const auto& [vector, kind] : {std::pair{0x9004U, ExceptionClass::undefined},
                                       {0x9008U, ExceptionClass::supervisor_call},
                                       {0x900cU, ExceptionClass::prefetch_abort},
                                       {0x9010U, ExceptionClass::data_abort},
                                       {0x9014U, ExceptionClass::hypervisor_call},
                                       {0x9018U, ExceptionClass::irq},
                                       {0x901cU, ExceptionClass::fiq}}) {
        Case c(true);
        c.run(arm(0x8000, {nop}));
        c.run(arm(vector, {nop}));
        EXPECT_EQ(c.finish(),
                  (Lines{"start 8000 @0", fmt::format("{} after 4 (4) to {:x} @1", name(kind), vector), "finish"}));
        EXPECT_EQ(c.tracker.unknown_vector(), Address{vector});
    }
}

TEST(Tracker, WhatIsLostIsCountedApart) {
    Case c(false, true);
    c.unit.losing = 1;
    c.run(arm(0x8000, {b_self}));
    c.run(arm(0x8000, {b_self}));
    c.finish();
    EXPECT_EQ(c.truth.ranges, 0U);
    EXPECT_EQ(c.truth.lost_ranges, 1U);
    EXPECT_EQ(c.truth.hash, truth_hash_start);
}

// Atoms wait in the unit; when the FIFO is full they are lost, even if the next one is not.
TEST(Tracker, WhatWasToldBeforeMayBeLostToo) {
    for (const bool keeps : {false, true}) {
        Case c(false, true);
        c.unit.keeps = keeps;
        for (unsigned n = 1; n <= 8; ++n) {
            c.unit.losing = n == 8 ? 3 : 0;  // lost with the seventh, whose outcome the eighth shows
            c.run(arm(0x8000 + n * 0x100, {nop, bx_lr}));
        }
        c.unit.losing = 0;
        c.run(arm(0x9000, {nop}));
        c.finish();
        EXPECT_EQ(c.truth.lost_ranges, 3U);
        std::uint64_t hash = truth_hash_start;
        for (const unsigned n : keeps ? std::vector<unsigned>{1, 2, 3, 7, 8} : std::vector<unsigned>{1, 2, 3, 4, 8})
            hash = truth_hash(hash, 0x8000 + n * 0x100, 0x8008 + n * 0x100);
        EXPECT_EQ(c.truth.hash, hash) << keeps;
    }
}

TEST(Tracker, HowExecutionCameTellsTheInstructionSet) {
    Case c;
    EXPECT_EQ(c.tracker.arriving({0x8000}), std::nullopt);
    c.run(arm(0x8000, {0xfa000000}));  // blx #0x8008
    EXPECT_EQ(c.tracker.arriving({0x8008}), Isa::t32);
    EXPECT_EQ(c.tracker.arriving({0x9000}), std::nullopt);
}

// The fast path and the other: the unit gets the same calls, and the truth is the same, including losses of the unit.
TEST(Tracker, FollowingRowsTellsTheSame) {
    constexpr std::uint32_t bl_plus_16 = 0xeb000002, isb_or_wfi[] = {isb, 0xe320f003};
    std::uint64_t followed = 0, words = 0, sequences = 0;
    for (unsigned seed = 1; seed <= sized(400U, 100U); ++seed) {
        // Some are long and repeat, so that sequences are remembered.
        const bool repeats = seed % sized(20U, 7U) == 0;
        // Others are as long, and return to the same few blocks, but too rarely for remembering to pay.
        const bool seldom = seed % sized(20U, 7U) == 1;
        const unsigned blocks = repeats ? 8 : 30;
        std::minstd_rand random(seed);
        const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
        std::vector<Code> codes(1);
        std::vector<OrdinaryBlock> rows(1);
        for (unsigned n = 0; n < blocks; ++n) {
            std::vector<std::uint32_t> code(below(4), nop);
            const std::uint32_t ends[] = {nop, beq_plus_16, bx_lr, bl_plus_16, bxeq_lr, b_self};
            code.push_back(seldom                       ? bx_lr
                           : !repeats && below(30) == 0 ? (below(2) == 0 ? udf : isb_or_wfi[below(2)])
                                                        : ends[below(6)]);
            codes.push_back(arm(0x8000 + below(40) * 4, code));
        }
        for (std::size_t n = 1; n < codes.size(); ++n)
            rows.push_back(row_of(codes[n], !seldom && below(20) == 0 ? 2 : 1));
        const bool prepares = seldom || below(3) != 0;
        // Mostly like real flow.
        std::vector<std::uint32_t> chunk;
        std::uint32_t at = 1;
        for (unsigned n = 0; seldom && n < 40'000; ++n) chunk.push_back(1 + (n % 46 < 16 ? n % 46 : below(blocks)));
        for (unsigned n = 0; n < (seldom ? 0 : repeats ? 25'000 : 600); ++n) {
            chunk.push_back(at);
            const Code& code = codes[at];
            at = 1 + below(blocks);
            for (unsigned tries = 0; tries < 40 && below(repeats ? 2000 : 50) != 0; ++tries) {
                const Address next = codes[at].address;
                const bool ended = !code.waypoints.empty();
                if (next == code.end() || (ended && next == code.waypoints.back().instruction.target) ||
                    (ended && code.waypoints.back().instruction.waypoint == isa::Waypoint::indirect))
                    break;
                at = 1 + below(blocks);
            }
        }
        const bool loses = seed % 3 == 0;
        Case slow(false, loses), quick(false, loses);
        slow.unit.losing = quick.unit.losing = loses ? 1 : 0;
        for (std::size_t n = 0; n + 1 < chunk.size(); ++n) slow.run(codes[chunk[n]]);
        quick.unit.prepares = prepares;
        std::uint32_t held = 0;
        for (std::span<const std::uint32_t> left = chunk; !left.empty();) {
            // Cut anywhere, like chunks. In separate memory, with no bytes after it.
            const auto words_of_piece =
                left.first(std::min<std::size_t>(left.size(), 1 + below(repeats || seldom ? 2000 : 100)));
            const std::vector<std::uint32_t> piece(words_of_piece.begin(), words_of_piece.end());
            const std::size_t taken =
                quick.tracker.attached() ? quick.tracker.follow(piece, rows, 1, ~std::uint64_t{0}, held) : 0;
            ASSERT_LE(taken, piece.size()) << "seed " << seed;
            followed += taken;
            left = left.subspan(taken);
            if (taken == piece.size()) continue;
            if (held != 0) quick.run(codes[held]);
            held = left.front();
            left = left.subspan(1);
        }
        words += chunk.size();
        sequences += quick.unit.taken;
        ASSERT_EQ(quick.clock.cycle, slow.clock.cycle) << "seed " << seed;
        ASSERT_EQ(quick.finish(), slow.finish()) << "seed " << seed;
        ASSERT_EQ(quick.truth, slow.truth) << "seed " << seed;
    }
    EXPECT_GT(followed, words / 2);
    EXPECT_GT(sequences, sized(1000U, 100U));
}

}  // namespace
}  // namespace waymark::record
