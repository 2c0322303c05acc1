// Explains what prevents tracing: explain() against the model that has the same registers.

#include "waymark/etm4/explain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "etm4/support.h"
#include "support/sanitized.h"
#include "waymark/core/byte_sink.h"
#include "waymark/etm4/access.h"
#include "waymark/etm4/model.h"

namespace waymark::etm4 {
namespace {

using isa::Isa;
using protocol::UnitExplanation, protocol::TraceEffect;

/// Draws of one seed.
class Draw {
public:
    explicit Draw(std::uint64_t seed) : random_(seed) {}
    unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }
    bool one_in(unsigned n) { return below(n) == 0; }
    template <class T>
    T of(std::initializer_list<T> values) {
        return values.begin()[below(static_cast<unsigned>(values.size()))];
    }

private:
    std::mt19937_64 random_;
};

struct LevelAt {
    std::string name;
    flow::Context context;
};
std::vector<LevelAt> places(bool ete) {
    const auto at = [](bool ns, bool nse, std::uint8_t el) {
        flow::Context c;
        c.ns = ns, c.nse = nse, c.aarch64 = true, c.el = el;
        return c;
    };
    std::vector<LevelAt> out{{"EL0, Non-secure", at(true, false, 0)}, {"EL1, Non-secure", at(true, false, 1)},
                             {"EL2, Non-secure", at(true, false, 2)}, {"EL0, Secure", at(false, false, 0)},
                             {"EL1, Secure", at(false, false, 1)},    {"EL3", at(false, false, 3)}};
    if (ete) {
        out.push_back({"EL0, Realm", at(true, true, 0)});
        out.push_back({"EL1, Realm", at(true, true, 1)});
    }
    return out;
}

/// Registers that trace everything, with a few random changes.
Registers programmed(Draw& draw, bool ete) {
    Config c = ete ? test::ete(3) : test::etmv4();
    c.context_id_trace = c.vmid_trace = c.cycle_counting = c.timestamps = c.q_elements = false;
    Registers r = tracing_registers(c);
    r.prgctlr.enable = true;
    r.pdsr.power = true;
    r.traceidr.trace_id = 0x10;
    r.idr3.exlevel_s = 0b1011, r.idr3.exlevel_ns = 0b0111;
    r.idr6.exlevel_rl = ete ? 3 : 0;
    if (draw.one_in(6)) r.idr4.numacpairs = draw.of<std::uint8_t>({0, 1, 2});
    if (draw.one_in(8)) r.idr4.numrspair = draw.of<std::uint8_t>({0, 1});
    const std::uint64_t low = 0x8000 + 0x40 * draw.below(16);
    for (unsigned n = 0; n < 8; ++n) {
        r.acvr[n].address = low + 4 * draw.below(64);
        if (draw.one_in(3)) r.acatr[n].exlevel_ns = static_cast<std::uint8_t>(draw.below(8));
        if (draw.one_in(4)) r.acatr[n].exlevel_s = static_cast<std::uint8_t>(draw.below(16));
        if (draw.one_in(6)) r.acatr[n].contexttype = static_cast<std::uint8_t>(draw.below(4));
        if (draw.one_in(12)) r.acatr[n].type = 1;
    }
    for (unsigned n = 0; n < 8; n += 2) {
        if (r.acvr[n].address > r.acvr[n + 1].address) std::swap(r.acvr[n].address, r.acvr[n + 1].address);
        if (draw.one_in(5)) r.acvr[n].address = 0, r.acvr[n + 1].address = ~std::uint64_t{0};
        r.acatr[n + 1] = r.acatr[n];
    }
    for (auto& id : r.cidcvr) id.value = draw.below(3);
    if (draw.one_in(3)) r.cidcctlr[0].comp0 = 0xf;
    for (unsigned n = 0; n < 6; ++n) {
        r.rsctlr[n].group = static_cast<std::uint8_t>(draw.below(8));
        r.rsctlr[n].select = static_cast<std::uint16_t>(draw.one_in(4) ? 0 : 1U << draw.below(9));
        r.rsctlr[n].inv = draw.one_in(3);
        if (n % 2 == 0) r.rsctlr[n].pairinv = draw.one_in(3);
    }
    if (draw.one_in(3)) {
        r.victlr.type = draw.one_in(3);
        r.victlr.sel = static_cast<std::uint8_t>(r.victlr.type ? 1 + draw.below(3) : draw.below(8));
    }
    if (draw.one_in(3)) r.victlr.exlevel_ns = static_cast<std::uint8_t>(draw.below(8));
    if (draw.one_in(3)) r.victlr.exlevel_s = static_cast<std::uint8_t>(draw.below(16) & 0xb);
    if (ete && draw.one_in(3)) r.victlr.exlevel_rl = static_cast<std::uint8_t>(draw.below(4));
    if (draw.one_in(4)) r.viiectlr.include = static_cast<std::uint8_t>(draw.below(16));
    if (draw.one_in(5)) r.viiectlr.exclude = static_cast<std::uint8_t>(draw.below(16));
    if (draw.one_in(3)) r.victlr.ssstatus = draw.one_in(2);
    if (draw.one_in(4)) r.vissctlr.start = static_cast<std::uint16_t>(1U << draw.below(8));
    if (draw.one_in(4)) r.vissctlr.stop = static_cast<std::uint16_t>(1U << draw.below(8) & ~r.vissctlr.start);
    for (auto& counter : r.cntvr) counter.value = static_cast<std::uint16_t>(draw.below(3));
    return r;
}

/// The model's counts for `blocks` blocks that run at one place, with inputs and identifiers that change.
ModelCounts traced(const Registers& r, const flow::Context& at, Draw& draw, unsigned blocks) {
    ByteCollector trace;
    Model model({.registers = r}, trace);
    flow::Context context = at;
    context.context_id = 0, context.vmid = 0;
    model.set_context(context);
    std::uint64_t cycle = 1, here = 0x8000;
    model.start({{{here}, Isa::a64}, cycle});
    for (unsigned n = 0; n < blocks; ++n) {
        const unsigned before = draw.below(4);
        model.run(4 * before, cycle);
        here += 4 * before;
        isa::Instruction i;
        i.bytes = 4;
        i.waypoint = isa::Waypoint::direct;
        i.target = {0x8000 + 4 * draw.below(512)};
        context.context_id = draw.below(3);
        model.set_context(context);
        cycle += draw.below(3);
        for (unsigned input = 0; input < r.idr5.numextinsel && input < 4; ++input)
            model.set_external_input(input, draw.one_in(2));
        model.retire_block({.address = {here},
                            .isa = Isa::a64,
                            .instruction = i,
                            .passed = true,
                            .next = {i.target, Isa::a64},
                            .cycle = cycle});
        here = i.target.value;
    }
    model.finish();
    return model.counts();
}

std::string words(const UnitExplanation& e, const protocol::TracedLevel& level) {
    std::string out;
    for (const auto* const findings : {&e.findings, &level.obstacles})
        for (const auto& f : *findings) out += "\n" + f.text;
    return out;
}
bool has(const std::vector<protocol::TraceCondition>& findings, TraceEffect effect) {
    return std::any_of(findings.begin(), findings.end(), [&](const auto& f) { return f.effect == effect; });
}

/// The explanation that explain() gives for three quarters of the registers; the unit itself has the others.
UnitExplanation explain_fewer(const Registers& r, Draw& draw) {
    Registers known;
    std::set<std::string, std::less<>> given;
    for (const RegisterPlace& place : register_places()) {
        if (draw.one_in(4)) continue;
        given.insert(place.name);
        for (unsigned offset = place.offset; offset < place.offset + place.bytes; offset += 4)
            known.set(offset, r.get(offset).value_or(0));
    }
    return explain(known, CoreProfile::a, [&](std::string_view name) { return given.contains(name); });
}

enum class Says { nothing, everything, part };
Says says(const UnitExplanation& e, const protocol::TracedLevel& level) {
    if (e.stopped() || has(level.obstacles, TraceEffect::stops)) return Says::nothing;
    const bool all = !has(e.findings, TraceEffect::may) && level.obstacles.empty() && e.undecided.empty();
    return all ? Says::everything : Says::part;
}

// If explain() says "nothing", the model traces nothing; if it says "everything", it traces every block. The same holds
// if explain() gets a part of the registers. All three answers occur often.
TEST(Etm4Explain, AgreesWithTheModel) {
    unsigned none = 0, all = 0, part_seen = 0, none_of_fewer = 0;
    for (std::uint64_t seed = 0; seed < sized(600U, 150U); ++seed) {
        Draw draw(seed);
        const bool ete = seed % 2 == 1;
        const Registers r = programmed(draw, ete);
        const UnitExplanation whole = explain(r, CoreProfile::a, [](std::string_view) { return true; });
        const UnitExplanation fewer = explain_fewer(r, draw);
        for (const LevelAt& place : places(ete)) {
            constexpr unsigned blocks = 24;
            const ModelCounts counts = traced(r, place.context, draw, blocks);
            for (const UnitExplanation* const e : {&whole, &fewer}) {
                const auto level = std::find_if(e->levels.begin(), e->levels.end(),
                                                [&](const protocol::TracedLevel& l) { return l.name == place.name; });
                if (e == &whole) {
                    ASSERT_NE(level, e->levels.end()) << place.name;
                }
                if (level == e->levels.end()) continue;
                const Says what = says(*e, *level);
                if (what == Says::nothing) {
                    ++(e == &whole ? none : none_of_fewer);
                    ASSERT_EQ(counts.p0, 0U) << "seed " << seed << ", " << place.name << words(*e, *level);
                } else if (what == Says::everything) {
                    ++all;
                    ASSERT_EQ(counts.p0, blocks) << "seed " << seed << ", " << place.name << words(*e, *level);
                } else if (e == &whole && counts.p0 != 0 && counts.p0 != blocks) {
                    ++part_seen;
                }
            }
        }
    }
    EXPECT_GT(none, sized(500U, 125U));
    EXPECT_GT(none_of_fewer, sized(200U, 50U));
    EXPECT_GT(all, sized(200U, 50U));
    EXPECT_GT(part_seen, sized(200U, 50U));
}

UnitExplanation of(const Registers& r, CoreProfile profile = CoreProfile::a) {
    return explain(r, profile, [](std::string_view) { return true; });
}
Registers plain() {
    const Config c = test::etmv4();
    Registers r = tracing_registers(c);
    r.prgctlr.enable = true;
    r.traceidr.trace_id = 0x10;
    r.pdsr.power = true;
    r.authstatus = from_value<Trcauthstatus>(0xcc);
    r.idr3.exlevel_s = 0b1011, r.idr3.exlevel_ns = 0b0111;
    r.syncpr.period = 12;
    if (c.cycle_counting) r.ccctlr.threshold = 256;
    return r;
}
std::vector<std::string> fields(const UnitExplanation& e, TraceEffect effect) {
    std::vector<std::string> out;
    for (const auto& f : e.findings)
        if (f.effect == effect) out.push_back(f.field);
    return out;
}

// 1.6, 2.1: each bit that stops the unit is named, and no other bit.
TEST(Etm4Explain, NamesTheBitThatStopsTheUnit) {
    using Fields = std::vector<std::string>;
    ASSERT_EQ(fields(of(plain()), TraceEffect::stops), Fields{});
    ASSERT_TRUE(of(plain()).traces());
    const auto only = [&](auto change) {
        Registers r = plain();
        change(r);
        const UnitExplanation e = of(r);
        EXPECT_FALSE(e.traces());
        return fields(e, TraceEffect::stops);
    };
    EXPECT_EQ(only([](Registers& r) { r.prgctlr.enable = false; }), Fields{"TRCPRGCTLR.EN"});
    EXPECT_EQ(only([](Registers& r) { r.oslsr.oslk = true; }), Fields{"TRCOSLSR.OSLK"});
    EXPECT_EQ(only([](Registers& r) { r.pdsr.power = false; }), Fields{"TRCPDSR.POWER"});
    EXPECT_EQ(only([](Registers& r) { r.victlr.ssstatus = false; }), Fields{"TRCVICTLR.SSSTATUS"});
    EXPECT_EQ(only([](Registers& r) { r.victlr.sel = 0; }), Fields{"TRCVICTLR.EVENT"});
    EXPECT_EQ(only([](Registers& r) { r.viiectlr.exclude = 1, r.acvr[1].address = ~std::uint64_t{0}; }),
              Fields{"TRCVIIECTLR.EXCLUDE"});
}

// 1.6: authentication, level by level. 1.3: the exception level bits, level by level too.
TEST(Etm4Explain, TellsLevelsApart) {
    Registers r = plain();
    r.authstatus = from_value<Trcauthstatus>(0x8c);
    r.victlr.exlevel_ns = 0b010;
    const UnitExplanation e = of(r);
    std::vector<std::string> untraced;
    for (const auto& level : e.levels)
        if (!level.obstacles.empty()) untraced.push_back(level.name + ": " + level.obstacles[0].field);
    EXPECT_EQ(untraced,
              (std::vector<std::string>{"EL1, Non-secure: TRCVICTLR.EXLEVEL_NS[1]", "EL0, Secure: TRCAUTHSTATUS.SNID",
                                        "EL1, Secure: TRCAUTHSTATUS.SNID", "EL3: TRCAUTHSTATUS.SNID"}));
    EXPECT_TRUE(e.traces());
}

// 1.3: on profile M the bits are modes.
TEST(Etm4Explain, ProfileMHasModes) {
    Registers r = plain();
    r.victlr.exlevel_s = 0b1000;
    const UnitExplanation e = of(r, CoreProfile::m);
    ASSERT_EQ(e.levels.size(), 2U);
    EXPECT_EQ(e.levels[0].name, "Thread mode");
    EXPECT_TRUE(e.levels[0].obstacles.empty());
    EXPECT_EQ(e.levels[1].obstacles.at(0).field, "TRCVICTLR.EXLEVEL_S[3]");
}

// 2.5: a unit without selectors ignores TRCVICTLR.EVENT. TRCIDR4 says whether it has some.
TEST(Etm4Explain, NamesTheCaseInWhichItTracesAllTheSame) {
    Registers r = plain();
    r.victlr.sel = 0;
    const auto found = [&](bool all) {
        const UnitExplanation e =
            explain(r, CoreProfile::a, [&](std::string_view name) { return all || name == "TRCVICTLR"; });
        for (const protocol::TraceCondition& f : e.findings)
            if (f.field == "TRCVICTLR.EVENT") return f;
        return protocol::TraceCondition{};
    };
    const std::string text =
                          "TRCVICTLR.EVENT is selector 0, which is never true, and never happens: ViewInst is never "
                          "active",
                      lacks = "the unit has no resource selectors (TRCIDR4, not given)";
    EXPECT_EQ(found(false).effect, TraceEffect::may);
    EXPECT_EQ(found(false).unless, lacks);
    EXPECT_EQ(found(false).text, text + "; then nothing is traced, unless " + lacks);
    EXPECT_EQ(found(true).effect, TraceEffect::stops);
    EXPECT_EQ(found(true).unless, "");
    EXPECT_EQ(found(true).text.find("unless"), std::string::npos) << found(true).text;
}

// Missing registers are not judged, but listed.
TEST(Etm4Explain, JudgesOnlyWhatIsGiven) {
    Registers r;
    r.configr.cci = true;
    const UnitExplanation e = explain(r, CoreProfile::a, [](std::string_view name) { return name == "TRCCONFIGR"; });
    EXPECT_TRUE(e.findings.empty());
    EXPECT_TRUE(e.traces());
    EXPECT_EQ(e.undecided, (std::vector<std::string>{"TRCPRGCTLR", "TRCVICTLR"}));
    EXPECT_EQ(e.undescribed, (std::vector<std::string>{"TRCCCCTLR"}));
}

// 1.2: features that the unit lacks are not in the trace, even if TRCCONFIGR enables them.
TEST(Etm4Explain, ContentsTakeTheUnitForWhatItHas) {
    Registers r = plain();
    r.configr.rs = true;
    r.idr0.retstack = false;
    const UnitExplanation e = of(r);
    const auto stack =
        std::find_if(e.contents.begin(), e.contents.end(), [](const auto& c) { return c.what == "return stack"; });
    ASSERT_NE(stack, e.contents.end());
    EXPECT_FALSE(stack->traced);
    EXPECT_EQ(stack->text, "enabled, but the unit cannot do it (TRCIDR0.RETSTACK is 0)");
}

}  // namespace
}  // namespace waymark::etm4
