// The model of the macrocell, checked by decoders, which share no code with it, and by bytes worked out by hand.
// docs/spec/pft.md, section 5.

#include "waymark/pft/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pft/support.h"
#include "support/model_case.h"
#include "support/sanitized.h"

namespace waymark::pft {
namespace {

using synthetic::longest_zeros;
using test::hex;

// ---- invented programs

/// WAYMARK_PROPERTY_PROGRAMS: number of programs of each class; if it is not set, the long ones run alone, or only some
/// of them.
std::uint64_t programs() {
    const char* text = std::getenv("WAYMARK_PROPERTY_PROGRAMS");
    return text == nullptr ? sized(synthetic::long_cases, std::uint64_t{3}) : std::strtoull(text, nullptr, 10);
}

/// The failure, the smallest failing case, and how to run it alone.
std::string report(const synthetic::CaseName& failed, const synthetic::Spoil& spoil = {}) {
    synthetic::CaseTotals totals;
    const auto check = [&](const synthetic::CaseName& name) { return check_case(make_case(name), totals, spoil); };
    const synthetic::CaseName least = minimised(failed, [&](const auto& name) { return !check(name).empty(); });
    return failed.text() + " fails; the least of it is\n  WAYMARK_PROPERTY_CASE='" + least.text() +
           "' pft_test --gtest_filter='*ModelClass*/" + least.class_name + "'\n" + check(least);
}

class ModelClass : public testing::TestWithParam<std::string_view> {};

TEST_P(ModelClass, BothDecodersGiveWhatRan) {
    synthetic::CaseTotals totals;
    std::uint64_t cases = 0;
    const auto run = [&](const synthetic::CaseName& name) {
        ++cases;
        return check_case(make_case(name), totals);
    };
    if (const char* text = std::getenv("WAYMARK_PROPERTY_CASE"); text != nullptr) {
        const auto name = synthetic::CaseName::from_text(text);
        ASSERT_TRUE(name) << text << " is no case";
        if (name->class_name != GetParam()) GTEST_SKIP() << "WAYMARK_PROPERTY_CASE asks for another class";
        ASSERT_EQ(run(*name), "");
        return;
    }
    for (std::uint64_t seed = 1; seed <= programs(); ++seed) {
        const synthetic::CaseName name{std::string(GetParam()), seed};
        if (!run(name).empty()) FAIL() << report(name);
    }
    EXPECT_NE(totals.counts.waypoints, 0U);
    std::printf(
        "%llu programs, seeds 1 on; %llu waypoints traced, %llu not, %llu lost in %llu overflows; "
        "%llu elements, %llu timestamps, %llu bytes\n",
        static_cast<unsigned long long>(cases), static_cast<unsigned long long>(totals.counts.waypoints),
        static_cast<unsigned long long>(totals.counts.untraced),
        static_cast<unsigned long long>(totals.counts.overflowed),
        static_cast<unsigned long long>(totals.counts.overflows), static_cast<unsigned long long>(totals.elements),
        static_cast<unsigned long long>(totals.timestamps), static_cast<unsigned long long>(totals.counts.bytes));
}

INSTANTIATE_TEST_SUITE_P(Everything, ModelClass, testing::ValuesIn(synthetic::case_classes()),
                         [](const auto& name) { return std::string(name.param); });

/// With overflows: the losses of a full FIFO are part of the undamaged flow, and compared with the truth above.
TEST_P(ModelClass, DamageEndsAtTheNextSynchronisation) {
    synthetic::DamageTotals totals;
    for (std::uint64_t seed = synthetic::long_cases + 1; seed <= synthetic::long_cases + programs() / 2; ++seed) {
        const synthetic::CaseName name{std::string(GetParam()), seed, 300};
        ASSERT_EQ(check_damage(make_case(name), seed, totals), "") << name.text();
    }
    std::printf("%llu times damaged, %llu recovered, %llu of them missed one A-sync\n",
                static_cast<unsigned long long>(totals.damaged), static_cast<unsigned long long>(totals.recovered),
                static_cast<unsigned long long>(totals.late));
    EXPECT_LE(totals.late * 10, totals.damaged + 10);
}

/// A planted mistake is found and reduced: the necessary parts stay, all others are removed.
TEST(ModelCase, AMistakeIsMinimised) {
    const synthetic::Spoil wrong_context_id = [](const synthetic::ModelCase& c, std::vector<std::uint8_t>& bytes) {
        for (const auto& item : test::collect(bytes, c.model.packets()).items)
            if (item.text.starts_with("CONTEXT-ID")) bytes[item.first.value + 1] ^= std::uint8_t{1};
    };
    const synthetic::CaseName whole{"context_id_2", 3};
    synthetic::CaseTotals totals;
    ASSERT_EQ(check_case(make_case(whole), totals), "");
    unsigned tried = 0;
    const auto fails = [&](const synthetic::CaseName& name) {
        ++tried;
        return !check_case(make_case(name), totals, wrong_context_id).empty();
    };
    ASSERT_TRUE(fails(whole));
    const synthetic::CaseName least = minimised(whole, fails);
    EXPECT_TRUE(fails(least));
    EXPECT_LE(*least.steps, 60U) << least.text();
    EXPECT_LE(tried, 400U);
    for (const std::string_view name : synthetic::simplifications()) {
        const bool off = std::find(least.without.begin(), least.without.end(), name) != least.without.end();
        EXPECT_EQ(off, name != "context_id" && name != "context_changes") << name;
    }

    const auto again = synthetic::CaseName::from_text(least.text());
    ASSERT_TRUE(again);
    EXPECT_EQ(again->text(), least.text());
    EXPECT_FALSE(synthetic::CaseName::from_text("no_such_class seed=1"));
    EXPECT_FALSE(synthetic::CaseName::from_text("vmid seed=one"));
    EXPECT_FALSE(synthetic::CaseName::from_text("vmid seed=1 without=sense"));
    const std::string text = report(whole, wrong_context_id);
    for (const std::string_view part : {"WAYMARK_PROPERTY_CASE='context_id_2 seed=3", "truth:", "CONTEXT-ID"})
        EXPECT_NE(text.find(part), text.npos) << text;
}

/// The same for a mistake that needs a combination of settings.
TEST(ModelCase, WhatAMistakeNeedsIsKept) {
    const synthetic::Spoil wrong = [](const synthetic::ModelCase& c, std::vector<std::uint8_t>& bytes) {
        if (!c.model.registers.cr.cycle_accurate || c.walk.exceptions == 0 || bytes.empty()) return;
        bytes.pop_back();
    };
    const synthetic::CaseName whole{"exceptions", 1};
    synthetic::CaseTotals totals;
    const auto fails = [&](const synthetic::CaseName& name) {
        return !check_case(make_case(name), totals, wrong).empty();
    };
    if (!make_case(whole).model.registers.cr.cycle_accurate) FAIL() << "choose another seed";
    const synthetic::CaseName least = minimised(whole, fails);
    for (const std::string_view name : {"cycle_accurate", "exceptions"})
        EXPECT_EQ(std::find(least.without.begin(), least.without.end(), name), least.without.end()) << least.text();
    EXPECT_EQ(*least.steps, 1U);
    EXPECT_EQ(*least.blocks, 1U);
}

// ---- many blocks at once

/// Blocks of an invented program without code: the model gets the properties of its instructions.
struct Invented {
    struct Block {
        std::uint32_t address;
        Isa isa;
        std::uint8_t bytes_before;
        isa::Instruction end;
    };
    std::vector<Block> blocks;
};

Invented invent(synthetic::Random& random) {
    Invented out;
    const bool mixed = random.half(), far = random.chance(2000);
    const Isa only = random.half() ? Isa::a32 : Isa::t32;
    for (unsigned n = 0; n < 40; ++n) {
        constexpr std::array<Isa, 3> any{Isa::a32, Isa::t32, Isa::tee};
        const Isa isa = mixed && random.chance(1500) ? any[random.below(3)] : only;
        Invented::Block b;
        b.isa = isa;
        b.address = (random.chance(2000) || far ? random.below(0x7fffffff) : 0x8000 + random.below(0x4000)) & ~3U;
        b.end.bytes = isa == Isa::a32 || random.half() ? 4 : 2;
        const std::uint32_t kind = random.below(100);
        b.end.waypoint = kind < 55   ? isa::Waypoint::direct
                         : kind < 97 ? isa::Waypoint::indirect
                                     : isa::Waypoint::barrier;
        b.end.link = b.end.waypoint != isa::Waypoint::barrier && random.chance(3000);
        b.end.exception_return = b.end.waypoint == isa::Waypoint::indirect && random.chance(500);
        b.bytes_before = random.half() ? 0 : b.end.bytes;
        out.blocks.push_back(b);
    }
    return out;
}

// The fast path and the path that follows section 5.3: the same bytes, counts and losses, with any events in between.
TEST(Model, ManyBlocksAtOnceGiveTheSame) {
    std::uint64_t together = 0, lost = 0, sequences = 0;
    for (std::uint64_t seed = 1; seed <= sized(300U, 60U); ++seed) {
        synthetic::Random random(seed * 77773 + 5);
        const auto classes = synthetic::case_classes();
        ModelConfig config =
            synthetic::make_case({std::string(classes[random.below(static_cast<std::uint32_t>(classes.size()))]), seed})
                .model;
        if (!random.chance(2000)) config.registers.teevr = Registers{}.teevr;
        config.registers.cr.cycle_accurate = random.half();
        config.registers.cr.timestamps = random.half();
        config.registers.cr.branch_broadcast = random.chance(3000);
        if (!random.chance(3000)) config.registers.cr.vmid_trace = false;
        if (random.half()) config.choices.fifo_bytes = 0;
        if (random.chance(1000)) config.registers.syncfr.value = 1 + random.below(20);
        SCOPED_TRACE("seed " + std::to_string(seed));
        const Invented program = invent(random);
        ByteCollector one_trace, many_trace, again_trace;
        Model one(config, one_trace), many(config, many_trace), again(config, again_trace);
        std::uint64_t cycle = 0, before = 0;  // of the waypoint before
        bool ns = true, hyp = false;
        Place at{{program.blocks[0].address}, program.blocks[0].isa};
        const auto both = [&](auto&& f) {
            f(one);
            f(many);
            f(again);
        };
        both([&](Model& m) { m.start({at, ns, hyp, cycle}); });
        std::vector<std::uint32_t> calls;
        for (unsigned event = 0; event < 60; ++event) {
            std::vector<RetiredBlock> batch;
            Place from = at;
            for (std::uint32_t left = random.below(random.half() ? 5 : 400); left > 0; --left) {
                const Invented::Block* end = &program.blocks[random.below(40)];
                std::uint32_t start = static_cast<std::uint32_t>(at.address.value);
                RetiredBlock b;
                b.instruction = &end->end;
                // Mostly shortly after the place of execution, sometimes far away, sometimes at no place.
                const std::uint32_t far = random.below(100);
                b.bytes_before = end->bytes_before;
                b.address = {far == 0   ? end->address
                             : far == 1 ? start + 4096 + random.below(16) * 4
                                        : start + (end->bytes_before == 0 ? 0U : 4U * (1 + random.below(6)))};
                b.isa = far == 0 ? end->isa : at.isa;
                // Counts of every length, sometimes longer than a packet can hold.
                cycle += random.chance(9000) ? random.below(10) : std::uint64_t{random.below(64)} << random.below(28);
                b.cycle = cycle += random.chance(20) ? std::uint64_t{5} << 32 : 0;
                b.passed = random.chance(6000);
                const Invented::Block& next = program.blocks[random.below(40)];
                b.next = {next.address};
                b.next_isa = random.chance(seed % 2 == 0 ? 100 : 3000) ? next.isa : b.isa;
                if (end->end.link && b.passed)
                    calls.push_back(static_cast<std::uint32_t>(b.address.value) + end->end.bytes);
                if (end->end.waypoint == isa::Waypoint::indirect && b.passed && !calls.empty() && random.half()) {
                    b.next = {calls.back()};
                    calls.pop_back();
                }
                at = b.passed ? Place{b.next, b.next_isa} : Place{b.address + end->end.bytes, b.isa};
                batch.push_back(b);
            }
            for (const RetiredBlock& b : batch) {
                one.retire_block(
                    {b.address, b.isa, *b.instruction, b.passed, false, {b.next, b.next_isa}, ns, hyp, b.cycle},
                    b.bytes_before);
            }
            // Divided into sequences, as far as the unit can take them; all are prepared before the first is taken.
            std::vector<std::span<const RetiredBlock>> pieces;
            std::vector<std::unique_ptr<flow::PreparedSequence>> prepared;
            for (std::span<const RetiredBlock> rest = batch; !rest.empty(); rest = rest.subspan(pieces.back().size())) {
                pieces.push_back(rest.first(std::min<std::size_t>(rest.size(), 1 + random.below(7))));
                prepared.push_back(again.prepare(from, before, pieces.back()));
                const RetiredBlock& last = pieces.back().back();
                from = last.passed ? Place{last.next, last.next_isa}
                                   : Place{last.address + last.instruction->bytes, last.isa};
                before = last.cycle;
            }
            for (std::size_t n = 0; n < pieces.size();) {
                std::vector<flow::RetiredSequence> run;
                for (std::size_t k = n; k < pieces.size() && prepared[k] != nullptr; ++k)
                    run.push_back({prepared[k].get(), pieces[k].back().cycle});
                const std::size_t taken = run.empty() ? 0 : again.retire_sequences(run, ns, hyp);
                n += taken;
                sequences += taken;
                if (n == pieces.size() || taken != 0) continue;
                for (std::span<const RetiredBlock> rest = pieces[n]; !rest.empty();)
                    rest = rest.subspan(again.retire_blocks(rest, ns, hyp));
                ++n;
            }
            before = cycle;
            for (std::span<const RetiredBlock> rest = batch; !rest.empty();) {
                const std::uint64_t overflows = many.counts().overflowed;
                const std::size_t taken = many.retire_blocks(rest, ns, hyp);
                ASSERT_NE(taken, 0U);
                ASSERT_TRUE(taken == rest.size() || many.counts().overflowed != overflows);
                rest = rest.subspan(taken);
            }
            together += batch.size();
            ASSERT_EQ(many.counts(), one.counts()) << "event " << event;
            ASSERT_EQ(many.tracing(), one.tracing());
            ASSERT_EQ(again.counts(), one.counts()) << "event " << event;
            switch (random.below(12)) {
                case 0: both([&](Model& m) { m.set_context_id(seed & 1 ? event : 7); }); break;
                case 1: both([&](Model& m) { m.set_vmid(static_cast<std::uint8_t>(event)); }); break;
                case 2: both([&](Model& m) { m.request_sync(); }); break;
                case 3: both([&](Model& m) { m.run(8, 4, cycle); }), at.address.value += 8; break;
                case 4:
                    both([&](Model& m) { m.exception({14, {{0x18}, Isa::a32}, ns, hyp, cycle, {}, 4}); });
                    at = {{0x18}, Isa::a32};
                    break;
                case 5:
                    at = {{program.blocks[event % 40].address}, program.blocks[event % 40].isa};
                    both([&](Model& m) { m.discontinuity({at, ns, hyp, cycle}); });
                    break;
                case 6: ns = !random.chance(2000), hyp = random.chance(1000); break;
                case 7: both([](Model& m) { m.flush(); }); break;
                case 8: both([](Model& m) { m.set_external_input(1, true); }); break;
                case 9: both([&](Model& m) { m.set_authentication({true, event % 5 != 0}); }); break;
                case 10: both([](Model& m) { m.clock_changed(); }); break;
                default: break;
            }
        }
        both([](Model& m) { m.finish(); });
        ASSERT_EQ(many_trace.bytes(), one_trace.bytes());
        ASSERT_EQ(again_trace.bytes(), one_trace.bytes());
        ASSERT_EQ(many.counts(), one.counts());
        lost += one.counts().overflowed;
    }
    EXPECT_GT(sequences, together / 100);
    std::printf("%llu blocks, %llu sequences of them, %llu lost\n", static_cast<unsigned long long>(together),
                static_cast<unsigned long long>(sequences), static_cast<unsigned long long>(lost));
}

// ---- bytes worked out by hand

/// A model whose execution is given in few words; A32 unless stated otherwise.
class Unit {
public:
    explicit Unit(const ModelConfig& config) : model_(config, trace_) {}

    Unit& start(std::uint32_t address, bool ns = false, bool hyp = false, Isa isa = Isa::a32) {
        ns_ = ns;
        hyp_ = hyp;
        at_ = {{address}, isa};
        model_.start({at_, ns, hyp, cycle_});
        return *this;
    }
    /// Ordinary instructions, with this total number of bytes.
    Unit& run(std::uint32_t bytes) {
        model_.run(bytes, size(), cycle_);
        at_.address.value += bytes;
        return *this;
    }
    Unit& direct(std::uint32_t to, bool link = false) { return go(isa::Waypoint::direct, {{to}, at_.isa}, link); }
    Unit& fails(isa::Waypoint kind = isa::Waypoint::direct) { return go(kind, {}, false, false); }
    Unit& indirect(std::uint32_t to, Isa isa = Isa::a32, bool link = false) {
        return go(isa::Waypoint::indirect, {{to}, isa}, link);
    }
    Unit& exception_return(std::uint32_t to) {
        returns_ = true;
        return indirect(to);
    }
    Unit& barrier() { return go(isa::Waypoint::barrier, {{at_.address.value + size()}, at_.isa}); }
    Unit& exception(std::uint32_t number, std::uint32_t vector) {
        model_.exception({number, {{vector}, Isa::a32}, ns_, hyp_, cycle_, {}, 4});
        at_ = {{vector}, Isa::a32};
        return *this;
    }
    Unit& elsewhere(std::uint32_t address) {
        at_ = {{address}, at_.isa};
        model_.discontinuity({at_, ns_, hyp_, cycle_});
        return *this;
    }
    Unit& state(bool ns, bool hyp = false) {
        ns_ = ns;
        hyp_ = hyp;
        return *this;
    }
    Unit& cycles(std::uint64_t n) {
        cycle_ += n;
        return *this;
    }
    Model& model() { return model_; }
    std::uint64_t now() const { return cycle_; }

    /// The bytes sent since the last call.
    std::vector<std::uint8_t> sent() {
        model_.flush();
        return trace_.take_all();
    }
    /// The same, without bytes that only a flush would send.
    std::vector<std::uint8_t> sent_already() { return trace_.take_all(); }
    Unit& skip() {
        (void)sent();
        return *this;
    }
    Unit& debug_entry() {
        model_.debug_entry(cycle_);
        return *this;
    }
    Unit& debug_exit(std::uint32_t address) {
        at_ = {{address}, Isa::a32};
        model_.debug_exit({at_, ns_, hyp_, cycle_});
        return *this;
    }

private:
    struct Collector final : ByteSink {
        void write(Bytes b) override { bytes.insert(bytes.end(), b.begin(), b.end()); }
        std::vector<std::uint8_t> take_all() { return std::exchange(bytes, {}); }
        std::vector<std::uint8_t> bytes;
    };
    [[nodiscard]] std::uint8_t size() const { return at_.isa == Isa::a32 ? 4 : 2; }
    Unit& go(isa::Waypoint kind, Place to, bool link = false, bool passed = true) {
        Retired r;
        r.address = at_.address;
        r.isa = at_.isa;
        r.instruction.bytes = size();
        r.instruction.waypoint = kind;
        r.instruction.link = link;
        r.instruction.exception_return = std::exchange(returns_, false);
        r.passed = passed;
        r.next = to;
        r.ns = ns_;
        r.hyp = hyp_;
        r.cycle = cycle_;
        model_.retire(r);
        at_ = passed ? to : Place{{at_.address.value + size()}, at_.isa};
        return *this;
    }

    Collector trace_;
    Model model_;
    Place at_;
    bool ns_ = false, hyp_ = false, returns_ = false;
    std::uint64_t cycle_ = 100;
};

ModelConfig plain_model() {
    ModelConfig c;
    c.registers.syncfr.value = 0;
    return c;
}
ModelConfig with(auto&& change) {
    ModelConfig c = plain_model();
    change(c.registers, c.choices);
    return c;
}

TEST(Model, BeginsWithASyncAndISync) {  // 5.5, first rule; I-sync of 2.6
    Unit u(plain_model());
    u.start(0x80000554).direct(0x80000560);
    EXPECT_EQ(u.sent(), hex("00 00 00 00 00 80  08 54 05 00 80 21  84"));
}

TEST(Model, PacksFiveAtomsOrFewerBeforeAnAddress) {  // 5.4
    Unit u(plain_model());
    u.start(0x8000);
    for (int i = 0; i < 5; ++i) u.direct(0x8000);
    u.direct(0x8000).fails().direct(0x8004).indirect(0x9000);
    EXPECT_EQ(u.sent(), hex("00 00 00 00 00 80  08 00 80 00 00 21  c0  94  81 10"));
}

TEST(Model, CountsCyclesInEveryAtom) {  // 2.3, 5.5: E8 20 is E after 522 cycles
    Unit u(with([](Registers& r, ModelChoices&) { r.cr.cycle_accurate = true; }));
    u.start(0x8000).cycles(522).direct(0x8000).cycles(3).fails();
    EXPECT_EQ(u.sent(), hex("00 00 00 00 00 80  08 00 80 00 00 21 80  e8 20  8e"));
}

TEST(Model, AnInterruptUpgradesTheLastInstruction) {  // 4.7, 5.3; bytes of 2.5 and 2.7
    Unit u(with([](Registers& r, ModelChoices&) { r.cr.cycle_accurate = true; }));
    u.start(0xc0010ee0, true).run(20).cycles(15).exception(14, 0xffff0018);
    EXPECT_EQ(u.sent(), hex("00 00 00 00 00 80  08 e0 0e 01 c0 29 80  72 79  8d 80 fe ff 4f 1d 3c"));
}

TEST(Model, NothingIsUpgradedDirectlyBehindAWaypoint) {  // 4.7: after an atom, after another exception, by a reset
    Unit u(plain_model());
    u.start(0x8000).direct(0x8100).skip().exception(14, 0x18).exception(15, 0x1c).run(4).exception(8, 0);
    EXPECT_EQ(u.sent(), hex("8d 80 40 1c  8f 40 1e  81 40 10"));
}

TEST(Model, AnInstructionThatRaisesItsExceptionIsUpgraded) {  // 4.7: an SVC that is given with its exception or before
                                                              // it
    for (const bool delivered : {false, true}) {
        Unit u(plain_model());
        u.start(0x8000).direct(0x8000).skip().run(4);
        if (delivered)
            u.run(4).exception(10, 8);
        else
            u.model().exception({10, {{8}, Isa::a32}, false, false, u.now(), Place{{0x8004}, Isa::a32}, 4});
        EXPECT_EQ(u.sent(), hex("72 03 85 80 40 14"));
    }
}

TEST(Model, DebugStateIsEnteredAtAddressZeroAndLeftByAnISync) {  // 5.3; both byte sequences captured
    Unit u(plain_model());
    u.start(0x8000).direct(0x8000).skip().run(4).debug_entry();
    EXPECT_EQ(u.sent(), hex("72 01 81 80 80 80 48 02"));
    u.debug_exit(0x80000554).direct(0x80000554);
    EXPECT_EQ(u.sent(), hex("08 54 05 00 80 61 84"));
}

TEST(Model, SynchronisesAfterSoManyBytes) {  // 5.5: A-sync, a periodic I-sync at the next boundary, T-sync after it
    Unit u(with([](Registers& r, ModelChoices&) { r.syncfr.value = 8; }));
    u.start(0x8000);
    for (int i = 0; i < 11; ++i) u.direct(0x8000);
    EXPECT_EQ(u.sent(), hex("00 00 00 00 00 80  08 00 80 00 00 21  c0 c0  00 00 00 00 00 80  08 00 80 00 00 01  84"));
    // A branch packet may come between the two; the I-sync repeats its address.
    Unit late(with([](Registers&, ModelChoices& c) { c.isync_delay_waypoints = 1; }));
    late.start(0x8000).direct(0x8000).skip().model().request_sync();
    late.indirect(0x9000).direct(0x9000);
    EXPECT_EQ(late.sent(), hex("00 00 00 00 00 80  81 10  08 00 90 00 00 01  84"));

    // With 48 bits, a timestamp wraps (2.9).
    for (const std::uint64_t first : {std::uint64_t{0x1234}, (std::uint64_t{1} << 48) + 0x1234}) {
        Unit timed(with([&](Registers& r, ModelChoices& c) {
            r.cr.timestamps = true;
            r.ccer.timestamp_64 = false;
            c.timestamp_first = first;
        }));
        timed.start(0x8000).direct(0x8000).skip().model().request_sync();
        timed.direct(0x8000);
        EXPECT_EQ(timed.sent(), hex("00 00 00 00 00 80  08 00 80 00 00 01  42 b4 a4 80 80 80 80 00  84"));
    }
}

TEST(Model, ATraceOnISyncSatisfiesARequest) {  // 5.5, as captured: one A-sync, then an I-sync with reason 1
    Unit u(with([](Registers& r, ModelChoices&) {
        r.syncfr.value = 8;
        r.teevr = from_value<Etmteevr>(0x60);
    }));
    u.model().set_external_input(1, true);
    u.start(0x8000);
    for (int i = 0; i < 10; ++i) u.direct(0x8000);
    u.skip().model().set_external_input(1, false);
    u.direct(0x8000).model().set_external_input(1, true);
    u.direct(0x8000);
    EXPECT_EQ(u.sent(), hex("08 00 80 00 00 21 84"));
}

TEST(Model, TheISyncBehindAGapCountsItsCycles) {  // 4.9, 5.5, 5.6: included blocks only
    Unit u(with([](Registers& r, ModelChoices&) {
        r.cr.cycle_accurate = true;
        r.tecr1 = from_value<Etmtecr1>(1);
        r.acvr[0].value = 0x8000;
        r.acvr[1].value = 0x8100;
    }));
    u.start(0x8000).cycles(10).direct(0x9000).cycles(20).direct(0x8000).cycles(5).direct(0x8000);
    EXPECT_EQ(u.sent(), hex("00 00 00 00 00 80  08 00 80 00 00 21 80  a8  08 00 80 00 00 21 d0 01  94"));
}

TEST(Model, ABlockIsExcludedOnlyIfItLiesInTheRange) {  // 5.6
    const ModelConfig config = with([](Registers& r, ModelChoices&) {
        r.tecr1 = from_value<Etmtecr1>(0x01000001);
        r.acvr[0].value = 0x8000;
        r.acvr[1].value = 0x8010;
    });
    Unit inside(config);
    inside.start(0x8000).run(12).direct(0x8000);
    EXPECT_EQ(inside.sent(), hex(""));
    inside.run(16).direct(0x8000);
    EXPECT_EQ(inside.sent(), hex("00 00 00 00 00 80  08 00 80 00 00 21  84"));
    EXPECT_EQ(inside.model().counts().untraced, 1U);
    EXPECT_EQ(inside.model().counts().waypoints, 1U);
}

TEST(Model, AFullFifoLosesTraceUntilItIsEmpty) {  // 5.5: restart with reason 2; a trigger in between comes after it
    for (const bool async : {false, true}) {
        Unit u(with([=](Registers& r, ModelChoices& c) {
            r.trigger = from_value<Etmtrigger>(0x60);
            c.fifo_bytes = 24;
            c.drain_bytes = 1;
            c.drain_cycles = 10;
            c.overflow_async = async;
        }));
        u.start(0x8000).indirect(0x108000).indirect(0x8000).indirect(0x108000).indirect(0x8000);
        EXPECT_EQ(u.sent(), hex("00 00 00 00 00 80  08 00 80 00 00 21  81 80 21  81 80 01  81 80 21  81 80 01"));
        EXPECT_FALSE(u.model().status().overflow);
        u.indirect(0x108000).model().set_external_input(1, true);
        EXPECT_TRUE(u.model().status().overflow);
        EXPECT_TRUE(u.model().status().triggered);
        u.cycles(10).direct(0x108000).cycles(300).fails();
        EXPECT_EQ(u.sent(), hex(async ? "00 00 00 00 00 80  08 00 80 10 00 41  0c  86" : "08 00 80 10 00 41  0c  86"));
        EXPECT_EQ(u.model().counts().overflowed, 2U);
        EXPECT_EQ(u.model().counts().overflows, 1U);
    }
}

TEST(Model, ARestartSendsTheWholeTimestamp) {  // 5.5: the base of the next address may be lost
    Unit u(with([](Registers& r, ModelChoices& c) {
        r.cr.timestamps = true;
        c.timestamp_first = 1;
        c.fifo_bytes = 24;
        c.drain_bytes = 1;
        c.drain_cycles = 1;
    }));
    u.start(0x8000).indirect(0x108000).skip().cycles(1000).direct(0x108000);
    EXPECT_EQ(u.sent(), hex("08 00 80 10 00 41  42 81 80 80 80 80 80 80 80 00  84"));
}

TEST(Model, NoCyclesAreLostWithAnASyncThatDoesNotFit) {  // 5.5: the count of the I-sync after it was not sent
    Unit u(with([](Registers& r, ModelChoices& c) {
        r.cr.cycle_accurate = true;
        r.tecr1 = from_value<Etmtecr1>(1);
        r.acvr[0].value = 0x8000;
        r.acvr[1].value = 0x8100;
        c.fifo_bytes = 24;
        c.drain_bytes = 1;
        c.drain_cycles = 1;
    }));
    u.start(0x8000).cycles(1).direct(0x8000).cycles(1);
    for (int i = 0; i < 9; ++i) u.direct(0x8000);
    u.direct(0x9000).cycles(1).skip().model().request_sync();
    u.direct(0x8000).cycles(3).direct(0x8000);  // 22 bytes are in the FIFO: the A-sync overflows it
    EXPECT_EQ(u.sent(), hex(""));
    EXPECT_EQ(u.model().counts().overflows, 1U);
    u.cycles(100).direct(0x8000);
    EXPECT_EQ(u.sent(), hex("00 00 00 00 00 80  08 00 80 00 00 41 90  d0 06"));
}

TEST(Model, SynchronisationIsDueHoweverOftenTheFifoFills) {  // 5.5
    Unit u(with([](Registers& r, ModelChoices& c) {
        r.syncfr.value = 40;
        r.cr.timestamps = r.cr.vmid_trace = r.cr.cycle_accurate = true;  // more bytes than fit after an I-sync
        r.cr.context_id_size = 3;
        c.fifo_bytes = 24;
        c.drain_bytes = 1;
        c.drain_cycles = 1;
    }));
    u.start(0x8000).direct(0x8000);
    for (int i = 0; i < 20; ++i) u.cycles(100).direct(0x8000);
    unsigned asyncs = 0;
    Config config = plain_model().packets();
    config.cycle_accurate = true;
    config.context_id_bytes = 4;
    for (const auto& item : test::collect(u.sent(), config).items) asyncs += item.text.starts_with("A-SYNC");
    EXPECT_GE(u.model().counts().overflows, 10U);
    EXPECT_GE(asyncs, 4U);
}

TEST(Model, AWaypointUpdateAndItsExceptionAreNotSplitByAnOverflow) {  // 5.5
    Unit u(with([](Registers&, ModelChoices& c) {
        c.fifo_bytes = 24;
        c.drain_bytes = 1;
        c.drain_cycles = 1;
    }));
    u.start(0x8000).indirect(0x108000).indirect(0x8000).indirect(0x108000).skip();  // 21 bytes are in the FIFO: two
                                                                                    // more fit
    u.run(4).exception(14, 0x18).cycles(100).direct(0x18);
    EXPECT_EQ(u.sent(), hex("08 18 00 00 00 41  84"));
}

TEST(Model, TheAtomOfALargeBlockIsNotSplitFromItsWaypointUpdate) {  // 5.5
    const ModelConfig config = with([](Registers&, ModelChoices& c) {
        c.fifo_bytes = 24;
        c.drain_bytes = 1;
        c.drain_cycles = 1000;
    });
    // Three bytes are left: the update fits, its atom does not.
    Unit full(config);
    full.start(0x8000).indirect(0x108000).indirect(0x8000).indirect(0x108000).skip();
    full.run(0x1004).direct(0x8000);
    EXPECT_EQ(full.sent(), hex(""));
    EXPECT_EQ(full.model().counts().overflowed, 1U);
    EXPECT_EQ(full.model().counts().waypoints, 3U);
    // Both packets fit, but then an A-sync does not: the atom is sent first.
    Unit kept(config);
    kept.start(0x8000).indirect(0x108000).indirect(0x8000).skip();
    kept.run(0x1004).direct(0x8000);
    EXPECT_EQ(kept.sent_already(), hex("72 81 10"));
    kept.model().request_sync();
    kept.direct(0x8000);
    EXPECT_EQ(kept.sent(), hex("84"));
    EXPECT_EQ(kept.model().counts().overflowed, 1U);
    EXPECT_EQ(kept.model().counts().waypoints, 3U);
}

TEST(Model, ARequestBeforeTheLastIsServedForcesAnOverflow) {  // 5.5, unless ETMAUXCR[0]
    for (const bool forbidden : {false, true}) {
        Unit u(with([=](Registers& r, ModelChoices& c) {
            r.auxcr.no_forced_overflow = forbidden;
            c.isync_delay_waypoints = 3;
        }));
        u.start(0x8000).direct(0x8000).skip().model().request_sync();
        u.direct(0x8000).model().request_sync();
        u.direct(0x8000);
        EXPECT_EQ(u.sent(), hex(forbidden ? "00 00 00 00 00 80 00 00 00 00 00 80 88"
                                          : "00 00 00 00 00 80 84 00 00 00 00 00 80 08 00 80 00 00 41 84"));
    }
}

TEST(Model, TimestampsCarryTheTimeOfTheLastWaypoint) {  // 5.5, v1.1; both values captured (2.9)
    const std::uint64_t value = 0x4cULL | 0x17ULL << 7 | 0x46ULL << 14 | 0x4eULL << 21 | 0x2fULL << 28 | 0x10ULL << 35;
    Unit u(with([](Registers& r, ModelChoices&) { r.cr.timestamps = r.cr.cycle_accurate = true; }));
    u.model().set_timestamp(value);
    u.start(0x8000).cycles(4).model().set_timestamp(value + 5);
    u.barrier().model().set_timestamp(value + 900);
    EXPECT_EQ(u.sent(), hex("00 00 00 00 00 80  08 00 80 00 00 21 80  42 cc 97 c6 ce af 90 80 80 00 00  90  42 51 00"));
}

TEST(Model, VersionOneGrayTimestampsCarryTheTimeOfTheirPacket) {  // 5.5, v1.0; the value was captured (2.9)
    const std::uint64_t sent = 0x67ULL | 0x70ULL << 7 | 0x2eULL << 14 | 0x48ULL << 21 | 0x0eULL << 28 | 0x0bULL << 35;
    Unit u(with([](Registers& r, ModelChoices& c) {
        r.idr = from_value<Etmidr>(0x411cf301);
        r.cr.timestamps = r.cr.cycle_accurate = true;
        c.packet_delay_cycles = 3;
    }));
    u.model().set_timestamp(from_gray(sent));
    u.start(0x8000).cycles(3).direct(0x8000);
    EXPECT_EQ(u.sent(), hex("00 00 00 00 00 80  08 00 80 00 00 21 80  42 e7 f0 ae c8 8e 8b 00 0c  80"));
}

TEST(Model, TimestampsAreRequestedByWhatThePtmSaysSo) {  // 5.5
    const auto unit = [](auto&& change) {
        return with([&](Registers& r, ModelChoices& c) {
            r.cr.timestamps = true;
            c.timestamp_first = 1;
            change(r, c);
        });
    };
    const auto nothing = [](Registers&, ModelChoices&) {};
    const auto none = [](Registers& r, ModelChoices&) { r.auxcr.no_exception_timestamps = true; };
    Unit entry(unit(nothing));
    entry.start(0x8000).direct(0x8000).skip().exception(14, 0x8018);
    EXPECT_EQ(entry.sent(), hex("8d 40 1c 42 01"));
    entry.exception_return(0x8000);
    EXPECT_EQ(entry.sent(), hex("01 76 42 01"));
    Unit silent(unit(none));
    silent.start(0x8000).direct(0x8000).skip().exception(14, 0x8018).exception_return(0x8000);
    EXPECT_EQ(silent.sent(), hex("8d 40 1c 01 76"));
    // DMB and DSB, if ETMCCER[25], unless ETMAUXCR[1]; as waypoint instructions or not.
    for (const bool asks : {false, true})
        for (const bool disabled : {false, true}) {
            Unit u(unit([=](Registers& r, ModelChoices&) {
                r.ccer.barrier_timestamps = asks;
                r.auxcr.no_barrier_timestamps = disabled;
            }));
            u.start(0x8000).direct(0x8000).skip();
            Retired dsb{{0x8000}, Isa::a32, {}, true, true, {}, false, false, u.now()};
            dsb.instruction.bytes = 4;
            u.model().retire(dsb);
            EXPECT_EQ(u.sent(), hex(asks && !disabled ? "42 01" : ""));
        }
    // The clock: R = 1.
    Unit clock(unit(nothing));
    clock.start(0x8000).direct(0x8000).skip().model().clock_changed();
    EXPECT_EQ(clock.sent(), hex("46 01"));
    // Where tracing begins again, only with this choice.
    for (const bool chosen : {false, true}) {
        Unit u(unit([=](Registers&, ModelChoices& c) { c.trace_on_timestamp = chosen; }));
        u.start(0x8000).direct(0x8000).skip().elsewhere(0x8000).direct(0x8000);
        EXPECT_EQ(u.sent(), hex(chosen ? "08 00 80 00 00 21 42 01 84" : "08 00 80 00 00 21 84"));
    }
    // ETMTSEVR becomes true; OQ16: either nothing was traced since the timestamp of the I-sync, or the timestamp is
    // sent nevertheless.
    for (const bool filtered : {false, true}) {
        Unit u(unit([=](Registers& r, ModelChoices& c) {
            r.tsevr = from_value<Etmtsevr>(0x60);
            if (!filtered) c.timestamp_filter = ModelChoices::TimestampFilter::none;
        }));
        u.start(0x8000).direct(0x8000).skip().model().set_external_input(1, true);
        EXPECT_EQ(u.sent(), hex("42 01"));
        u.model().set_external_input(1, true);
        EXPECT_EQ(u.sent(), hex(""));  // it did not become true now: it was true before
        u.model().set_external_input(1, false);
        u.model().set_external_input(1, true);
        EXPECT_EQ(u.sent(), hex(filtered ? "" : "42 01"));
    }
}

ModelConfig return_stack(unsigned depth) {
    return with([=](Registers& r, ModelChoices& c) {
        r.cr.return_stack = true;
        c.return_stack_depth = static_cast<std::uint8_t>(depth);
    });
}

TEST(Model, AReturnThatMatchesTheReturnStackIsAnAtom) {  // 4.5
    Unit u(return_stack(1));
    u.start(0x8000).direct(0x9000, true).indirect(0x8004).skip();
    u.direct(0x9000, true).indirect(0x8008).indirect(0x8008);
    EXPECT_EQ(u.sent(), hex("88 05"));  // the second time the stack is empty
}

TEST(Model, AMismatchLeavesTheReturnStackAsItIs) {  // 4.5
    Unit u(return_stack(1));
    u.start(0x8000).direct(0x9000, true).indirect(0x8040).indirect(0x8004);
    EXPECT_EQ(u.sent(), hex("00 00 00 00 00 80  08 00 80 00 00 21  84 21 84"));
}

TEST(Model, AFullReturnStackThrowsTheOldestEntryAway) {  // 4.5, OQ2
    for (const unsigned depth : {1U, 2U}) {
        Unit u(return_stack(depth));
        u.start(0x8000)
            .direct(0x8000)
            .skip()
            .direct(0x9000, true)
            .direct(0xa000, true)
            .indirect(0x9004)
            .indirect(0x8004);
        EXPECT_EQ(u.sent(), hex(depth == 1 ? "90 03" : "a0")) << depth;
    }
}

TEST(Model, ReturnsMatchTheLatestCallFirst) {  // 4.5
    for (const unsigned depth : {3U, 4U, 5U, 16U}) {
        Unit u(return_stack(depth));
        u.start(0x8000).direct(0x8000).skip();
        u.direct(0x9000, true).direct(0xa000, true).direct(0xb000, true);
        u.indirect(0xa004).indirect(0x9004).indirect(0x8004);
        EXPECT_EQ(u.sent(), hex("c0 84")) << depth;
    }
}

TEST(Model, APopComesBeforeAPush) {  // 4.5: BLX Rm to the address on the stack
    Unit u(return_stack(1));
    u.start(0x8000).direct(0x8000).skip();
    u.direct(0x9000, true).indirect(0x8004, Isa::a32, true).indirect(0x9004);
    EXPECT_EQ(u.sent(), hex("90"));
}

TEST(Model, AnISyncEmptiesTheReturnStack) {  // 4.5: a periodic I-sync as well
    Unit u(return_stack(4));
    u.start(0x8000).direct(0x9000, true).skip().model().request_sync();
    u.indirect(0x8004);
    EXPECT_EQ(u.sent(), hex("00 00 00 00 00 80  08 00 90 00 00 01  83 00"));
}

TEST(Model, AnExceptionReturnNeverBecomesAnAtom) {  // 5.3, rule 6; OQ3: the fate of the entry
    for (const bool pops : {false, true}) {
        ModelConfig config = return_stack(1);
        if (pops) config.choices.matched_change = ModelChoices::MatchedChange::packet_pops_entry;
        Unit u(config);
        u.start(0x8000).direct(0x8000).skip().direct(0x9000, true).exception_return(0x8004).indirect(0x8004);
        EXPECT_EQ(u.sent(), hex(pops ? "84 03 76 03" : "84 03 76 84"));
        // v1.0 has no exception return packet, so the atom loses nothing.
        config.registers.idr.minor = 0;
        Unit old(config);
        old.start(0x8000).direct(0x8000).skip().direct(0x9000, true).exception_return(0x8004);
        EXPECT_EQ(old.sent(), hex("88"));
    }
}

TEST(Model, BranchBroadcastSendsTakenDirectBranches) {  // 4.6; OQ8: barriers
    for (const bool packet : {false, true}) {
        Unit u(with([=](Registers& r, ModelChoices& c) {
            r.cr.branch_broadcast = r.cr.return_stack = true;  // the return stack then has no effect
            if (packet) c.broadcast_barrier = ModelChoices::BroadcastBarrier::packet;
        }));
        u.start(0x8000).fails().skip().direct(0x8040).fails().barrier();
        EXPECT_EQ(u.sent(), hex(packet ? "21 86 25" : "21 8c"));
    }
}

TEST(Model, AStateWrittenByMcrIsShownByTheNextTakenBranch) {  // 4.8; OQ11
    for (const bool brief : {true, false}) {
        Unit u(with([=](Registers&, ModelChoices& c) { c.short_information = brief; }));
        u.start(0x8000).direct(0x8000).skip().state(true).fails().direct(0x8010);
        EXPECT_EQ(u.sent(), hex(brief ? "86 89 40 01" : "86 89 80 81 80 48 01"));
        u.direct(0x8010);
        EXPECT_EQ(u.sent(), hex("84"));
    }
}

TEST(Model, HypIsInInformationByte1) {  // 2.5; OQ5
    for (const bool changed : {false, true}) {
        Unit u(with([=](Registers&, ModelChoices& c) {
            if (changed) c.hyp_information = ModelChoices::HypInformation::changed;
        }));
        u.start(0x8000, true).direct(0x8000).skip().state(true, true).exception(3, 0x8014);
        EXPECT_EQ(u.sent(), hex("8b 40 87 20"));
        u.exception(14, 0x8018);
        EXPECT_EQ(u.sent(), hex(changed ? "8d 40 1d" : "8d 40 9d 20"));
    }
}

TEST(Model, EntryToHypModeUpgradesAsAnSvcDoes) {  // OQ14
    for (const bool updates : {true, false}) {
        Unit u(with([=](Registers&, ModelChoices& c) { c.hyp_entry_updates = updates; }));
        u.start(0x8000, true).direct(0x8000).skip().run(4).state(true, true).exception(3, 0x8014);
        EXPECT_EQ(u.sent(), hex(updates ? "72 01 8b 40 87 20" : "8b 40 87 20"));
    }
}

TEST(Model, AnExceptionPacketHasTheStateOfTheHandler) {  // OQ17
    for (const bool handler : {true, false}) {
        Unit u(with([=](Registers&, ModelChoices& c) {
            if (!handler) c.exception_state = ModelChoices::ExceptionState::interrupted;
        }));
        u.start(0x8000, true).direct(0x8000).skip().state(false).exception(2, 0x8008).direct(0x8008);
        EXPECT_EQ(u.sent(), hex(handler ? "85 40 04 84" : "85 40 05 85 40 00"));
    }
}

TEST(Model, ALargeBlockGetsAWaypointUpdate) {  // 5.3, rule 3; OQ4
    const auto sent = [](std::uint32_t bytes, auto&& change) {
        Unit u(with([&](Registers&, ModelChoices& c) { change(c); }));
        u.start(0x8000).direct(0x8000).skip().run(bytes).direct(0x8000);
        return u.sent();
    };
    const auto nothing = [](ModelChoices&) {};
    EXPECT_EQ(sent(4096, nothing), hex("84"));
    EXPECT_EQ(sent(4100, nothing), hex("72 81 10 84"));
    EXPECT_EQ(sent(4100, [](ModelChoices& c) { c.large_block_address = ModelChoices::LargeBlockAddress::waypoint; }),
              hex("72 83 10 84"));
    EXPECT_EQ(sent(4096, [](ModelChoices& c) { c.large_block_test = ModelChoices::LargeBlockTest::length; }),
              hex("72 ff 0f 84"));
}

TEST(Model, AnAddressBehindAnUpdateIsRightForEitherBase) {  // OQ1: 0x8000, then an update at 0x9000, then 0x9010
    const auto sent = [](ModelChoices::UpdateBase base) {
        Unit u(with([=](Registers&, ModelChoices& c) { c.update_base = base; }));
        u.start(0x8000).direct(0x8000).skip().run(4100).indirect(0x9010);
        return u.sent();
    };
    EXPECT_EQ(sent(ModelChoices::UpdateBase::either), hex("72 81 10  89 10"));
    EXPECT_EQ(sent(ModelChoices::UpdateBase::is_base), hex("72 81 10  09"));
    EXPECT_EQ(sent(ModelChoices::UpdateBase::is_not_base), hex("72 81 10  89 10"));
}

TEST(Model, AProhibitedRegionIsNotSeen) {  // 5.3; OQ10
    for (const bool nothing : {false, true}) {
        Unit u(with([=](Registers&, ModelChoices& c) {
            if (nothing) c.prohibited_entry = ModelChoices::ProhibitedEntry::nothing;
        }));
        u.model().set_authentication({true, false});
        u.start(0x8000, true).direct(0x8000).skip().run(4).state(false).exception(2, 0x100);
        EXPECT_EQ(u.sent(), hex(nothing ? "" : "72 01 81 80 40 05"));
        u.direct(0x104).direct(0x200);
        EXPECT_EQ(u.sent(), hex(""));
        u.state(true).exception_return(0x8004).direct(0x8000);
        EXPECT_EQ(u.sent(), hex("08 04 80 00 00 29 84"));
    }
    // Stopped by signal: only pending packets; afterwards, the first visible instruction.
    Unit u(plain_model());
    u.start(0x8000).direct(0x8000).skip().direct(0x8000).model().set_authentication({false, false});
    EXPECT_EQ(u.sent_already(), hex("84"));
    u.direct(0x9000).run(8).model().set_authentication({true, true});
    u.direct(0x8000);
    EXPECT_EQ(u.sent(), hex("08 08 90 00 00 21 84"));
}

TEST(Model, JazelleIsEnteredByItsPatternAndLeftByAnISync) {  // 5.3
    Unit u(plain_model());
    u.start(0x8000).direct(0x8000).skip().indirect(0x12345, Isa::jazelle);
    EXPECT_EQ(u.sent(), hex("8b 8d 89 80 20"));
    u.exception(14, 0x18).direct(0x18);
    EXPECT_EQ(u.sent(), hex("08 18 00 00 00 21 84"));
}

TEST(Model, ThumbeeIsTold) {  // 2.5: five bytes and AltISA
    Unit u(plain_model());
    u.start(0x8000, false, false, Isa::t32).direct(0x8000).skip().indirect(0x8010, Isa::tee);
    EXPECT_EQ(u.sent(), hex("91 80 82 80 50 40"));
    u.indirect(0x8000);
    EXPECT_EQ(u.sent(), hex("81 80 81 80 48 00"));
}

TEST(Model, WaitingSendsWhatIsPending) {  // 1.1, 5.3
    Unit u(plain_model());
    u.start(0x8000).direct(0x8000).skip().direct(0x8000);
    EXPECT_EQ(u.sent_already(), hex(""));
    u.model().wait(u.now());
    EXPECT_EQ(u.sent_already(), hex("84"));
    u.direct(0x8000);
    EXPECT_EQ(u.sent(), hex("84"));
}

TEST(Model, TheProgrammingBitStopsAtOnce) {  // 5.3: the unfinished block is lost; when the bit is cleared, an A-sync
                                             // comes again
    Unit u(plain_model());
    u.start(0x8000).direct(0x8000).skip().direct(0x8000).run(4).model().set_programming(true, u.now());
    EXPECT_EQ(u.sent_already(), hex("84"));
    EXPECT_TRUE(u.model().status().programming);
    u.direct(0x9000);
    EXPECT_EQ(u.sent(), hex(""));
    u.run(4).model().set_programming(false, u.now());
    u.direct(0x9000);
    EXPECT_EQ(u.sent(), hex("00 00 00 00 00 80  08 04 90 00 00 21  84"));
}

TEST(Model, ADiscontinuityIsFollowedByAnISync) {  // announced by the caller, or noticed
    Unit u(plain_model());
    u.start(0x8000).direct(0x8000).skip().direct(0x8000).run(8).elsewhere(0x9000).direct(0x9000);
    EXPECT_EQ(u.sent(), hex("84 08 00 90 00 00 21 84"));
    Retired r{{0xa000}, Isa::a32, {}, true, false, {{0xa000}, Isa::a32}, false, false, u.now()};
    r.instruction.bytes = 4;
    r.instruction.waypoint = isa::Waypoint::direct;
    u.model().retire(r);
    EXPECT_EQ(u.sent(), hex("08 00 a0 00 00 21 84"));
}

TEST(Model, ContextIdAndVmidFollowTheirWaypoint) {  // 4.8, 5.3 rule 7
    Unit u(with([](Registers& r, ModelChoices&) {
        r.cr.context_id_size = 1;
        r.cr.vmid_trace = true;
    }));
    u.start(0x8000).direct(0x8000);
    EXPECT_EQ(u.sent(), hex("00 00 00 00 00 80  08 00 80 00 00 21 00  3c 00  84"));
    u.model().set_context_id(0x142);
    u.model().set_vmid(7);
    u.direct(0x8000);
    EXPECT_EQ(u.sent(), hex("6e 42 3c 07 84"));
    u.run(4).model().set_context_id(0x43);
    u.direct(0x8000);
    EXPECT_EQ(u.sent(), hex("84 6e 43"));
    u.model().request_sync();
    u.direct(0x8000);
    EXPECT_EQ(u.sent(), hex("00 00 00 00 00 80  08 00 80 00 00 01 43  3c 07  84"));
}

TEST(Model, AtomsMayWaitThroughAnASync) {  // 5.4; OQ15
    for (const bool flushes : {false, true}) {
        Unit u(with([=](Registers&, ModelChoices& c) {
            c.async_flushes_atoms = flushes;
            c.isync_delay_waypoints = 5;
        }));
        u.start(0x8000).direct(0x8000).skip().direct(0x8000).model().request_sync();
        u.direct(0x8000);
        EXPECT_EQ(u.sent(), hex(flushes ? "84 00 00 00 00 00 80 84" : "00 00 00 00 00 80 88"));
    }
}

TEST(Model, ACountThatDoesNotFitSaturates) {  // 2.3; OQ6
    using Overflow = ModelChoices::CycleOverflow;
    for (const Overflow choice : {Overflow::saturate_zero_isync, Overflow::saturate, Overflow::wrap}) {
        Unit u(with([=](Registers& r, ModelChoices& c) {
            r.cr.cycle_accurate = true;
            c.cycle_overflow = choice;
        }));
        const bool wraps = choice == Overflow::wrap;
        u.start(0x8000).direct(0x8000).skip().cycles(0x100000005).direct(0x8000);
        EXPECT_EQ(u.sent(), hex(wraps ? "94" : "fc ff ff ff 7f"));
        u.cycles(0x100000005).elsewhere(0x9000).direct(0x9000);
        EXPECT_EQ(u.sent(), hex(wraps                          ? "08 00 90 00 00 21 94 80"
                                : choice == Overflow::saturate ? "08 00 90 00 00 21 fc ff ff ff 7f 80"
                                                               : "08 00 90 00 00 21 80 80"));
    }
}

TEST(Model, TheTriggerIsSentOncePerRise) {  // 5.5
    Unit u(with([](Registers& r, ModelChoices&) { r.trigger = from_value<Etmtrigger>(0x60); }));
    u.start(0x8000).direct(0x8000).skip();
    for (const bool level : {true, true, false, true}) {
        u.model().set_external_input(1, level);
        u.direct(0x8000);
    }
    EXPECT_EQ(u.sent(), hex("0c 0c a0"));
}

// ---- resources, 5.6

TEST(Model, AStopTakesEffectBehindItsBlock) {
    Unit u(with([](Registers& r, ModelChoices&) {
        r.tecr1.start_stop = true;
        r.tsscr = {0x2, 0x1};  // comparator 2 stops, comparator 1 starts
        r.acvr[0].value = 0x9000;
        r.acvr[1].value = 0xa004;
    }));
    u.start(0x8000).direct(0x9000);
    EXPECT_EQ(u.sent(), hex(""));
    u.direct(0x8000).direct(0xa000).run(4).direct(0x8000).direct(0x8000);
    EXPECT_EQ(u.sent(), hex("00 00 00 00 00 80  08 00 90 00 00 21  90"));
}

TEST(Model, StartAndStopInOneBlock) {  // OQ7
    using Choice = ModelChoices::StartAndStop;
    for (const Choice choice : {Choice::turns, Choice::off, Choice::on}) {
        Unit u(with([=](Registers& r, ModelChoices& c) {
            c.start_and_stop = choice;
            r.tecr1.start_stop = true;
            r.tsscr = {0x2, 0x1};
            r.acvr[0].value = 0x8000;
            r.acvr[1].value = 0x8004;
        }));
        u.start(0x8000).run(4).direct(0x8000);
        EXPECT_EQ(u.model().counts().waypoints, 1U);
        EXPECT_EQ(u.model().status().start_stop, choice != Choice::off);
        u.run(4).direct(0x8000);
        EXPECT_EQ(u.model().counts().waypoints, 2U);
        EXPECT_EQ(u.model().status().start_stop, choice == Choice::on);
    }
}

TEST(Model, EventsCombineTwoResources) {
    for (unsigned function = 0; function < 8; ++function)
        for (const bool a : {false, true})
            for (const bool b : {false, true}) {
                Unit u(with([=](Registers& r, ModelChoices&) {
                    r.extoutevr[1] = from_value<Etmextoutevr>(function << 14 | 0x61U << 7 | 0x60U);
                }));
                u.model().set_external_input(1, a);
                u.model().set_external_input(2, b);
                const bool expected[] = {a, !a, a && b, !a && b, !a && !b, a || b, !a || b, !a || !b};
                EXPECT_EQ(u.model().external_output(2), expected[function]) << function << a << b;
            }
}

/// A model whose external output 1 is true when the given resource is.
ModelConfig watching(unsigned resource, auto&& change) {
    return with([&](Registers& r, ModelChoices&) {
        r.extoutevr[0] = from_value<Etmextoutevr>(resource);
        change(r);
    });
}

TEST(Model, AReloadedCounterIsNotAtZero) {
    // Counter 2 runs while external input 1 is up, and input 2 reloads it while it is stopped.
    Unit u(watching(0x41, [](Registers& r) {
        r.cntvr[1].value = 3;
        r.cntrldvr[1].value = 50;
        r.cntenr[1] = from_value<Etmcntenr>(0x20060);
        r.cntrldevr[1] = from_value<Etmcntrldevr>(0x61);
    }));
    u.start(0x8000);
    u.model().set_external_input(1, true);
    u.cycles(3).direct(0x8000);
    EXPECT_TRUE(u.model().external_output(1));
    u.model().set_external_input(1, false);
    u.cycles(5).direct(0x8000);
    EXPECT_TRUE(u.model().external_output(1));
    u.model().set_external_input(2, true);
    u.cycles(1).direct(0x8000).cycles(1).direct(0x8000);
    EXPECT_FALSE(u.model().external_output(1));
}

TEST(Model, CounterOneIsReducedOnlyWhereTheUnitSaysSo) {
    for (const bool reduced : {false, true})
        for (const bool virtualization : {false, true}) {
            Unit u(watching(0x40, [=](Registers& r) {
                r.ccer.reduced_counter = reduced;
                r.ccer.virtualization = virtualization;
                r.cntvr[0].value = r.cntrldvr[0].value = 9;
                r.cntenr[0] = from_value<Etmcntenr>(0x2006f);
            }));
            u.start(0x8000).cycles(9).direct(0x8000);
            EXPECT_TRUE(u.model().external_output(1));
            u.cycles(1).direct(0x8000);
            EXPECT_EQ(u.model().external_output(1), !reduced);  // a full counter stays at zero
        }
}

TEST(Model, EveryResourceIsSeen) {
    const auto nothing = [](Registers&) {};
    {  // single address comparator 16, range 8
        Unit u(watching(0x0f, [](Registers& r) { r.acvr[15].value = 0x9000; }));
        u.start(0x8000).direct(0x9000);
        EXPECT_FALSE(u.model().external_output(1));
        u.direct(0x8000);
        EXPECT_TRUE(u.model().external_output(1));
        Unit range(watching(0x17, [](Registers& r) {
            r.acvr[14].value = 0x9004;
            r.acvr[15].value = 0x9008;
        }));
        range.start(0x9000).direct(0x9000);
        EXPECT_FALSE(range.model().external_output(1));
        range.run(4).direct(0x9000);
        EXPECT_TRUE(range.model().external_output(1));
    }
    {  // instrumentation 4, EmbeddedICE watchpoint 8, external input 4, extended external input 3
        Unit i(watching(0x1b, nothing)), w(watching(0x27, nothing)), x(watching(0x63, nothing)),
            e(watching(0x6a, [](Registers&r) { r.extinselr.third = 200; }));
        i.model().set_instrumentation(4, true);
        w.model().set_watchpoint(8, true);
        x.model().set_external_input(4, true);
        e.model().set_extended_input(3, true);
        EXPECT_FALSE(e.model().external_output(1));
        e.model().set_extended_input(200, true);
        for (Unit* u : {&i, &w, &x, &e}) EXPECT_TRUE(u->model().external_output(1));
    }
    {  // counter 2: runs while external input 1 is up, from 100; reloaded by input 2
        Unit u(watching(0x41, [](Registers& r) {
            r.cntvr[1].value = 100;
            r.cntrldvr[1].value = 50;
            r.cntenr[1] = from_value<Etmcntenr>(0x20060);
            r.cntrldevr[1] = from_value<Etmcntrldevr>(0x61);
        }));
        u.start(0x8000).cycles(500).direct(0x8000);
        EXPECT_FALSE(u.model().external_output(1));
        u.model().set_external_input(1, true);
        u.cycles(99).direct(0x8000);
        EXPECT_FALSE(u.model().external_output(1));
        u.cycles(1).direct(0x8000);
        EXPECT_TRUE(u.model().external_output(1));
        u.model().set_external_input(2, true);
        u.direct(0x8000).cycles(1).direct(0x8000);
        EXPECT_FALSE(u.model().external_output(1));
    }
    {  // the reduced-function counter starts again by itself
        Unit u(watching(0x40, [](Registers& r) {
            r.ccer.reduced_counter = true;
            r.cntvr[0].value = r.cntrldvr[0].value = 9;
        }));
        u.start(0x8000).cycles(9).direct(0x8000);
        EXPECT_TRUE(u.model().external_output(1));
        u.cycles(1).direct(0x8000);
        EXPECT_FALSE(u.model().external_output(1));
        u.cycles(8).direct(0x8000);
        EXPECT_TRUE(u.model().external_output(1));
    }
    {  // sequencer: 1 to 2 by input 1, 2 to 3 by input 2, 3 to 1 by input 3
        Unit u(watching(0x52, [](Registers& r) {
            r.sqevr[0] = from_value<Etmsqevr>(0x60);
            r.sqevr[2] = from_value<Etmsqevr>(0x61);
            r.sqevr[3] = from_value<Etmsqevr>(0x62);
        }));
        u.start(0x8000);
        u.model().set_external_input(2, true);
        u.direct(0x8000).direct(0x8000);
        EXPECT_FALSE(u.model().external_output(1));
        u.model().set_external_input(1, true);
        u.direct(0x8000).direct(0x8000).direct(0x8000);
        EXPECT_TRUE(u.model().external_output(1));
        u.model().set_external_input(3, true);
        u.direct(0x8000).direct(0x8000);
        EXPECT_FALSE(u.model().external_output(1));
    }
    // Each transition alone, in the order of the registers: ETMSQ12EVR, 21, 23, 31, 32 and 13.
    constexpr std::array<std::pair<unsigned, unsigned>, 6> transitions{
        {{1, 2}, {2, 1}, {2, 3}, {3, 1}, {3, 2}, {1, 3}}};
    for (std::size_t i = 0; i < transitions.size(); ++i)
        for (const unsigned state : {1U, 2U, 3U}) {
            const auto [from, to] = transitions[i];
            Unit u(watching(0x50 + state - 1, [&, first = from](Registers& r) {
                r.sqr.value = first - 1;
                r.sqevr[i] = from_value<Etmsqevr>(0x60);
            }));
            u.start(0x8000).direct(0x8000);
            EXPECT_EQ(u.model().external_output(1), state == from) << i;
            u.model().set_external_input(1, true);
            u.direct(0x8000).direct(0x8000);
            EXPECT_EQ(u.model().external_output(1), state == to) << i;
        }
    {  // Context ID comparator 2 under its mask, VMID comparator, Non-secure, trace prohibited, start/stop
        Unit c(watching(0x59, [](Registers& r) {
            r.cidcvr[1].value = 0x1234;
            r.cidcmr.value = 0xff;
        }));
        c.model().set_context_id(0x12ff);
        Unit v(watching(0x5b, [](Registers& r) { r.vmidcvr.value = 9; }));
        v.model().set_vmid(9);
        Unit n(watching(0x6d, nothing)), p(watching(0x6e, nothing)), s(watching(0x5f, [](Registers&r) {
            r.tsscr.start = 1;
            r.acvr[0].value = 0x8000;
        }));
        for (Unit* u : {&c, &v, &n, &s}) {
            EXPECT_FALSE(u->model().external_output(1));
            u->start(0x8000, true).direct(0x8000);
            EXPECT_TRUE(u->model().external_output(1));
        }
        EXPECT_FALSE(p.model().external_output(1));
        p.model().set_authentication({true, false});
        p.start(0x8000);
        EXPECT_TRUE(p.model().external_output(1));
    }
}

TEST(Model, AComparatorMayAskForMoreThanAnAddress) {
    struct Ask {
        std::uint32_t access;
        bool ns, hyp, user;
        std::uint32_t context_id;
        std::uint8_t vmid;
        bool matches;
    };
    // Non-secure control in bits 13 and 11, Secure in 12 and 10; Context ID comparator in 9:8; VMID 15; Hyp 14.
    for (const Ask& ask : std::initializer_list<Ask>{{0x0001, true, false, false, 0, 0, true},
                                                     {0x0801, true, false, false, 0, 0, false},
                                                     {0x0801, false, false, false, 0, 0, true},
                                                     {0x0401, false, false, false, 0, 0, false},
                                                     {0x2001, true, false, true, 0, 0, false},
                                                     {0x2001, true, false, false, 0, 0, true},
                                                     {0x2801, true, false, true, 0, 0, true},
                                                     {0x2801, true, false, false, 0, 0, false},
                                                     {0x0101, true, false, false, 5, 0, true},
                                                     {0x0101, true, false, false, 6, 0, false},
                                                     {0x8001, true, false, false, 0, 7, true},
                                                     {0x8001, true, false, false, 0, 8, false},
                                                     {0x4001, true, true, false, 0, 0, false},
                                                     {0x4001, true, false, false, 0, 0, true}}) {
        Unit u(watching(0x00, [&](Registers& r) {
            r.acvr[0].value = 0x8000;
            r.actr[0] = from_value<Etmactr>(ask.access);
            r.cidcvr[0].value = 5;
            r.vmidcvr.value = 7;
        }));
        u.model().set_user_mode(ask.user);
        u.model().set_context_id(ask.context_id);
        u.model().set_vmid(ask.vmid);
        u.start(0x8000, ask.ns, ask.hyp).direct(0x8000);
        EXPECT_EQ(u.model().external_output(1), ask.matches) << std::hex << ask.access;
    }
}

// ---- invariants and registers

TEST(Model, ZerosNeverImitateAnASync) {  // 5.7, 2: I-sync, count 0, Context ID 0, atom 0x80
    Unit u(with([](Registers& r, ModelChoices&) {
        r.cr.cycle_accurate = true;
        r.cr.context_id_size = 3;
        r.cr.timestamps = r.cr.vmid_trace = true;
    }));
    u.start(0).direct(0).model().request_sync();
    u.direct(0).elsewhere(0).direct(0).elsewhere(0).direct(0).exception(8, 0).direct(0);
    const std::vector<std::uint8_t> bytes = u.sent();
    Config config;
    config.cycle_accurate = true;
    config.context_id_bytes = 4;
    config.timestamp_bytes = 9;
    const test::Collected packets = test::collect(bytes, config);
    const auto asyncs = std::count_if(packets.items.begin(), packets.items.end(),
                                      [](const auto& item) { return item.text.starts_with("A-SYNC"); });
    EXPECT_EQ(asyncs, 2);
    const std::vector<std::uint8_t> pattern = hex("00 00 00 00 00 80");
    unsigned found = 0;
    for (auto at = bytes.begin(); (at = std::search(at, bytes.end(), pattern.begin(), pattern.end())) != bytes.end();
         ++at)
        ++found;
    EXPECT_EQ(found, 2U);
    EXPECT_LT(longest_zeros(packets, bytes), 47U);
}

TEST(Model, WhatTheArchitectureLacksIsNotSent) {  // 2.8, 3: no VMID in v1.0; without Security Extensions always Secure
    Unit u(with([](Registers& r, ModelChoices&) {
        r.idr = from_value<Etmidr>(0x4114f301);
        r.cr.vmid_trace = true;
    }));
    u.start(0x8000, true, true).direct(0x8000);
    EXPECT_EQ(u.sent(), hex("00 00 00 00 00 80  08 00 80 00 00 21  84"));
}

// ETMTECR2, register 0x07, belongs to an ETMv3.
TEST(Registers, EveryOneOfSection3IsDescribed) {
    std::vector<unsigned> numbers = {0x00, 0x01, 0x02, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0b, 0x67,
                                     0x6f, 0x78, 0x79, 0x7a, 0x7b, 0x7c, 0x7d, 0x7e, 0x7f, 0x80, 0x90};
    const auto range = [&](unsigned first, unsigned last) {
        for (unsigned n = first; n <= last; ++n) numbers.push_back(n);
    };
    range(0x10, 0x2f);
    range(0x50, 0x5f);
    range(0x60, 0x65);
    range(0x68, 0x6e);
    std::sort(numbers.begin(), numbers.end());
    wire::Random random(1);
    for (unsigned number = 0; number < 0x100; ++number) {
        Registers r;
        const bool described = std::binary_search(numbers.begin(), numbers.end(), number);
        EXPECT_EQ(r.get(number).has_value(), described) << number;
        for (unsigned i = 0; i < 50; ++i) {
            const auto value = static_cast<std::uint32_t>(wire::random_number(random, 32));
            ASSERT_EQ(r.set(number, value), described) << number;
            if (!described) continue;
            ASSERT_EQ(r.get(number), value) << number;
        }
    }
    std::set<std::string_view> names;
    Registers r;
    Registers::for_each(r, [&](auto& one) { names.insert(one.name); });
    EXPECT_EQ(names.size(), 31U);
}

TEST(Registers, FieldsStandWhereSection3PutsThem) {
    EXPECT_EQ(from_value<Etmtecr1>(0x01000000), (Etmtecr1{0, 0, 0, false, true}));
    EXPECT_TRUE(from_value<Etmtecr1>(0x02000000).start_stop);
    EXPECT_EQ(from_value<Etmtecr1>(0x81).ranges, 0x81);
    const auto always = from_value<Etmteevr>(0x006f);
    EXPECT_EQ(static_cast<const EventFields&>(always), (EventFields{0, 0, 0, 6, 15}));
    EXPECT_EQ(from_value<Etmteevr>(0x406f).function, 1);
    // 0x8D294004 on a Cortex-A15: four pairs, two counters, sequencer, four inputs, two outputs, one comparator.
    const auto a15 = from_value<Etmccr>(0x8d294004);
    EXPECT_EQ(a15.address_comparator_pairs, 4);
    EXPECT_EQ(a15.counters, 2);
    EXPECT_TRUE(a15.sequencer);
    EXPECT_EQ(a15.external_inputs, 4);
    EXPECT_EQ(a15.external_outputs, 2);
    EXPECT_EQ(a15.context_id_comparators, 1);
    EXPECT_TRUE(a15.start_stop);
    EXPECT_TRUE(from_value<Etmauxcr>(1).no_forced_overflow);
    EXPECT_TRUE(from_value<Etmauxcr>(2).no_barrier_timestamps);
    EXPECT_TRUE(from_value<Etmauxcr>(4).no_exception_timestamps);
    EXPECT_TRUE(from_value<Etmsr>(1).overflow);
    EXPECT_TRUE(from_value<Etmsr>(8).triggered);
    EXPECT_EQ(from_value<Etmsyncfr>(0xfff).value, 0xfffU);
    EXPECT_EQ(from_value<Etmtsscr>(0x00020001), (Etmtsscr{2, 1}));
}

}  // namespace
}  // namespace waymark::pft
