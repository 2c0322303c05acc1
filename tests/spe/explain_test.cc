/// The findings of `explain`, and the effect of its advice.
#include "waymark/spe/explain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "spe/state.h"
#include "support/sanitized.h"

namespace waymark::spe::test {
namespace {

Explanation of(const State& s) { return explain(s, {}); }

/// The weights of the findings about a field, as first fact.
std::string weights(const State& s, std::string_view field) {
    std::string out;
    for (const RegisterFinding& f : of(s).findings)
        if (!f.facts.empty() && f.facts[0].name == field)
            out += f.weight == Weight::stops ? 's' : f.weight == Weight::may ? 'm' : 'n';
    return out;
}

/// The field that is the first obstacle at the level of the state; empty if there is none.
std::string first_obstacle(const State& s) {
    const Explanation e = explain(s, {.current_level_only = true});
    return e.levels[0].samples() ? std::string() : std::string(e.levels[0].obstacles[0].facts[0].name);
}

/// An interval is set and the buffer has room: findings come only from changes of the test.
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
    for (const RegisterFinding& f : e.levels[1].obstacles) fields.emplace_back(f.facts[0].name);
    EXPECT_EQ(fields, (std::vector<std::string>{"MDCR_EL3.NSPB", "PMBLIMITR_EL1.E", "PMBSR_EL1.S", "PMSCR_EL1.E1SPE"}));
}

TEST(Explain, what_stops_samples_is_an_obstacle_at_every_level) {
    State s = sound("E2PB=11, FT=1, E1SPE=0");
    s.arch.version = Version::v1_2;
    s.regs.pmblimitr_el1.fm = 0b10;
    s.regs.pmbptr_el1.ptr = 0x10000;
    const Explanation e = of(s);
    EXPECT_FALSE(e.samples());
    const auto names = [](const Level& level) {
        std::string out;
        for (const RegisterFinding& f : level.obstacles) out += std::string(f.facts[0].name) + " ";
        return out;
    };
    EXPECT_TRUE(e.levels[0].sampled);
    EXPECT_FALSE(e.levels[0].samples());
    // The pointer counts only once discard mode is off.
    EXPECT_EQ(names(e.levels[0]), "PMSFCR_EL1.FT PMBLIMITR_EL1.FM PMBPTR_EL1.PTR ");
    EXPECT_EQ(names(e.levels[1]), "PMSCR_EL1.E1SPE PMSFCR_EL1.FT PMBLIMITR_EL1.FM PMBPTR_EL1.PTR ");
}

TEST(Explain, a_level_that_is_never_entered) {
    EXPECT_EQ(first_obstacle(sound("TGE=1, EL=1, E1SPE=0")), "HCR_EL2.TGE");
    const Explanation never = explain(sound("TGE=1, EL=1"), {.current_level_only = true});
    ASSERT_FALSE(never.levels[0].obstacles.empty());
    EXPECT_EQ(never.levels[0].obstacles[0].weight, Weight::stops);
    EXPECT_EQ(first_obstacle(sound("TGE=1, EL=0")), "");
    EXPECT_EQ(first_obstacle(sound("TGE=1, EL=1, el2=0")), "");
    EXPECT_EQ(first_obstacle(sound("TGE=1, EL=1, NS=0, NSPB=01")), "");
}

TEST(Explain, realm) {
    State s = sound("E2PB=11, EL=1");
    s.arch.rme = true;
    s.regs.scr_el3.nse = true;
    s.arch.revision = Revision::modern;
    const auto obstacles = of(s).levels[1].obstacles;
    ASSERT_EQ(obstacles.size(), 1U);
    EXPECT_EQ(obstacles[0].facts[0].name, "MDCR_EL3.NSPBE");
    EXPECT_EQ(obstacles[0].remedy, 1U);
    s.regs.mdcr_el3.nspbe = true;
    EXPECT_EQ(first_obstacle(s), "");
    // The first revision knows no Realm, and no field helps.
    s.arch.revision = Revision::first;
    const auto without = of(s).levels[1].obstacles;
    ASSERT_EQ(without.size(), 1U);
    EXPECT_FALSE(without[0].remedy);
}

/// A state with any combination of fields.
State random_state(wire::Random& random) {
    State s;
    wire::Generator generator(random);
    Registers::for_each(s.regs, [&](auto& r) { std::remove_cvref_t<decltype(r)>::fields(generator, r); });
    s.arch = Architecture::of(static_cast<Version>(1 + random() % 6));
    if (random() % 4 == 0) s.arch.revision = Revision::first;
    s.arch.el2 = random() % 4 != 0;
    s.arch.el3 = random() % 4 != 0;
    s.arch.secure_el2 = random() % 2 == 0;
    s.arch.rme = random() % 4 == 0;
    s.arch.secure = random() % 4 != 0;
    s.arch.secure_only = random() % 4 == 0;
    s.arch.eft = random() % 2 == 0;
    return s;
}

TEST(Explain, the_remedies_together_give_samples) {
    wire::Random random(11);
    unsigned cured = 0, of_findings = 0;
    constexpr unsigned tries = sized(2000U, 200U);
    for (unsigned i = 0; i < tries; ++i) {
        const State s = random_state(random);
        const Explanation e = of(s);
        for (const Level& level : e.levels) {
            EXPECT_TRUE(level.sampled || !level.samples());
            EXPECT_EQ(level.samples(),
                      level.sampled && std::none_of(e.findings.begin(), e.findings.end(),
                                                    [](const auto& f) { return f.weight == Weight::stops; }));
            State after = s;
            after.regs.pstate.el = level.el;
            bool all = true, finding = false;
            for (const RegisterFinding& f : level.obstacles) {
                all &= f.remedy && after.regs.set_field(f.facts[0].name, *f.remedy);
                finding |= f.facts[0].name.starts_with("PMBPTR") || f.facts[0].name.starts_with("PMSLATFR");
            }
            EXPECT_TRUE(!all || StatisticalProfilingEnabled(after)) << "round " << i << ", EL" << unsigned{level.el};
            EXPECT_TRUE(!all || explain(after, {.current_level_only = true}).samples())
                << "round " << i << ", EL" << unsigned{level.el};
            cured += all && !level.obstacles.empty();
            of_findings += all && finding;
        }
        if (HasFailure()) return;
    }
    EXPECT_GT(cured, tries / 10);
    EXPECT_GT(of_findings, tries / 70);
}

TEST(Explain, no_remedy_is_the_value_that_is_there) {
    wire::Random random(12);
    unsigned remedies = 0;
    const auto check = [&](const State& s, std::string_view text, std::string_view name,
                           const std::optional<std::uint64_t>& remedy) {
        if (!remedy) return;
        const auto field = s.regs.field(name);
        ASSERT_TRUE(field) << name << ": " << text;
        EXPECT_NE(field->value, *remedy) << name << ": " << text;
        State after = s;
        EXPECT_TRUE(after.regs.set_field(name, *remedy)) << name << ": " << text;
        ++remedies;
    };
    for (unsigned i = 0; i < sized(1000U, 250U) && !HasFailure(); ++i) {
        const State s = random_state(random);
        const Explanation e = of(s);
        for (const RegisterFinding& f : e.findings)
            if (!f.facts.empty()) check(s, f.text, f.facts[0].name, f.remedy);
        const auto of_why = [&](const State& state, const Why& why) {
            check(state, why.text, why.facts[0].name, why.remedy);
        };
        of_why(s, e.buffer.why);
        for (const Level& level : e.levels) {
            State there = s;
            there.regs.pstate.el = level.el;
            for (const Why& why :
                 {level.sampled.why, level.buffer_access.why, level.profiling_access.why, level.context_idr1.why,
                  level.context_idr2.why, level.physical_address.why, level.time_stamp.why})
                of_why(there, why);
            for (const RegisterFinding& f : level.obstacles) {
                check(there, f.text, f.facts[0].name, f.remedy);
                if (f.remedy) there.regs.set_field(f.facts[0].name, *f.remedy);
            }
        }
    }
    EXPECT_GT(remedies, sized(5'000U, 1'250U));
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
    EXPECT_EQ(weights(sound("FL=1, MINLAT=0xfff"), "PMSLATFR_EL1.MINLAT"), "n");
    EXPECT_EQ(weights(sound("FL=1, MINLAT=0x3ff"), "PMSLATFR_EL1.MINLAT"), "");
    State wide = sound("FL=1, MINLAT=0xffff");
    wide.regs.pmsidr_el1.count_size = 3;
    EXPECT_EQ(weights(wide, "PMSLATFR_EL1.MINLAT"), "n");
    wide.regs.pmsidr_el1.count_size = 0;  // reserved
    EXPECT_EQ(weights(wide, "PMSLATFR_EL1.MINLAT"), "m");
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

TEST(Explain, remedies_for_interval_and_buffer) {
    const auto remedy = [](const State& s, std::string_view field) -> std::optional<std::uint64_t> {
        for (const RegisterFinding& f : of(s).findings)
            if (!f.facts.empty() && f.facts[0].name == field) return f.remedy;
        return std::nullopt;
    };
    State s = sound("(default)");
    s.regs.pmsirr_el1.interval = 0;
    EXPECT_EQ(remedy(s, "PMSIRR_EL1.INTERVAL"), 16U);  // 4096, the least recommended
    s.regs.pmsidr_el1.interval = 0;
    EXPECT_EQ(remedy(s, "PMSIRR_EL1.INTERVAL"), 4U);
    s.regs.pmbptr_el1.ptr = 0x10000;
    s.regs.pmbidr_el1.align = 8;
    EXPECT_EQ(remedy(s, "PMBPTR_EL1.PTR"), 0xff00U);
    s.regs.pmblimitr_el1.limit = 0;
    EXPECT_EQ(remedy(s, "PMBLIMITR_EL1.LIMIT"), 0x11U);
    s.regs.pmbptr_el1.ptr = ~std::uint64_t{0};
    EXPECT_EQ(weights(s, "PMBLIMITR_EL1.LIMIT"), "s");
    EXPECT_FALSE(remedy(s, "PMBLIMITR_EL1.LIMIT"));
}

TEST(Explain, what_was_not_given) {
    const auto notes = [](const State& s, std::string_view missing) {
        ExplainOptions options;
        options.given = [&](std::string_view name) { return !name.starts_with(missing); };
        const Explanation e = explain(s, options);
        std::string out = e.samples() ? "samples" : "none";
        for (const RegisterFinding& f : e.findings)
            if (f.facts.empty()) out += ", " + f.text.substr(0, f.text.find(' '));
        return out;
    };
    EXPECT_EQ(notes(sound("E2PB=11"), "HCR_EL2"), "samples");
    EXPECT_EQ(notes(sound("E2PB=11"), "PMSIRR_EL1"), "samples, PMSIRR_EL1");
    EXPECT_EQ(notes(sound("E2PB=11"), "PMBPTR_EL1"), "samples, PMBPTR_EL1");
    EXPECT_EQ(notes(sound("E2PB=11"), "PMBLIMITR_EL1.LIMIT"), "samples, PMBLIMITR_EL1.LIMIT");
    EXPECT_EQ(notes(sound("E2PB=11, E=0"), "PMBPTR_EL1"), "none");
    // A limit of 0 leaves no room, wherever the pointer is.
    State s = sound("E2PB=11");
    s.regs.pmblimitr_el1.limit = 0;
    EXPECT_EQ(notes(s, "PMBPTR_EL1"), "none");
    EXPECT_EQ(notes(s, "PMBLIMITR_EL1.LIMIT"), "samples, PMBLIMITR_EL1.LIMIT");
}

TEST(Explain, registers_that_count_for_nothing) {
    const auto notes = [](const State& s, std::string_view register_name) {
        ExplainOptions options;
        options.given = [&](std::string_view name) { return name == register_name; };
        std::string out;
        for (const RegisterFinding& f : explain(s, options).findings)
            if (f.text.starts_with(register_name)) out += f.text + "\n";
        return out;
    };
    State s = sound("E2PB=11");
    s.regs.pmbsr_el2.s = s.regs.scr_el3.nse = true;
    EXPECT_EQ(notes(s, "PMBSR_EL2"),
              "PMBSR_EL2 has 0x20000 in S, but FEAT_SPE_EXC is not implemented, so it has no effect\n");
    EXPECT_EQ(notes(s, "SCR_EL3"),
              "SCR_EL3 has 0x4000000000000000 in NSE, but FEAT_RME is not implemented, so it has no effect\n");
    s.arch = Architecture::of(Version::v1_5);
    s.arch.rme = true;
    EXPECT_EQ(notes(s, "PMBSR_EL2") + notes(s, "SCR_EL3"), "");
    EXPECT_EQ(weights(s, "PMBSR_EL2.S"), "n");
    s.regs.pmscr_el2.ee = 0b10;
    EXPECT_EQ(weights(s, "PMBSR_EL2.S"), "");
    s.arch.el3 = false;
    EXPECT_EQ(notes(s, "MDCR_EL3"), "MDCR_EL3 has no effect, because EL3 is not implemented\n");
}

TEST(Explain, registers_with_an_enable_of_their_own) {
    State s = sound("E2PB=11");
    s.arch = Architecture::of(Version::v1_2);
    const auto own = of(s).levels[1].own_accesses;
    ASSERT_EQ(own.size(), 1U);
    EXPECT_EQ(own[0].name, "PMSNEVFR_EL1");
    EXPECT_EQ(own[0].access.value, SysRegAccess::TrapToEL3);
    EXPECT_TRUE(of(s).levels[0].own_accesses.empty());  // EL0 has no access to any register
    s.regs.mdcr_el3.en_pmsn = true;
    EXPECT_TRUE(of(s).levels[1].own_accesses.empty());
    s.regs.mdcr_el3.en_pmsn = false;
    ExplainOptions options;
    options.given = [](std::string_view name) { return name != "MDCR_EL3.EnPMSN"; };
    EXPECT_TRUE(explain(s, options).levels[1].own_accesses.empty());
}

TEST(Explain, bits_without_meaning) {
    State s = sound("(default)");
    s.regs.pmscr_el1 = from_value<PmscrEl1>(0x1100);  // bit 12 is RES0, EE came with v1.5
    EXPECT_EQ(without_meaning(s, "PMSCR_EL1").size(), 2U);
    s.arch = Architecture::of(Version::v1_5);
    ASSERT_EQ(without_meaning(s, "PMSCR_EL1").size(), 1U);
    EXPECT_TRUE(without_meaning(s, "PMSCR_EL1")[0].reserved());
}

// Section 2: the feature that adds each field. Without the feature the field has no effect, with only this feature it
// has.
TEST(Explain, fields_come_with_their_features) {
    struct Row {
        std::string_view register_name, field;
        void (*feature)(Architecture&);
    };
    const auto exc = [](Architecture& a) { a.exc = true; };
    const auto n_vm = [](Architecture& a) { a.n_vm = true; };
    const auto fn_e = [](Architecture& a) { a.fn_e = true; };
    const auto fds = [](Architecture& a) { a.fds = true; };
    const auto eft = [](Architecture& a) { a.eft = true; };
    const auto rme = [](Architecture& a) { a.rme = true; };
    const auto v1_2 = [](Architecture& a) { a.version = Version::v1_2; };
    const auto v1_5 = [](Architecture& a) { a.version = Version::v1_5; };
    const auto secure_el2 = [](Architecture& a) { a.secure_el2 = true; };
    const Row rows[] = {
        {"PMSCR_EL1", "EE", exc},        {"PMSCR_EL1", "KE", exc},        {"PMSCR_EL2", "EE", exc},
        {"PMSCR_EL2", "KE", exc},        {"PMSCR_EL2", "EnVM", n_vm},     {"PMSFCR_EL1", "FnE", fn_e},
        {"PMSFCR_EL1", "FDS", fds},      {"PMSFCR_EL1", "FP", eft},       {"PMSFCR_EL1", "SIMD", eft},
        {"PMSFCR_EL1", "Bm", eft},       {"PMSFCR_EL1", "LDm", eft},      {"PMSFCR_EL1", "STm", eft},
        {"PMSFCR_EL1", "FPm", eft},      {"PMSFCR_EL1", "SIMDm", eft},    {"PMBLIMITR_EL1", "FM", v1_2},
        {"PMBLIMITR_EL1", "PMFZ", v1_2}, {"PMBLIMITR_EL1", "nVM", n_vm},  {"PMSNEVFR_EL1", "E", fn_e},
        {"PMSDSFR_EL1", "S", fds},       {"PMBSR_EL2", "S", exc},         {"PMBSR_EL3", "S", exc},
        {"MDCR_EL3", "NSPBE", rme},      {"MDCR_EL3", "EnPMSN", fn_e},    {"MDCR_EL3", "EnPMS3", fds},
        {"MDCR_EL3", "PMSEE", exc},      {"MDCR_EL3", "EnPMS4", n_vm},    {"MDCR_EL3", "EnPMS4", v1_5},
        {"SCR_EL3", "NSE", rme},         {"SCR_EL3", "EEL2", secure_el2},
    };
    State bare = sound("(default)");
    bare.arch = {};
    bare.arch.version = Version::v1_1;
    bare.arch.revision = Revision::modern;
    for (const Row& row : rows) {
        SCOPED_TRACE(std::string(row.register_name) + "." + std::string(row.field));
        const auto meaningless = [&](const State& s) {
            for (const Field& f : without_meaning(s, row.register_name))
                if (f.name == row.field) return true;
            return false;
        };
        State s = bare;
        s.regs = {};
        ASSERT_TRUE(s.regs.set_field(std::string(row.register_name) + "." + std::string(row.field), 1));
        EXPECT_TRUE(meaningless(s));
        row.feature(s.arch);
        EXPECT_FALSE(meaningless(s));
        // No other feature adds the field.
        s.arch = bare.arch;
        for (const Row& other : rows)
            if (other.feature != row.feature && row.field != "EnPMS4") other.feature(s.arch);
        if (row.feature == static_cast<void (*)(Architecture&)>(v1_2)) s.arch.version = Version::v1_1;
        EXPECT_TRUE(row.field == "EnPMS4" || meaningless(s));
    }
}

}  // namespace
}  // namespace waymark::spe::test
