// The model: bytes of small cases (docs/spec/etmv3.md, 2 to 6), and random programs that all decoders must give back.
#include "waymark/etm3/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "etm3/random_trace.h"
#include "etm3/support.h"
#include "support/elements.h"
#include "support/sanitized.h"
#include "support/wanted.h"
#include "waymark/etm3/decoder.h"
#include "waymark/etm3/unit.h"
#include "waymark/flow/each_instruction.h"

namespace waymark::etm3 {
namespace {

using synthetic::Element, synthetic::ElementSink, synthetic::Kind;
using test::RanInstruction;

isa::Instruction ordinary() {
    isa::Instruction i;
    i.bytes = 4;
    return i;
}
isa::Instruction indirect(bool exception_return = false) {
    isa::Instruction i = ordinary();
    i.waypoint = isa::Waypoint::indirect;
    i.exception_return = exception_return;
    return i;
}

/// Instructions from 0x8000 on, in A32, one in each cycle.
class Small {
public:
    explicit Small(const Config& config, const ModelChoices& choices = {})
        : config_(config), model({registers(config), choices, config.m_profile}, trace_) {
        model.start({here_, false, false, 0});
    }
    void ordinary(bool passed = true, std::uint64_t cycles = 1) {
        one(etm3::ordinary(), passed, here_.address + 4, cycles);
    }
    void jump(Address to, bool returns = false) { one(indirect(returns), true, to, 1); }
    void one(const isa::Instruction& i, bool passed, Address next, std::uint64_t cycles, bool tail_chains = false) {
        cycle_ += cycles;
        Executed e;
        e.address = here_.address;
        e.isa = here_.isa;
        e.instruction = i;
        e.passed = passed;
        e.next = here_ = {next, here_.isa};
        e.cycle = cycle_;
        e.tail_chains = tail_chains;
        model.instruction(e);
    }
    void exception(std::uint32_t number, Address to, bool cancels = false) {
        ExceptionTaken e;
        e.number = number;
        e.vector = here_ = {to, Isa::a32};
        e.cycle = ++cycle_;
        e.cancels = cancels;
        model.exception(e);
    }
    [[nodiscard]] Place here() const { return here_; }
    [[nodiscard]] std::uint64_t cycle() const { return cycle_; }
    /// Packets, without the A-sync in front.
    std::string text() {
        model.finish();
        std::string all = test::list(trace_.bytes(), config_).text;
        const std::string first = "A-SYNC zeros=5\n";
        EXPECT_TRUE(all.starts_with(first)) << all;
        return all.substr(std::min(first.size(), all.size()));
    }

private:
    static Registers registers(const Config& config) {
        Registers out = test::registers_for(config);
        out.syncfr.value = 0;
        return out;
    }

    ByteCollector trace_;
    const Config config_;
    Place here_{{0x8000}, Isa::a32};
    std::uint64_t cycle_ = 0;

public:
    Model model;
};

constexpr const char* begins =
    "I-SYNC LSiP=0 reason=1 J=0 NS=0 AltISA=0 HYP=0 address=0x8000: trace enabled: 0x00008000 A32, Secure\n";

TEST(Etm3Model, OutcomesBranchesAndReturns) {
    Small run({});
    for (unsigned i = 0; i < 17; ++i) run.ordinary();
    run.ordinary(false);
    run.ordinary();
    run.jump({0x8100});
    run.ordinary();
    run.jump({0x18000}, true);
    EXPECT_EQ(run.text(), begins + std::string("P-HEADER atoms=EEEEEEEEEEEEEEE/1\nP-HEADER atoms=EEN/1\n"
                                               "P-HEADER atoms=EE/1\nBRANCH-ADDRESS target=0x40/2: to 0x00008100 A32\n"
                                               "P-HEADER atoms=EE/1\nEXCEPTION-RETURN\n"
                                               "BRANCH-ADDRESS target=0x6000/3: to 0x00018000 A32\n"));
}

TEST(Etm3Model, CyclesInEveryFormat) {
    Small run({.cycle_accurate = true}, {.header_cycles = 16});
    run.ordinary();
    run.ordinary(true, 0);    // with the one before it
    run.ordinary(false, 1);   // WN
    run.ordinary(true, 3);    // WWWE
    run.ordinary(false, 10);  // eight cycles, one, and WN
    run.ordinary(true, 100);  // a cycle count
    run.model.flush();
    run.ordinary(true, 0);  // alone: format 4
    EXPECT_EQ(
        run.text(),
        std::string("I-SYNC-CYCLES cycles=1 LSiP=0 reason=1 J=0 NS=0 AltISA=0 HYP=0 address=0x8000: trace enabled: "
                    "0x00008000 A32, Secure\n"
                    "P-HEADER atoms=E/4\nP-HEADER atoms=E/4\nP-HEADER atoms=WN/1\nP-HEADER atoms=WWWE/3\n"
                    "P-HEADER atoms=WWWWWWWW/3\nP-HEADER atoms=W/3\nP-HEADER atoms=WN/1\nCYCLE-COUNT cycles=99\n"
                    "P-HEADER atoms=WE/1\nP-HEADER atoms=E/4\n"));
}

TEST(Etm3Model, ExceptionsContextsAndTime) {
    Config config{.vmid_trace = true, .timestamps = true};
    config.context_id_bytes = 2;
    Small run(config, {.timestamp_first = 1000});
    run.ordinary();
    run.exception(14, {0xffff0018});
    run.ordinary();
    run.model.set_context_id(0x12345);
    run.model.set_vmid(7);
    run.ordinary();
    run.exception(12, {0xffff0010}, true);
    run.ordinary();
    run.model.trigger();
    run.ordinary();
    EXPECT_EQ(run.text(),
              "I-SYNC context_id=0 LSiP=0 reason=1 J=0 NS=0 AltISA=0 HYP=0 address=0x8000: trace enabled: 0x00008000 "
              "A32, Secure\nVMID VMID=0\nTIMESTAMP R=0 value=0x3e9/7: 0x3e9\nP-HEADER atoms=E/1\n"
              "BRANCH-ADDRESS target=0xffff0018/5/A32+info C=0 AltISA=0 cancel=0 exception[3:0]=0xe NS=0: exception 14 "
              "(IRQ), to 0xffff0018 A32, Secure\nTIMESTAMP R=0 value=0x6b/1: 0x3eb\nP-HEADER atoms=E/1\n"
              "CONTEXT-ID context_id=0x2345\nVMID VMID=7\nP-HEADER atoms=E/1\nP-HEADER atoms=E/1\n"
              "BRANCH-ADDRESS target=0xffff0010/5/A32+info C=0 AltISA=0 cancel=1 exception[3:0]=0xc NS=0: last "
              "instruction cancelled, exception 12 (synchronous Data Abort or watchpoint), to 0xffff0010 A32, Secure\n"
              "TIMESTAMP R=0 value=0x6e/1: 0x3ee\nP-HEADER atoms=E/1\nTRIGGER\nP-HEADER atoms=E/1\n");
}

TEST(Etm3Model, MProfileAndTheAlternativeEncoding) {
    Small run({.alternative_branches = true, .m_profile = true});
    run.ordinary();
    run.exception(24, {0x8040});  // IRQ8 takes two information bytes
    run.one(indirect(true), true, {0x8044}, 1, true);
    ExceptionTaken chained;
    chained.number = 14;
    chained.vector = {{0x8080}, Isa::a32};
    chained.cycle = run.cycle();
    chained.cancels_return = true;
    run.model.exception(chained);
    EXPECT_EQ(run.text(), begins + std::string("P-HEADER atoms=E/1\n"
                                               "BRANCH-ADDRESS target=0x10/2+info C=1 AltISA=0 cancel=0 "
                                               "exception[3:0]=8 NS=0 C[1]=0 is resume=0 information[1]=1: exception "
                                               "24 (external interrupt), to 0x00008040 A32, Secure\n"
                                               "P-HEADER atoms=E/1\nEXCEPTION-RETURN\n"
                                               "BRANCH-ADDRESS target=0x20/2+info C=0 AltISA=0 cancel=1 "
                                               "exception[3:0]=0xe NS=0: last instruction cancelled, exception 14 "
                                               "(PendSV), to 0x00008080 A32, Secure\n"));
}

TEST(Etm3Model, DebugStateAndJumpsThatNobodySaw) {
    Small run({});
    run.ordinary();
    run.model.debug_entry(5);
    run.model.debug_exit({{{0x9000}, Isa::t32}, false, false, 6});
    EXPECT_EQ(run.model.counts().exceptions, 1U);
    run.model.discontinuity({{{0x8004}, Isa::a32}, true, false, 7});
    run.ordinary();
    EXPECT_EQ(run.text(), begins + std::string("P-HEADER atoms=E/1\n"
                                               "BRANCH-ADDRESS target=0/5/A32+info C=0 AltISA=0 cancel=0 "
                                               "exception[3:0]=1 NS=0: exception 1 (Debug state entry), to 0x00000000 "
                                               "A32, Secure\n"
                                               "I-SYNC LSiP=0 reason=1 J=0 NS=1 AltISA=0 HYP=0 address=0x8004: trace "
                                               "enabled: 0x00008004 A32, Non-secure\nP-HEADER atoms=E/1\n"));
}

/// A random program, given to the model; its execution, and the losses.
struct Simulated {
    std::vector<RanInstruction> ran;
    std::vector<std::uint8_t> bytes;
    ModelCounts counts;
};
Simulated simulate(const ModelConfig& config, const synthetic::Program& program, std::uint64_t seed, unsigned steps) {
    synthetic::Random random(seed);
    Simulated out;
    ByteCollector trace;
    Model model(config, trace);
    const auto anywhere = [&]() -> Place {
        const auto& f = program.functions[random.below(static_cast<std::uint32_t>(program.functions.size()))];
        return {{program.blocks[f.first_block].block.start}, f.isa};
    };
    Place here = anywhere();
    bool ns = false, hyp = false;
    std::uint64_t cycle = 0;
    model.start({here, ns, hyp, cycle});
    for (unsigned n = 0; n < steps; ++n) {
        cycle += random.chance(200) ? random.below(500) : random.below(3);
        if (random.chance(50)) model.set_context_id(static_cast<std::uint32_t>(random()));
        if (random.chance(50)) model.set_vmid(static_cast<std::uint8_t>(random()));
        if (random.chance(50)) model.trigger();
        if (random.chance(30)) model.request_sync();
        if (random.chance(30)) model.wait(cycle);
        if (random.chance(20)) {
            here = anywhere();
            model.discontinuity({here, ns, hyp, cycle});
        }
        if (random.chance(10)) {
            model.debug_entry(cycle);
            here = anywhere();
            model.debug_exit({here, ns, hyp, ++cycle});
        }
        const follow::Walk w = follow::walk(program.memory, {}, here, {{}, 1U << 16, true});
        const bool fits = w.end == follow::WalkEnd::waypoint;
        if (!fits || random.chance(100)) {
            ExceptionTaken e;
            do e.number = random.below(config.m_profile ? exception_numbers : 16U);
            while (e.number < 2);
            if (config.m_profile) e.resume = static_cast<std::uint8_t>(random.half() ? random.below(16) : 0U);
            here = anywhere();
            e.vector = here;
            e.ns = ns = random.half();
            e.hyp = hyp = ns && random.half();
            e.cycle = cycle;
            e.cancels = fits && random.half();
            model.exception(e);
            continue;
        }
        Executed e;
        e.address = w.last;
        e.isa = here.isa;
        e.instruction = w.instruction;
        e.passed = follow::always_taken(w, program.memory, {}) || !random.chance(3000);
        const bool goes = e.passed && w.instruction.waypoint != isa::Waypoint::none;
        out.ran.push_back({w.last.value, e.passed});
        e.next = {w.after, here.isa};
        if (goes)
            e.next = w.instruction.waypoint == isa::Waypoint::indirect
                         ? anywhere()
                         : Place{w.instruction.target, w.instruction.target_isa};
        e.ns = ns;
        e.hyp = hyp;
        e.cycle = cycle;
        model.instruction(e);
        here = e.next;
    }
    model.finish();
    out.bytes = trace.bytes();
    out.counts = model.counts();
    return out;
}

template <class AnyDecoder>
std::vector<Element> decoded(const Config& config, const synthetic::Program& program, Bytes bytes) {
    ElementSink sink;
    flow::BlockTable table;
    flow::BatchWriter out(table, sink);
    AnyDecoder decoder(config, program.memory, out);
    decoder.feed(bytes);
    decoder.finish();
    return sink.take();
}

TEST(Etm3Model, RandomProgramsAreGivenBackByBothDecoders) {
    synthetic::Random random(3);
    std::uint64_t overflows = 0;
    for (unsigned n = 0; n < wanted(sized(30U, 10U)); ++n) {
        const auto program = synthetic::make_program({.seed = n + 7U, .blocks = 100, .large_block_chance = 0});
        Config packets = test::random_config(random);
        packets.branch_output = random.half();
        packets.vmid_trace = random.half();
        ModelConfig config{test::registers_for(packets), {}, packets.m_profile};
        ASSERT_EQ(config.packets(), packets);
        config.registers.syncfr.value = random.half() ? 100 : 400;
        config.choices.timestamp_first = 1;
        if (n % 3 == 2) {
            config.choices.fifo_bytes = 32 + random.below(30);
            config.choices.drain_bytes = 1;
            config.choices.drain_cycles = 2 + random.below(4);
        }
        SCOPED_TRACE(n);
        const Simulated done = simulate(config, program, n, 500);
        overflows += done.counts.overflows;
        const auto reference = decoded<ReferenceDecoder>(packets, program, done.bytes);
        EXPECT_EQ(synthetic::difference(decoded<Decoder>(packets, program, done.bytes), reference), "");
        std::vector<RanInstruction> found;
        std::uint64_t exceptions = 0;
        for (const Element& e : reference) {
            if (e.kind == Kind::range) found.push_back({e.block.start, e.taken});
            exceptions += e.kind == Kind::exception ? 1 : 0;
            EXPECT_TRUE(e.kind != Kind::gap && e.kind != Kind::atoms && e.kind != Kind::inconsistency)
                << synthetic::to_text(e);
        }
        EXPECT_EQ(found.size(), done.counts.instructions);
        EXPECT_EQ(exceptions, done.counts.exceptions);
        if (done.counts.overflows == 0) {
            EXPECT_TRUE(found == done.ran);
            EXPECT_EQ(done.counts.lost, 0U);
        } else {
            // The decoded instructions match this order of execution.
            auto at = done.ran.begin();
            for (const RanInstruction& i : found) {
                at = std::find(at, done.ran.end(), i);
                ASSERT_TRUE(at != done.ran.end());
                ++at;
            }
            EXPECT_LE(found.size() + done.counts.lost, done.ran.size() + 500);
            EXPECT_GE(found.size() + done.counts.lost, done.ran.size());
        }
        if (HasFailure()) return;
    }
    EXPECT_GT(overflows, 5U);
}

TEST(Etm3Model, IsRecordedAsTheUnitOfACortexA7) {
    const flow::UnitFactory& units = unit_factory();
    EXPECT_TRUE(units.check(units.defaults()));
    EXPECT_TRUE(flow::traces_each_instruction(units));
    const auto refused = [&](auto&& change) {
        flow::UnitOptions options = units.defaults();
        change(options);
        const Status status = units.check(options);
        return status ? std::string() : status.error().message;
    };
    EXPECT_EQ(refused([](flow::UnitOptions& o) { o.return_stack = true; }),
              "--return-stack: an ETMv3 has no return stack");
    EXPECT_EQ(refused([](flow::UnitOptions& o) { o.core = "cortex-a15"; }),
              "--core cortex-a15 is not offered with --unit etmv3; cortex-a7 is");
    EXPECT_NE(refused([](flow::UnitOptions& o) { o.trigger_at = Address{0x100000000}; }), "");
    EXPECT_NE(refused([](flow::UnitOptions& o) { o.context_id_bytes = 3; }), "");
    EXPECT_NE(refused([](flow::UnitOptions& o) { o.sync_bytes = 4096; }), "");
    EXPECT_NE(refused([](flow::UnitOptions& o) { o.fifo_bytes = 31; }), "");
    flow::UnitOptions options = units.defaults();
    options.cycle_accurate = options.timestamps = true;
    std::string registers;
    for (const RegisterValue& r : units.registers(options, 0x10)) {
        char text[32];
        std::snprintf(text, sizeof text, "%s=%#llx ", r.name.c_str(), static_cast<unsigned long long>(r.value));
        registers += text;
    }
    EXPECT_EQ(registers,
              "ETMCR=0x10001800 ETMSYNCFR=0x400 ETMIDR=0x410cf250 ETMCCER=0x344008f2 ETMTRACEIDR=0x10 ETMTEEVR=0x6f "
              "ETMTECR1=0x1000000 ETMTECR2=0 ");
}

}  // namespace
}  // namespace waymark::etm3
