/// The properties of docs/spec/spe.md, 3.15, on random states; the changes of later versions; and that every answer
/// names the deciding condition.
#include "waymark/spe/architecture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "spe/state.h"
#include "support/sanitized.h"

namespace waymark::spe::test {
namespace {

constexpr unsigned rounds = sized(10'000U, 300U);  // for each version

/// A possible state: EL2 and EL3 only where they exist, no EL1 under a host.
State random_state(wire::Random& random, Version version, bool all_features) {
    State s;
    wire::Generator generator(random);
    Registers::for_each(s.regs, [&](auto& r) { std::remove_cvref_t<decltype(r)>::fields(generator, r); });
    s.arch = Architecture::of(random() % 16 == 0 ? Version::none : version);
    const auto one_in = [&](unsigned n) { return random() % n == 0; };
    s.arch.el2 = !one_in(4);
    s.arch.el3 = !one_in(4);
    s.arch.secure_only = one_in(2);
    s.arch.eft = one_in(2);
    if (all_features) {
        s.arch.secure_el2 = one_in(2);
        s.arch.rme = one_in(3);
        s.arch.secure = !one_in(4);
        if (s.arch.rme && !s.arch.secure) s.regs.scr_el3.ns = true;
        s.arch.ecv = one_in(2);
        s.halted = one_in(8);
        s.sdd = one_in(2);
        s.choices.pmscr_pct = random() % 4;
        s.choices.reserved_owner = static_cast<SecurityState>(random() % 3);
    }
    for (auto& answer : s.choices.answers) answer = static_cast<Choices::Answer>(random() % 2);
    s.el_using_aarch32[EL1] = one_in(16);
    s.regs.pstate.nrw = one_in(16);
    // Uniformly random bits would almost never leave profiling on.
    if (!one_in(4)) s.regs.pmblimitr_el1.e = true;
    if (!one_in(4)) s.regs.pmbsr_el1.s = false;
    if (!one_in(4)) s.regs.pmbsr_el2.s = s.regs.pmbsr_el3.s = false;
    if (!one_in(4)) s.regs.mdcr_el3.nspb = static_cast<std::uint8_t>(s.regs.scr_el3.ns << 1 | 1);
    if (!HaveEL(s, EL3)) s.regs.pstate.el = std::min<std::uint8_t>(s.regs.pstate.el, EL2);
    if (!HaveEL(s, EL2) && s.regs.pstate.el == EL2) s.regs.pstate.el = EL1;
    if (s.regs.pstate.el == EL2 && !EL2Enabled(s)) s.regs.pstate.el = EL1;
    if (s.regs.pstate.el == EL1 && EL2Enabled(s)) s.regs.hcr_el2.tge = false;
    return s;
}

template <class F>
void for_random_states(Version version, bool all_features, F&& f) {
    wire::Random random(2024);
    for (unsigned i = 0; i < rounds; ++i) {
        const State s = random_state(random, version, all_features);
        f(s, random);
        if (testing::Test::HasFailure()) {
            ADD_FAILURE() << "in round " << i;
            return;
        }
    }
}

/// Runs a check on the first revision and on each later version.
template <class F>
void for_each_version(F&& f) {
    for_random_states(Version::v1_0, false, f);
    for (const Version version : {Version::v1_1, Version::v1_2, Version::v1_3, Version::v1_4, Version::v1_5})
        for_random_states(version, true, f);
}

TEST(Properties, enabled_implies) {  // 1
    unsigned enabled = 0;
    for_each_version([&](const State& s, wire::Random&) {
        if (!StatisticalProfilingEnabled(s)) return;
        ++enabled;
        EXPECT_TRUE(ProfilingBufferEnabled(s));
        EXPECT_GE(ProfilingBufferOwner(s).value.el, s.regs.pstate.el);
        EXPECT_FALSE(UsingAArch32(s));
    });
    EXPECT_GT(enabled, rounds / 2) << "too few states with profiling on to mean anything";
}

TEST(Properties, nothing_is_collected_while_disabled) {  // 2
    for_each_version([](const State& s, wire::Random&) {
        if (StatisticalProfilingEnabled(s)) return;
        EXPECT_FALSE(CollectContextIDR1(s));
        EXPECT_FALSE(CollectContextIDR2(s));
        EXPECT_FALSE(CollectPhysicalAddress(s));
        EXPECT_EQ(CollectTimeStamp(s), TimeStamp::None);
    });
}

TEST(PropertiesDeathTest, collect_record_asserts) {  // 2
    State s = default_state();
    s.regs.pmblimitr_el1.e = false;
    EXPECT_DEATH(static_cast<void>(CollectRecord(s, 0, 0, OpType::Load)), "StatisticalProfilingEnabled");
}

SampleDetails random_details(wire::Random& random) {
    SampleDetails details;
    if (random() % 2 == 0) details.data_source = static_cast<std::uint16_t>(random() % 300);
    details.fp = random() % 2 == 0;
    details.simd = random() % 2 == 0;
    return details;
}

TEST(Properties, turning_a_filter_off_never_drops_a_record) {  // 3
    for_each_version([](const State& s, wire::Random& random) {
        // The exception: if FE and FnE have an event in common, the choice decides both filters; one filter alone is
        // not affected.
        const bool contradiction = s.regs.pmsfcr_el1.fe && s.regs.pmsfcr_el1.fn_e && s.arch.fn_e &&
                                   (s.regs.pmsevfr_el1.e & s.regs.pmsnevfr_el1.e & filterable_events(s.arch)) != 0;
        const std::uint64_t events = wire::random_number(random, 64);
        const auto latency = static_cast<std::uint32_t>(wire::random_number(random, 16));
        const auto op = static_cast<OpType>(random() % 8);
        const SampleDetails details = random_details(random);
        if (!passes_filters(s, events, latency, op, details)) return;
        for (const char* filter : {"FE", "FT", "FL", "FnE", "FDS"}) {
            if (contradiction && std::string(filter).starts_with('F') && (filter[1] == 'E' || filter[1] == 'n'))
                continue;
            State without = s;
            ASSERT_TRUE(without.regs.set_field(std::string("PMSFCR_EL1.") + filter, 0));
            EXPECT_TRUE(passes_filters(without, events, latency, op, details)) << filter;
        }
    });
}

TEST(Properties, access) {  // 4
    for_each_version([](const State& s, wire::Random&) {
        for (const SysRegAccess access :
             {CheckProfilingBufferAccess(s).value, CheckStatisticalProfilingAccess(s).value}) {
            EXPECT_NE(access, SysRegAccess::TrapToEL1);
            EXPECT_TRUE(s.regs.pstate.el != EL3 || access == SysRegAccess::OK || access == SysRegAccess::UNDEFINED);
        }
    });
}

TEST(Properties, the_usual_setting_gives_access) {  // 5
    for_random_states(Version::v1_0, false, [](State s, wire::Random&) {
        s.arch.version = Version::v1_0;
        s.regs.pstate.nrw = false;
        s.regs.pstate.el = EL1;
        s.regs.mdcr_el2.e2pb = s.regs.mdcr_el3.nspb = 0b11;
        s.regs.scr_el3.ns = true;
        EXPECT_EQ(CheckProfilingBufferAccess(s), SysRegAccess::OK);
    });
}

TEST(Properties, owner) {  // 6
    for_each_version([](const State& s, wire::Random&) {
        const Owner owner = ProfilingBufferOwner(s);
        EXPECT_TRUE(owner.el == EL1 || owner.el == EL2);
        EXPECT_TRUE(s.arch.revision != Revision::first || !owner.secure() || owner.el == EL1);
    });
}

TEST(Properties, other_events_do_not_matter) {  // 7
    for_each_version([](const State& s, wire::Random& random) {
        const std::uint64_t mask = filterable_events(s.arch);
        const std::uint64_t events = random(), others = random() & ~mask;
        const auto op = static_cast<OpType>(random() % 8);
        EXPECT_EQ(passes_filters(s, events, 100, op).value, passes_filters(s, events ^ others, 100, op).value);
    });
    EXPECT_EQ(filterable_events(Architecture{}), 0xffff'0000'ff00'f0aaU);
}

// 8: the arm for EL3 is a WM_CHECK, which no test here fails.

TEST(Revisions, agree_without_the_later_features) {
    for_random_states(Version::v1_0, false, [](State s, wire::Random&) {
        s.regs.hcr_el2.e2h = false;  // in a host, later texts know the virtual counter to be the physical one
        State later = s;
        later.arch.revision = Revision::modern;
        EXPECT_EQ(CheckProfilingBufferAccess(s).value, CheckProfilingBufferAccess(later).value);
        EXPECT_EQ(CheckStatisticalProfilingAccess(s).value, CheckStatisticalProfilingAccess(later).value);
        EXPECT_EQ(ProfilingBufferOwner(s).value, ProfilingBufferOwner(later).value);
        EXPECT_EQ(StatisticalProfilingEnabled(s).value, StatisticalProfilingEnabled(later).value);
        EXPECT_EQ(CollectContextIDR1(s).value, CollectContextIDR1(later).value);
        EXPECT_EQ(CollectContextIDR2(s).value, CollectContextIDR2(later).value);
        EXPECT_EQ(CollectPhysicalAddress(s).value, CollectPhysicalAddress(later).value);
        EXPECT_EQ(CollectTimeStamp(s).value, CollectTimeStamp(later).value);
    });
}

/// The true value of the field or feature behind a reason; nullopt if the reason is not a field.
std::optional<std::uint64_t> actual(const State& s, std::string_view name) {
    if (name == "EL2Enabled") return EL2Enabled(s);
    if (name == "Debug state") return s.halted;
    if (name == "owner EL") return ProfilingBufferOwner(s).value.el;
    if (name == "FEAT_SPE") return s.arch.version != Version::none;
    if (name == "FEAT_EL2") return s.arch.el2;
    if (name == "FEAT_SPE_FnE") return s.arch.fn_e;
    if (name == "FEAT_SPE_FDS") return s.arch.fds;
    if (name == "FEAT_SPE_nVM") return s.arch.n_vm;
    if (const auto field = s.regs.field(name)) return field->value;
    return std::nullopt;
}

/// The reason names a fact, and its remedy removes it.
template <class F>
void check_reason(const State& s, F&& decide, const char* function) {
    const auto decision = decide(s);
    const Why& why = decision.why;
    EXPECT_FALSE(why.row.empty()) << function;
    EXPECT_FALSE(why.text.empty()) << function;
    EXPECT_FALSE(why.facts[0].name.empty()) << function;
    for (const Fact& fact : why.facts) {
        if (fact.name.empty()) continue;
        const auto value = actual(s, fact.name);
        // Two bits count as one without FEAT_ECV, and reserved values count as the model's choice.
        if (fact.name.ends_with(".PCT")) continue;
        ASSERT_TRUE(value.has_value()) << function << ": " << fact.name << " is nothing that can be looked up";
        EXPECT_EQ(*value, fact.value) << function << ": " << fact.name;
    }
    if (!why.remedy) return;
    State cured = s;
    ASSERT_TRUE(cured.regs.set_field(why.facts[0].name, *why.remedy)) << function << ": " << why.facts[0].name;
    const auto again = decide(cured);
    EXPECT_FALSE(again.why.text == why.text && again.why.facts[0] == why.facts[0])
        << function << ": " << why.facts[0].name << " = " << *why.remedy << " is no remedy";
}

TEST(Reasons, are_so_and_can_be_removed) {
    for_each_version([](const State& s, wire::Random&) {
        check_reason(s, CheckProfilingBufferAccess, "CheckProfilingBufferAccess");
        check_reason(s, CheckStatisticalProfilingAccess, "CheckStatisticalProfilingAccess");
        check_reason(s, ProfilingBufferOwner, "ProfilingBufferOwner");
        check_reason(s, ProfilingBufferEnabled, "ProfilingBufferEnabled");
        check_reason(s, StatisticalProfilingEnabled, "StatisticalProfilingEnabled");
        check_reason(s, CollectContextIDR1, "CollectContextIDR1");
        check_reason(s, CollectContextIDR2, "CollectContextIDR2");
        check_reason(s, CollectPhysicalAddress, "CollectPhysicalAddress");
        check_reason(s, CollectTimeStamp, "CollectTimeStamp");
        Registers::for_each(s.regs, [&](const auto& r) {
            const std::string_view name = r.name;
            if (!name.starts_with("PM") || name == "PMCR_EL0") return;
            check_reason(
                s, [&](const State& state) { return check_register_access(state, name); }, "check_register_access");
        });
    });
}

TEST(Reasons, of_filters) {
    for_each_version([](const State& s, wire::Random& random) {
        const std::uint64_t events = wire::random_number(random, 64);
        const auto latency = static_cast<std::uint32_t>(wire::random_number(random, 16));
        const auto op = static_cast<OpType>(random() % 8);
        const SampleDetails details = random_details(random);
        const auto decision = passes_filters(s, events, latency, op, details);
        EXPECT_FALSE(decision.why.text.empty());
        if (decision) return;
        const Fact& first = decision.why.facts[0];
        ASSERT_TRUE(s.regs.field(first.name)) << first.name;
        EXPECT_EQ(s.regs.field(first.name)->value, first.value) << first.name;
        ASSERT_TRUE(decision.why.remedy) << decision.why.text;
        State cured = s;
        ASSERT_TRUE(cured.regs.set_field(first.name, *decision.why.remedy)) << first.name;
        const auto again = passes_filters(cured, events, latency, op, details);
        EXPECT_FALSE(again.why.facts[0] == first && again.why.text == decision.why.text && !again) << first.name;
    });
}

// Changes of the later versions (the "Later" paragraphs of section 3).

TEST(Later, secure_el2_owns) {  // 3.2, 3.7
    State s = state_of("NS=0, NSPB=01, sel2=1, EL=2");
    s.arch.revision = Revision::modern;
    EXPECT_EQ(ProfilingBufferOwner(s).value, (Owner{SecurityState::Secure, EL2}));
    EXPECT_TRUE(StatisticalProfilingEnabled(s));
    s.regs.pmscr_el2.pa = false;
    EXPECT_FALSE(CollectPhysicalAddress(s));
}

TEST(Later, realm) {  // 3.1, 3.2, 3.3
    State s = state_of("NSPB=11, NS=1, E2PB=11");
    s.arch = Architecture::of(Version::v1_2);
    s.arch.rme = true;
    EXPECT_TRUE(StatisticalProfilingEnabled(s));
    s.regs.scr_el3.nse = true;
    EXPECT_FALSE(ProfilingBufferEnabled(s));
    EXPECT_EQ(ProfilingBufferEnabled(s).why.facts[0], (Fact{"MDCR_EL3.NSPBE", 0}));
    EXPECT_EQ(CheckProfilingBufferAccess(s), SysRegAccess::TrapToEL3);
    s.regs.mdcr_el3.nspbe = true;
    EXPECT_EQ(ProfilingBufferOwner(s).value.state, SecurityState::Realm);
    EXPECT_TRUE(StatisticalProfilingEnabled(s));
    s.regs.mdcr_el3.nspb = 0b01;
    s.choices.reserved_owner = SecurityState::Secure;
    const auto owner = ProfilingBufferOwner(s);
    EXPECT_TRUE(owner.value.secure());
    ASSERT_EQ(owner.consulted.size(), 1U);
    EXPECT_EQ(owner.consulted.begin()->which, Unpredictable::RESERVEDNSxB);
}

// The exception level that owns the buffer must not use AArch32; the other levels do not matter.
TEST(ProfilingBuffer, TheOwnersExceptionLevelUsesAArch64) {  // 3.3
    for (const std::uint8_t owner : {EL1, EL2}) {
        State s = state_of(owner == EL1 ? "NSPB=11, NS=1, E2PB=11" : "NSPB=11, NS=1, E2PB=00");
        ASSERT_EQ(ProfilingBufferOwner(s).value.el, owner);
        EXPECT_TRUE(ProfilingBufferEnabled(s));
        for (const std::uint8_t el : {EL0, EL1, EL2, EL3}) {
            s.el_using_aarch32 = {};
            s.el_using_aarch32[el] = true;
            EXPECT_EQ(ELUsingAArch32(s, el), true);
            const auto enabled = ProfilingBufferEnabled(s);
            EXPECT_EQ(enabled.value, el != owner) << "owner EL" << unsigned{owner} << ", AArch32 EL" << unsigned{el};
            if (el == owner) {
                EXPECT_EQ(enabled.why.facts[0], (Fact{"owner EL", owner}));
            }
        }
    }
}

TEST(Later, debug_state) {  // 3.1, 3.3
    State s = state_of("NSPB=10, E2PB=11");
    s.arch = Architecture::of(Version::v1_1);
    EXPECT_TRUE(ProfilingBufferEnabled(s));
    EXPECT_EQ(CheckProfilingBufferAccess(s), SysRegAccess::TrapToEL3);
    s.halted = s.sdd = true;
    EXPECT_FALSE(ProfilingBufferEnabled(s));
    EXPECT_EQ(CheckProfilingBufferAccess(s), SysRegAccess::UNDEFINED);
}

TEST(Later, profiling_exceptions_stop) {  // 3.3
    State s = default_state();
    s.arch = Architecture::of(Version::v1_5);
    s.regs.pmbsr_el2.s = s.regs.pmbsr_el3.s = true;
    EXPECT_TRUE(ProfilingBufferEnabled(s));
    s.regs.pmscr_el2.ee = 0b11;
    EXPECT_EQ(ProfilingBufferEnabled(s).why.facts[0].name, "PMBSR_EL2.S");
    s.regs.pmbsr_el2.s = false;
    s.regs.mdcr_el3.pmsee = 0b10;
    EXPECT_EQ(ProfilingBufferEnabled(s).why.facts[0].name, "PMBSR_EL3.S");
}

TEST(Later, time_stamps) {  // 3.8
    struct Row {
        unsigned el, e2pb, pct1, pct2;
        bool host;
        TimeStamp expected;
    };
    const auto V = TimeStamp::Virtual, P = TimeStamp::Physical, O = TimeStamp::OffsetPhysical;
    const Row rows[] = {
        {1, 0b00, 0b00, 0b00, false, V}, {2, 0b00, 0b00, 0b00, true, P},  {1, 0b00, 0b00, 0b01, false, P},
        {1, 0b11, 0b00, 0b01, false, V}, {1, 0b11, 0b01, 0b01, false, P}, {1, 0b11, 0b11, 0b01, false, O},
        {1, 0b11, 0b00, 0b11, false, V}, {1, 0b11, 0b01, 0b11, false, O}, {1, 0b00, 0b00, 0b11, false, O},
        {0, 0b00, 0b11, 0b00, true, P},  {1, 0b11, 0b11, 0b00, false, V},
    };
    for (const Row& row : rows) {
        State s = default_state();
        s.arch = Architecture::of(Version::v1_3);
        s.arch.ecv = true;
        s.regs.pstate.el = row.el & 3;
        s.regs.mdcr_el2.e2pb = row.e2pb & 3;
        s.regs.pmscr_el1.pct = row.pct1 & 3;
        s.regs.pmscr_el2.pct = row.pct2 & 3;
        s.regs.hcr_el2.e2h = s.regs.hcr_el2.tge = row.host;
        EXPECT_EQ(CollectTimeStamp(s), row.expected) << &row - rows;
    }
    State s = state_of("PCT2=2, el2=1");
    s.arch = Architecture::of(Version::v1_3);
    s.arch.ecv = true;
    s.choices.pmscr_pct = 0b01;
    const auto d = CollectTimeStamp(s);
    EXPECT_EQ(d, TimeStamp::Physical);
    ASSERT_EQ(d.consulted.size(), 1U);
    EXPECT_EQ(*d.consulted.begin(), (Consultation{Unpredictable::PMSCR_PCT, 0b01}));
}

TEST(Later, filterable_events) {  // 2.4, row by row
    struct Row {
        Version version;
        std::uint64_t architected;
    };
    for (const Row& row : {Row{Version::v1_1, 0x8aa},
                           {Version::v1_2, 0x8ea},
                           {Version::v1_3, 0x8ea},
                           {Version::v1_4, 0xf8'0ffe},
                           {Version::v1_5, 0xf8'0ffe}}) {
        Architecture a = Architecture::of(row.version);
        a.own_events = 0;
        EXPECT_EQ(filterable_events(a), row.architected) << name(row.version);
        a.sve = true;
        EXPECT_EQ(filterable_events(a), row.architected | 0x6'0000) << name(row.version);
        a.own_events = ~std::uint64_t{0};
        const bool v1_4 = row.version >= Version::v1_4;
        EXPECT_EQ(filterable_events(a),
                  (row.architected | 0x6'f714 | 0xffff'0000'0000'0000) | (v1_4 ? 0U : 0xff00'0000U));
    }
    Architecture sme = Architecture::of(Version::v1_4);
    sme.own_events = 0;
    sme.sme = true;
    EXPECT_EQ(filterable_events(sme), 0x3fe'0ffe | 0x8'0000 | 0xf0'0000);
}

TEST(Later, registers_of_their_own_enable) {  // 2.8
    State s = state_of("E2PB=11");
    const auto access = [&](std::string_view name) { return check_register_access(s, name).value; };
    EXPECT_EQ(access("PMSNEVFR_EL1"), SysRegAccess::UNDEFINED);
    EXPECT_EQ(access("PMSCR_EL1"), SysRegAccess::OK);
    EXPECT_EQ(access("PMSCR_EL2"), SysRegAccess::UNDEFINED);
    s.arch = Architecture::of(Version::v1_5);
    for (const char* const name : {"PMSNEVFR_EL1", "PMSDSFR_EL1", "PMBMAR_EL1"})
        EXPECT_EQ(access(name), SysRegAccess::TrapToEL3) << name;
    s.regs.mdcr_el3.en_pmsn = s.regs.mdcr_el3.en_pms3 = s.regs.mdcr_el3.en_pms4 = true;
    for (const char* const name : {"PMSNEVFR_EL1", "PMSDSFR_EL1", "PMBMAR_EL1"})
        EXPECT_EQ(access(name), SysRegAccess::OK) << name;
    s.regs.mdcr_el2.e2pb = 0b00;
    EXPECT_EQ(access("PMBPTR_EL1"), SysRegAccess::TrapToEL2);
    EXPECT_EQ(access("PMSIRR_EL1"), SysRegAccess::OK);
    EXPECT_EQ(access("PMBIDR_EL1"), SysRegAccess::OK);
}

TEST(Filters, choices_are_asked_only_when_reached) {  // 3.9
    const auto asked = [](const char* changes, OpType op, std::uint64_t events) {
        std::set<std::string_view> out;
        for (const Consultation& c : CollectRecord(state_of(changes), events, 0, op).consulted)
            out.insert(name(c.which));
        return out;
    };
    using Names = std::set<std::string_view>;
    EXPECT_EQ(asked("FE=1, FT=1, FL=1, Z=1", OpType::Load, 0), (Names{"ZEROPMSEVFR"}));
    EXPECT_EQ(asked("FE=1, FT=1, FL=1, N=1", OpType::Load, 0), (Names{"ZEROPMSEVFR", "NOOPTYPES"}));
    EXPECT_EQ(asked("FE=1, FT=1, FL=1", OpType::Load, 0), (Names{"ZEROPMSEVFR", "NOOPTYPES"}));
    EXPECT_EQ(asked("FE=1, EVFR=0x2, FT=1", OpType::Load, 0), (Names{}));
    EXPECT_EQ(asked("FT=1, LD=1, FL=1", OpType::Load, 0), (Names{"ZEROMINLATENCY"}));
    EXPECT_EQ(asked("FE=1, EVFR=0x4", OpType::Load, 0), (Names{}));
}

}  // namespace
}  // namespace waymark::spe::test
