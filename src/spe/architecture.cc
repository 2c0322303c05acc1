#include "waymark/spe/architecture.h"

#include "waymark/core/result.h"

namespace waymark::spe {

namespace {

using enum SecurityState;

constexpr bool from(const Architecture& a, Version version) { return a.version >= version; }
bool modern(const State& s) { return s.arch.revision == Revision::modern; }
std::uint8_t current_el(const State& s) { return s.regs.pstate.el; }

/// Whether EL2 can be used in Secure state.
bool secure_el2_enabled(const State& s) {
    return s.arch.el2 && s.arch.secure_el2 && (!s.arch.el3 || s.regs.scr_el3.eel2);
}

/// Whether EL2 can own a buffer of this Security state; in the first revision never a Secure buffer (3.2).
bool el2_can_own(const State& s, SecurityState state) {
    return HaveEL(s, EL2) && (state != Secure || (modern(s) && secure_el2_enabled(s)));
}

/// Whether the PE runs, or would run, its host at EL2, so that applications belong to EL2 too.
bool in_host(const State& s) { return EL2Enabled(s) && s.regs.hcr_el2.tge; }

/// {NSPBE, NSPB[1]} for the PE's present state, as `row 3` of 3.1 compares them.
std::uint8_t nspb_of(SecurityState state) { return state == Secure ? 0b01 : 0b11; }

Why nspb(std::string_view row, std::string_view text, const State& s) {
    const SecurityState state = SecurityStateBelowEL3(s);
    if (s.arch.rme && s.regs.mdcr_el3.nspbe != (state == Realm))
        return {row,
                text,
                {{{"MDCR_EL3.NSPBE", s.regs.mdcr_el3.nspbe}, {"SCR_EL3.NSE", s.regs.scr_el3.nse}}},
                state == Realm};
    Why why{row, text, {{{"MDCR_EL3.NSPB", s.regs.mdcr_el3.nspb}, {"SCR_EL3.NS", s.regs.scr_el3.ns}}}};
    // If the field already has this value, no field helps: the buffer of a Realm in the first revision, or a Secure
    // buffer without Secure state.
    if (s.regs.mdcr_el3.nspb != nspb_of(state)) why.remedy = nspb_of(state);
    return why;
}

/// 3.1, row 1.
std::optional<Why> undefined_access(const State& s) {
    if (!HaveStatisticalProfiling(s)) return Why{"3.1 row 1", "the extension is not implemented", {{{"FEAT_SPE", 0}}}};
    if (current_el(s) == EL0) return Why{"3.1 row 1", "EL0 has no access to these registers", {{{"PSTATE.EL", EL0}}}};
    if (UsingAArch32(s))
        return Why{"3.1 row 1", "AArch32 state has no access to these registers", {{{"PSTATE.nRW", 1}}}};
    return std::nullopt;
}

/// 3.1, rows 3 and 4.
Decision<SysRegAccess> access_past_el2(const State& s) {
    const SecurityState state = SecurityStateBelowEL3(s);
    const bool granted =
        s.regs.mdcr_el3.nspb == nspb_of(state) && (!s.arch.rme || s.regs.mdcr_el3.nspbe == (state == Realm));
    if (HaveEL(s, EL3) && current_el(s) != EL3 && !granted) {
        const Why why = nspb("3.1 row 3", "EL3 has not given the buffer to this Security state", s);
        return {modern(s) && s.halted && s.sdd ? SysRegAccess::UNDEFINED : SysRegAccess::TrapToEL3, why};
    }
    return {SysRegAccess::OK, {"3.1 row 4", "nothing traps it", {{{"PSTATE.EL", current_el(s)}}}}};
}

/// The field that turns sampling on at an exception level.
Decision<bool> sampling(std::string_view row, std::string_view field, bool value) {
    if (value) return {true, {row, "samples are taken at this exception level", {{{field, 1}}}}};
    return {false, {row, "sampling at this exception level is off", {{{field, 0}}}, 1}};
}

Decision<bool> collected(std::string_view row, std::string_view field, bool value) {
    return {value,
            {row,
             value ? "it is recorded" : "recording it is off",
             {{{field, value}}},
             value ? std::nullopt : std::optional<std::uint64_t>(1)}};
}

}  // namespace

Architecture Architecture::of(Version version) {
    Architecture a;
    a.version = version;
    a.revision = version > Version::v1_0 ? Revision::modern : Revision::first;
    a.fn_e = from(a, Version::v1_2);
    a.fds = from(a, Version::v1_4);
    a.exc = a.n_vm = from(a, Version::v1_5);
    return a;
}

Architecture Architecture::with(const PmsidrEl1& id) const {
    Architecture a = *this;
    a.fn_e = id.fn_e;
    a.fds = id.fds;
    a.eft = id.eft;
    a.sme = id.sme;
    return a;
}

// 3.0

bool HaveStatisticalProfiling(const State& s) { return s.arch.version != Version::none; }

bool HaveEL(const State& s, std::uint8_t el) { return el <= EL1 || (el == EL2 ? s.arch.el2 : s.arch.el3); }

bool UsingAArch32(const State& s) { return s.regs.pstate.nrw; }

bool ELUsingAArch32(const State& s, std::uint8_t el) { return s.el_using_aarch32[el]; }

SecurityState SecurityStateBelowEL3(const State& s) {
    if (!HaveEL(s, EL3)) {
        if (HaveEL(s, EL2) && !s.arch.secure_el2) return NonSecure;
        return s.arch.secure_only ? Secure : NonSecure;
    }
    if (s.arch.rme && s.regs.scr_el3.nse) return Realm;
    return s.regs.scr_el3.ns ? NonSecure : Secure;
}

SecurityState CurrentSecurityState(const State& s) {
    if (HaveEL(s, EL3) && current_el(s) == EL3) return s.arch.rme ? Root : Secure;
    return SecurityStateBelowEL3(s);
}

bool IsSecure(const State& s) { return CurrentSecurityState(s) == Secure; }

bool EL2Enabled(const State& s) { return HaveEL(s, EL2) && (!IsSecure(s) || secure_el2_enabled(s)); }

bool ConstrainUnpredictableBool(const State& s, Unpredictable which, unsigned site) {
    const auto index = static_cast<unsigned>(which);
    WM_CHECK(index < s.choices.answers.size());
    if (s.choices.answers[index] != Choices::Answer::drawn) return s.choices.answers[index] == Choices::Answer::yes;
    // The mixing function of SplitMix64: one well-spread bit per seed, choice and site.
    std::uint64_t x = s.choices.seed + 0x9e3779b97f4a7c15 * (1 + index + 8 * site);
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return ((x ^ x >> 31) & 1) != 0;
}

// 3.1

Decision<SysRegAccess> CheckProfilingBufferAccess(const State& s) {
    if (const auto why = undefined_access(s)) return {SysRegAccess::UNDEFINED, *why};
    if (current_el(s) == EL1 && EL2Enabled(s) && (s.regs.mdcr_el2.e2pb & 1) != 1)
        return {SysRegAccess::TrapToEL2,
                {"3.1 row 2",
                 "EL2 keeps the buffer registers from EL1",
                 {{{"MDCR_EL2.E2PB", s.regs.mdcr_el2.e2pb}}},
                 0b11}};
    return access_past_el2(s);
}

Decision<SysRegAccess> CheckStatisticalProfilingAccess(const State& s) {
    if (const auto why = undefined_access(s)) return {SysRegAccess::UNDEFINED, *why};
    if (current_el(s) == EL1 && EL2Enabled(s) && s.regs.mdcr_el2.tpms)
        return {SysRegAccess::TrapToEL2,
                {"3.1 row 2", "EL2 keeps the profiling registers from EL1", {{{"MDCR_EL2.TPMS", 1}}}, 0}};
    return access_past_el2(s);
}

Decision<SysRegAccess> check_register_access(const State& s, std::string_view name) {
    if (const auto why = undefined_access(s)) return {SysRegAccess::UNDEFINED, *why};
    const auto absent = [](std::string_view feature) {
        return Decision<SysRegAccess>{
            SysRegAccess::UNDEFINED,
            {"2", "the register belongs to a feature that is not implemented", {{{feature, 0}}}}};
    };
    if (name == PmsnevfrEl1::name && !s.arch.fn_e) return absent("FEAT_SPE_FnE");
    if (name == PmsdsfrEl1::name && !s.arch.fds) return absent("FEAT_SPE_FDS");
    if (name == PmbmarEl1::name && !s.arch.n_vm) return absent("FEAT_SPE_nVM");
    if (name == PmscrEl2::name && current_el(s) == EL1)
        return {SysRegAccess::UNDEFINED, {"2", "EL1 has no access to a register of EL2", {{{"PSTATE.EL", EL1}}}}};
    if (name == PmbidrEl1::name) return {SysRegAccess::OK, {"2", "nothing traps it", {{{"PSTATE.EL", current_el(s)}}}}};
    const auto check = name.starts_with("PMB") ? CheckProfilingBufferAccess(s) : CheckStatisticalProfilingAccess(s);
    if (check.value != SysRegAccess::OK || !HaveEL(s, EL3) || current_el(s) == EL3) return check;
    const auto enable = [&](std::string_view field, bool value) {
        if (value) return check;
        return Decision<SysRegAccess>{s.halted && s.sdd ? SysRegAccess::UNDEFINED : SysRegAccess::TrapToEL3,
                                      {"2.8", "EL3 has not allowed this register", {{{field, 0}}}, 1}};
    };
    if (name == PmsnevfrEl1::name) return enable("MDCR_EL3.EnPMSN", s.regs.mdcr_el3.en_pmsn);
    if (name == PmsdsfrEl1::name) return enable("MDCR_EL3.EnPMS3", s.regs.mdcr_el3.en_pms3);
    if (name == PmbmarEl1::name) return enable("MDCR_EL3.EnPMS4", s.regs.mdcr_el3.en_pms4);
    return check;
}

// 3.2

Decision<Owner> ProfilingBufferOwner(const State& s) {
    Decision<Owner> d{{NonSecure, EL1}, {"3.2", {}}, {}};
    const std::uint8_t nspb = s.regs.mdcr_el3.nspb, e2pb = s.regs.mdcr_el2.e2pb;
    if (!HaveEL(s, EL3)) {
        d.value.state = IsSecure(s) ? Secure : NonSecure;
    } else if (modern(s) && s.arch.rme) {
        const bool nspbe = s.regs.mdcr_el3.nspbe, upper = (nspb & 0b10) != 0;
        if ((nspbe && !upper) || (!nspbe && !upper && !s.arch.secure)) {
            d.value.state = s.choices.reserved_owner;
            d.consulted.add({Unpredictable::RESERVEDNSxB, static_cast<std::uint8_t>(d.value.state)});
        } else {
            d.value.state = nspbe ? Realm : upper ? NonSecure : Secure;
        }
    } else {
        d.value.state = (nspb & 0b10) == 0 ? Secure : NonSecure;
    }
    const bool el2_usable = el2_can_own(s, d.value.state);
    if (el2_usable && e2pb == 0b00) d.value.el = EL2;
    if (!HaveEL(s, EL2))
        d.why.text = "without EL2 the buffer is EL1's", d.why.facts[0] = {"FEAT_EL2", 0};
    else if (!el2_usable)
        d.why.text = "a Secure buffer belongs to EL1, because there is no EL2 in Secure state",
        d.why.facts[0] = {"MDCR_EL3.NSPB", nspb};
    else
        d.why.text = d.value.el == EL2 ? "EL2 keeps the buffer to itself" : "EL2 leaves the buffer to EL1",
        d.why.facts[0] = {"MDCR_EL2.E2PB", e2pb};
    return d;
}

// 3.3

Decision<bool> ProfilingBufferEnabled(const State& s) {
    const auto no = [](Why why) { return Decision<bool>{false, why}; };
    if (!HaveStatisticalProfiling(s)) return no({"3.3", "the extension is not implemented", {{{"FEAT_SPE", 0}}}});
    if (modern(s) && s.halted) return no({"3.3", "in Debug state nothing is profiled", {{{"Debug state", 1}}}});
    const Owner owner = ProfilingBufferOwner(s);
    if (ELUsingAArch32(s, owner.el))
        return no({"3.3", "the exception level that owns the buffer uses AArch32", {{{"owner EL", owner.el}}}});
    if (owner.state != SecurityStateBelowEL3(s))
        return no(nspb("3.3", "the buffer belongs to another Security state than the one the PE is in", s));
    const auto& limit = s.regs.pmblimitr_el1;
    if (!limit.e) return no({"3.3", "the profiling buffer is off", {{{"PMBLIMITR_EL1.E", 0}}}, 1});
    const auto stopped = [&](std::string_view text, std::string_view field, std::string_view ec, std::string_view mss,
                             const PmbsrFields& status) {
        return no({"3.3", text, {{{field, 1}, {ec, status.ec}, {mss, status.mss}}}, 0});
    };
    constexpr std::string_view text = "profiling has stopped: a buffer management event has not been served yet";
    if (s.regs.pmbsr_el1.s) return stopped(text, "PMBSR_EL1.S", "PMBSR_EL1.EC", "PMBSR_EL1.MSS", s.regs.pmbsr_el1);
    if (modern(s) && s.arch.exc) {
        if (HaveEL(s, EL2) && (s.regs.pmscr_el2.ee & 0b10) != 0 && s.regs.pmbsr_el2.s)
            return stopped(text, "PMBSR_EL2.S", "PMBSR_EL2.EC", "PMBSR_EL2.MSS", s.regs.pmbsr_el2);
        if (HaveEL(s, EL3) && (s.regs.mdcr_el3.pmsee & 0b10) != 0 && s.regs.pmbsr_el3.s)
            return stopped(text, "PMBSR_EL3.S", "PMBSR_EL3.EC", "PMBSR_EL3.MSS", s.regs.pmbsr_el3);
    }
    return {true, {"3.3", "the profiling buffer is on", {{{"PMBLIMITR_EL1.E", 1}, {"PMBSR_EL1.S", 0}}}}};
}

// 3.4

Decision<bool> StatisticalProfilingEnabled(const State& s) {
    const auto no = [](Why why) { return Decision<bool>{false, why}; };
    const std::uint8_t el = current_el(s), e2pb = s.regs.mdcr_el2.e2pb;
    if (!HaveStatisticalProfiling(s)) return no({"3.4 row 1", "the extension is not implemented", {{{"FEAT_SPE", 0}}}});
    if (UsingAArch32(s)) return no({"3.4 row 1", "nothing is sampled in AArch32 state", {{{"PSTATE.nRW", 1}}}});
    if (const auto buffer = ProfilingBufferEnabled(s); !buffer) return no(buffer.why);
    const Owner owner = ProfilingBufferOwner(s);
    if (owner.el < el) {
        if (el == EL3) return no({"3.4 row 2", "nothing is sampled at EL3", {{{"PSTATE.EL", EL3}}}});
        constexpr std::string_view text = "the buffer belongs to EL1, so EL2 is not sampled";
        if (el2_can_own(s, owner.state))
            return no({"3.4 row 2", text, {{{"MDCR_EL2.E2PB", e2pb}, {"PSTATE.EL", el}}}, 0b00});
        return no({"3.4 row 2", text, {{{"PSTATE.EL", el}}}});
    }
    if (owner.state != CurrentSecurityState(s))
        return no(nspb("3.4 row 3", "the buffer belongs to another Security state than the current one", s));
    if (in_host(s) && owner.el == EL1) {
        constexpr std::string_view text = "the host at EL2 runs its applications, but the buffer belongs to EL1";
        if (el2_can_own(s, owner.state))
            return no({"3.4 row 4", text, {{{"MDCR_EL2.E2PB", e2pb}, {"HCR_EL2.TGE", 1}}}, 0b00});
        return no({"3.4 row 4", text, {{{"HCR_EL2.TGE", 1}}}, 0});
    }
    WM_CHECK(el != EL3);  // row 5: row 2 always catches it
    if (el == EL2) return sampling("3.4 row 6", "PMSCR_EL2.E2SPE", s.regs.pmscr_el2.e2spe);
    if (el == EL1) return sampling("3.4 row 7", "PMSCR_EL1.E1SPE", s.regs.pmscr_el1.e1spe);
    if (in_host(s)) return sampling("3.4 row 8", "PMSCR_EL2.E0HSPE", s.regs.pmscr_el2.e0hspe);
    return sampling("3.4 row 9", "PMSCR_EL1.E0SPE", s.regs.pmscr_el1.e0spe);
}

// 3.5

Decision<bool> CollectContextIDR1(const State& s) {
    if (const auto enabled = StatisticalProfilingEnabled(s); !enabled) return enabled;
    if (current_el(s) == EL2)
        return {false, {"3.5", "CONTEXTIDR_EL1 says nothing about code at EL2", {{{"PSTATE.EL", EL2}}}}};
    if (in_host(s))
        return {false, {"3.5", "CONTEXTIDR_EL1 says nothing about a host's applications", {{{"HCR_EL2.TGE", 1}}}}};
    return collected("3.5", "PMSCR_EL1.CX", s.regs.pmscr_el1.cx);
}

// 3.6

Decision<bool> CollectContextIDR2(const State& s) {
    if (const auto enabled = StatisticalProfilingEnabled(s); !enabled) return enabled;
    const bool usable = EL2Enabled(s);
    if (!modern(s) && s.arch.as_printed) {
        if (usable)
            return {false, {"3.6", "as printed: EL2 can be used, so its context is left out", {{{"EL2Enabled", 1}}}}};
    } else if (!usable) {
        return {false, {"3.6", "EL2 is not used in this Security state", {{{"EL2Enabled", 0}}}}};
    }
    return collected("3.6", "PMSCR_EL2.CX", s.regs.pmscr_el2.cx);
}

// 3.7

Decision<bool> CollectPhysicalAddress(const State& s) {
    if (const auto enabled = StatisticalProfilingEnabled(s); !enabled) return enabled;
    const Owner owner = ProfilingBufferOwner(s);
    const bool asks_el2 =
        modern(s) ? HaveEL(s, EL2) && (!owner.secure() || secure_el2_enabled(s)) : !owner.secure() && HaveEL(s, EL2);
    if (!asks_el2) return collected("3.7", "PMSCR_EL1.PA", s.regs.pmscr_el1.pa);
    if (!s.regs.pmscr_el2.pa || owner.el == EL2) return collected("3.7", "PMSCR_EL2.PA", s.regs.pmscr_el2.pa);
    return collected("3.7", "PMSCR_EL1.PA", s.regs.pmscr_el1.pa);
}

// 3.8

namespace {

/// The effective value of PMSCR_ELx.PCT: one bit without FEAT_ECV, a choice if the value is reserved.
std::uint8_t effective_pct(const State& s, std::uint8_t pct, Consultations& consulted) {
    if (!s.arch.ecv) return pct & 0b01;
    if (pct != 0b10) return pct;
    consulted.add({Unpredictable::PMSCR_PCT, s.choices.pmscr_pct});
    return s.choices.pmscr_pct == 0b10 ? 0 : s.choices.pmscr_pct & 0b11;
}

Decision<TimeStamp> first_time_stamp(const State& s, const Owner& owner) {
    const std::uint64_t pct_el1 = s.regs.pmscr_el1.pct & 1U, pct_el2 = s.regs.pmscr_el2.pct & 1U;
    constexpr std::string_view physical = "the physical counter is chosen", offset = "the virtual counter is chosen";
    if (EL2Enabled(s)) {
        if (pct_el2 == 0) return {TimeStamp::Virtual, {"3.8 step 3", offset, {{{"PMSCR_EL2.PCT", 0}}}}};
        if (owner.el == EL2) return {TimeStamp::Physical, {"3.8 step 3", physical, {{{"PMSCR_EL2.PCT", 1}}}}};
    }
    if (pct_el1 == 0) return {TimeStamp::Virtual, {"3.8 step 3", offset, {{{"PMSCR_EL1.PCT", 0}}}}};
    return {TimeStamp::Physical, {"3.8 step 3", physical, {{{"PMSCR_EL1.PCT", 1}}}}};
}

Decision<TimeStamp> modern_time_stamp(const State& s, const Owner& owner) {
    Decision<TimeStamp> d;
    const std::uint8_t pct_el2 = effective_pct(s, s.regs.pmscr_el2.pct, d.consulted);
    const std::uint8_t pct_el1 = effective_pct(s, s.regs.pmscr_el1.pct, d.consulted);
    const auto decide = [&](TimeStamp value, std::string_view text, std::string_view field, std::uint64_t pct) {
        d.value = value;
        d.why = {"3.8", text, {{{field, pct}}}};
        return d;
    };
    // In a host the virtual counter has no offset.
    const bool host =
        EL2Enabled(s) && s.regs.hcr_el2.e2h && (current_el(s) == EL2 || (current_el(s) == EL0 && s.regs.hcr_el2.tge));
    const auto virtual_counter = [&](std::string_view field, std::uint64_t pct) {
        return host ? decide(TimeStamp::Physical, "the virtual counter is chosen, which in a host has no offset", field,
                             pct)
                    : decide(TimeStamp::Virtual, "the virtual counter is chosen", field, pct);
    };
    constexpr std::string_view physical = "the physical counter is chosen";
    constexpr std::string_view offset = "the physical counter less its offset is chosen";
    if (EL2Enabled(s)) {
        if (pct_el2 == 0b00) return virtual_counter("PMSCR_EL2.PCT", pct_el2);
        if (pct_el2 == 0b01 && owner.el == EL2) return decide(TimeStamp::Physical, physical, "PMSCR_EL2.PCT", pct_el2);
        if (pct_el2 == 0b11 && owner.el == EL1 && pct_el1 == 0b00) return virtual_counter("PMSCR_EL1.PCT", pct_el1);
        if (pct_el2 == 0b11) return decide(TimeStamp::OffsetPhysical, offset, "PMSCR_EL2.PCT", pct_el2);
    }
    if (pct_el1 == 0b00) return virtual_counter("PMSCR_EL1.PCT", pct_el1);
    if (pct_el1 == 0b01) return decide(TimeStamp::Physical, physical, "PMSCR_EL1.PCT", pct_el1);
    return decide(TimeStamp::OffsetPhysical, offset, "PMSCR_EL1.PCT", pct_el1);
}

}  // namespace

Decision<TimeStamp> CollectTimeStamp(const State& s) {
    if (const auto enabled = StatisticalProfilingEnabled(s); !enabled) return {TimeStamp::None, enabled.why};
    const Owner owner = ProfilingBufferOwner(s);
    const auto off = [](std::string_view field) {
        return Decision<TimeStamp>{TimeStamp::None, {"3.8 step 2", "timestamps are off", {{{field, 0}}}, 1}};
    };
    if (owner.el == EL2 && !s.regs.pmscr_el2.ts) return off("PMSCR_EL2.TS");
    if (owner.el == EL1 && !s.regs.pmscr_el1.ts) return off("PMSCR_EL1.TS");
    return modern(s) ? modern_time_stamp(s, owner) : first_time_stamp(s, owner);
}

// Names

std::string_view name(Version version) {
    constexpr std::string_view names[] = {"none", "v1.0", "v1.1", "v1.2", "v1.3", "v1.4", "v1.5"};
    return names[static_cast<unsigned>(version)];
}
std::string_view name(SecurityState state) {
    constexpr std::string_view names[] = {"Non-secure", "Secure", "Realm", "Root"};
    return names[static_cast<unsigned>(state)];
}
std::string_view name(SysRegAccess access) {
    constexpr std::string_view names[] = {"OK", "UNDEFINED", "TrapToEL1", "TrapToEL2", "TrapToEL3"};
    return names[static_cast<unsigned>(access)];
}
std::string_view name(TimeStamp time_stamp) {
    constexpr std::string_view names[] = {"None", "CoreSight", "Virtual", "OffsetPhysical", "Physical"};
    return names[static_cast<unsigned>(time_stamp)];
}
std::string_view name(OpType optype) {
    constexpr std::string_view names[] = {"Load",  "Store",    "LoadAtomic", "Branch",
                                          "Other", "OtherSVE", "OtherSME",   "Invalid"};
    return names[static_cast<unsigned>(optype)];
}
std::string_view name(Unpredictable which) {
    constexpr std::string_view names[] = {"ZEROPMSEVFR", "NOOPTYPES", "ZEROMINLATENCY",
                                          "BADPMSFCR",   "PMSCR_PCT", "RESERVEDNSxB"};
    return names[static_cast<unsigned>(which)];
}

}  // namespace waymark::spe
