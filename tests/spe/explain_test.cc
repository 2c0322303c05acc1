/// What `explain` finds, and that what it advises helps.
#include "waymark/spe/explain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "spe/state.h"

namespace waymark::spe::test {
namespace {

Explanation of(const State& s) { return explain(s, {}); }

/// The weights of the findings about a field, as first fact.
std::string weights(const State& s, std::string_view field) {
    std::string out;
    for (const Finding& f : of(s).findings)
        if (!f.facts.empty() && f.facts[0].name == field)
            out += f.weight == Weight::stops ? 's' : f.weight == Weight::may ? 'm' : 'n';
    return out;
}

/// With an interval and room in the buffer: nothing but what a test changes is to be found.
State sound(std::string_view changes) {
    State s = state_of(changes);
    s.regs.pmsirr_el1.interval = 0x100;
    s.regs.pmsidr_el1 = from_value<PmsidrEl1>(0x2'6807);
    s.regs.pmblimitr_el1.limit = 0x10;
    return s;
}

TEST(Explain, levels) {
    const auto els = [](std::string_view changes) {
        std::string out;
        for (const Level& level : of(sound(changes)).levels)
            out += static_cast<char>('0' + level.el), out += level.sampled ? '+' : '-';
        return out;
    };
    EXPECT_EQ(els("E2PB=11"), "0+1+2-");
    EXPECT_EQ(els("E2PB=00"), "0+1+2+");
    EXPECT_EQ(els("E2PB=00, TGE=1"), "0+2+");
    EXPECT_EQ(els("el2=0"), "0+1+");
    EXPECT_EQ(els("NS=0, NSPB=01"), "0+1+");
    EXPECT_EQ(els("a32=1"), "0-1-2-");
    State s = sound("EL=3");
    const Explanation e = explain(s, {.current_level_only = true});
    ASSERT_EQ(e.levels.size(), 1U);
    EXPECT_EQ(e.levels[0].el, EL3);
    EXPECT_FALSE(e.samples());
    EXPECT_TRUE(of(sound("E2PB=11")).samples());
    EXPECT_TRUE(of(sound("E2PB=11")).findings.empty());
}

TEST(Explain, every_obstacle_in_turn) {
    const Explanation e = of(sound("NSPB=00, E=0, S=1, E1SPE=0, E2PB=11"));
    std::vector<std::string> fields;
    for (const Why& why : e.levels[1].obstacles) fields.emplace_back(why.facts[0].name);
    EXPECT_EQ(fields, (std::vector<std::string>{"MDCR_EL3.NSPB", "PMBLIMITR_EL1.E", "PMBSR_EL1.S", "PMSCR_EL1.E1SPE"}));
}

TEST(Explain, the_remedies_together_give_samples) {
    wire::Random random(11);
    unsigned cured = 0;
    for (unsigned i = 0; i < 20'000; ++i) {
        State s;
        wire::Generator generator(random);
        Registers::for_each(s.regs, [&](auto& r) { std::remove_cvref_t<decltype(r)>::fields(generator, r); });
        s.arch = Architecture::of(static_cast<Version>(1 + random() % 6));
        s.arch.el2 = random() % 4 != 0;
        s.arch.secure_el2 = random() % 2 == 0;
        for (const Level& level : of(s).levels) {
            EXPECT_EQ(level.sampled.value, level.obstacles.empty());
            State after = s;
            after.regs.pstate.el = level.el;
            bool all = true;
            for (const Why& why : level.obstacles)
                all &= why.remedy && after.regs.set_field(why.facts[0].name, *why.remedy);
            EXPECT_TRUE(!all || StatisticalProfilingEnabled(after)) << "round " << i << ", EL" << unsigned{level.el};
            cured += all && !level.obstacles.empty();
        }
        if (HasFailure()) return;
    }
    EXPECT_GT(cured, 1000U);
}

TEST(Explain, filters) {
    EXPECT_EQ(weights(sound("FE=1"), "PMSFCR_EL1.FE"), "m");
    EXPECT_EQ(weights(sound("EVFR=2"), "PMSFCR_EL1.FE"), "n");
    EXPECT_EQ(weights(sound("FE=1, EVFR=3"), "PMSEVFR_EL1.E"), "n");
    EXPECT_EQ(weights(sound("FE=1, EVFR=2"), "PMSEVFR_EL1.E"), "");
    EXPECT_EQ(weights(sound("FT=1"), "PMSFCR_EL1.FT"), "s");
    EXPECT_EQ(weights(sound("LD=1"), "PMSFCR_EL1.FT"), "n");
    EXPECT_EQ(weights(sound("FL=1"), "PMSFCR_EL1.FL"), "m");
    EXPECT_EQ(weights(sound("FL=1, MINLAT=0x1000"), "PMSLATFR_EL1.MINLAT"), "s");
    EXPECT_EQ(weights(sound("FL=1, MINLAT=0xfff"), "PMSLATFR_EL1.MINLAT"), "");
    State later = sound("FE=1, EVFR=8, FnE=1, NEVFR=8, FT=1, FDS=1");
    later.arch = Architecture::of(Version::v1_4);
    EXPECT_EQ(weights(later, "PMSNEVFR_EL1.E"), "m");
    EXPECT_EQ(weights(later, "PMSFCR_EL1.FT"), "m");
    EXPECT_EQ(weights(later, "PMSDSFR_EL1.S"), "m");
    EXPECT_TRUE(of(later).samples());
    EXPECT_FALSE(of(sound("FT=1")).samples());
}

TEST(Explain, interval_and_buffer) {
    State s = sound("(default)");
    s.regs.pmsirr_el1.interval = 0;
    EXPECT_EQ(weights(s, "PMSIRR_EL1.INTERVAL"), "m");
    s.regs.pmsirr_el1.interval = 15;
    EXPECT_EQ(weights(s, "PMSIRR_EL1.INTERVAL"), "n");  // 3840 of 4096
    s.regs.pmsirr_el1.interval = 16;
    EXPECT_EQ(weights(s, "PMSIRR_EL1.INTERVAL"), "");
    s.regs.pmbptr_el1.ptr = 0xffc0;
    EXPECT_EQ(weights(s, "PMBPTR_EL1.PTR"), "");
    s.regs.pmbptr_el1.ptr = 0xffc1;
    EXPECT_EQ(weights(s, "PMBPTR_EL1.PTR"), "s");
    s.regs.pmbptr_el1.ptr = 0x21;
    s.regs.pmbidr_el1.align = 5;
    EXPECT_EQ(weights(s, "PMBPTR_EL1.PTR"), "m");
    s.regs.pmblimitr_el1.fm = 0b10;
    EXPECT_EQ(weights(s, "PMBLIMITR_EL1.FM"), "m");
    s.arch = Architecture::of(Version::v1_2);
    EXPECT_EQ(weights(s, "PMBLIMITR_EL1.FM"), "s");
}

TEST(Explain, bits_without_meaning) {
    State s = sound("(default)");
    s.regs.pmscr_el1 = from_value<PmscrEl1>(0x1100);  // bit 12 is RES0, EE came with v1.5
    EXPECT_EQ(without_meaning(s, "PMSCR_EL1").size(), 2U);
    s.arch = Architecture::of(Version::v1_5);
    ASSERT_EQ(without_meaning(s, "PMSCR_EL1").size(), 1U);
    EXPECT_TRUE(without_meaning(s, "PMSCR_EL1")[0].reserved());
}

}  // namespace
}  // namespace waymark::spe::test
