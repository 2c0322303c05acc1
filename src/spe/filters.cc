/// Which samples the filters keep (docs/spec/spe.md, 2.4 and 3.9).
#include "waymark/core/result.h"
#include "waymark/spe/architecture.h"

namespace waymark::spe {

// 2.4

std::uint64_t filterable_events(const Architecture& a) {
    const auto bits = [](unsigned hi, unsigned lo) { return (~std::uint64_t{0} >> (63 - hi + lo)) << lo; };
    constexpr std::uint64_t always = 0xaa, from_v1_4 = 0x0714;  // 1, 3, 5, 7; 2, 4, 8, 9, 10
    std::uint64_t own = bits(15, 12) | bits(31, 24) | bits(63, 48);
    if (a.revision == Revision::first) return always | own;
    std::uint64_t mask = always;
    own |= from_v1_4;
    if (a.version >= Version::v1_1) mask |= bits(11, 11) | (a.sve || a.sme ? bits(18, 17) : 0);
    if (a.version >= Version::v1_2) mask |= bits(6, 6);
    if (a.version >= Version::v1_4) {
        mask |= from_v1_4 | bits(23, 19) | (a.sme ? bits(25, 24) : 0);
        own &= ~bits(31, 24);
    }
    return mask | (own & a.own_events);
}

// 3.9

namespace {

/// The verdict of one filter about a sample: nullopt, or the reason why it is dropped.
using Rejection = std::optional<Why>;

Rejection drops(bool rejected, std::string_view row, std::string_view text, std::array<Fact, 3> facts,
                std::optional<std::uint64_t> remedy) {
    if (!rejected) return std::nullopt;
    return Why{row, text, facts, remedy};
}

/// A choice that makes a filter drop everything.
Rejection unpredictable(const State& s, Unpredictable which, unsigned site, Consultations& consulted,
                        std::string_view row, Fact filter, Fact mask) {
    const bool rejected = ConstrainUnpredictableBool(s, which, site);
    consulted.add({which, rejected});
    return drops(rejected, row,
                 "the filter is on, but has no criterion, and this implementation then drops every sample",
                 {filter, mask}, 0);
}

bool loads(OpType op) { return op == OpType::Load || op == OpType::LoadAtomic; }
bool stores(OpType op) { return op == OpType::Store || op == OpType::LoadAtomic; }

Decision<bool> first_filters(const State& s, std::uint64_t events, std::uint32_t total_latency, OpType optype) {
    Decision<bool> d{true, {"3.9", "no filter drops it"}, {}};
    const auto reject = [&](const Why& why) {
        d.value = false;
        d.why = why;
        return d;
    };
    const PmsfcrEl1& control = s.regs.pmsfcr_el1;
    if (control.fe) {
        const std::uint64_t mask = filterable_events(s.arch), wanted = s.regs.pmsevfr_el1.e;
        if (wanted == 0)
            if (const auto why = unpredictable(s, Unpredictable::ZEROPMSEVFR, 0, d.consulted, "3.9 E1",
                                               {"PMSFCR_EL1.FE", 1}, {"PMSEVFR_EL1.E", 0}))
                return reject(*why);
        if ((wanted & mask & ~events) != 0)
            return reject({"3.9 E2",
                           "an event that must be 1 is 0",
                           {{{"PMSEVFR_EL1.E", wanted}, {"PMSFCR_EL1.FE", 1}, {"events", events}}},
                           wanted & events});
    }
    if (control.ft) {
        if (!control.b && !control.ld && !control.st)
            if (const auto why = unpredictable(s, Unpredictable::NOOPTYPES, 0, d.consulted, "3.9 T1",
                                               {"PMSFCR_EL1.FT", 1}, {"PMSFCR_EL1.B", 0}))
                return reject(*why);
        const bool is_branch = optype == OpType::Branch;
        const bool kept = (is_branch && control.b) || (loads(optype) && control.ld) || (stores(optype) && control.st);
        const Fact field = is_branch        ? Fact{"PMSFCR_EL1.B", 0}
                           : loads(optype)  ? Fact{"PMSFCR_EL1.LD", 0}
                           : stores(optype) ? Fact{"PMSFCR_EL1.ST", 0}
                                            : Fact{"PMSFCR_EL1.FT", 1};
        if (!kept)
            return reject({"3.9 T2",
                           "the type filter does not keep operations of this type",
                           {{field, {"PMSFCR_EL1.FT", 1}}},
                           field.value == 0});
    }
    if (control.fl) {
        const std::uint16_t minlat = s.regs.pmslatfr_el1.minlat;
        if (minlat == 0)
            if (const auto why = unpredictable(s, Unpredictable::ZEROMINLATENCY, 0, d.consulted, "3.9 L1",
                                               {"PMSFCR_EL1.FL", 1}, {"PMSLATFR_EL1.MINLAT", 0}))
                return reject(*why);
        if (total_latency < minlat)
            return reject({"3.9 L2",
                           "the operation took less than the least latency kept",
                           {{{"PMSLATFR_EL1.MINLAT", minlat}, {"PMSFCR_EL1.FL", 1}, {"total latency", total_latency}}},
                           total_latency});
    }
    return d;
}

/// 3.12, and its equivalent without FEAT_SPE_EFT.
Rejection modern_type_filter(const State& s, OpType optype, const SampleDetails& details, Consultations& consulted) {
    const PmsfcrEl1& c = s.regs.pmsfcr_el1;
    if (!c.ft) return std::nullopt;
    const auto set = [](bool b, bool ld, bool st, bool fp, bool simd) {
        return unsigned{b} | unsigned{ld} << 1 | unsigned{st} << 2 | unsigned{fp} << 3 | unsigned{simd} << 4;
    };
    const bool vector = optype == OpType::OtherSVE || optype == OpType::OtherSME;
    const unsigned flags =
        set(optype == OpType::Branch, loads(optype) || details.loads, stores(optype) || details.stores,
            s.arch.eft && details.fp, s.arch.eft && (details.simd || vector));
    const unsigned control = set(c.b, c.ld, c.st, s.arch.eft && c.fp, s.arch.eft && c.simd);
    const unsigned mask = s.arch.eft ? set(c.b_m, c.ld_m, c.st_m, c.fp_m, c.simd_m) : 0;
    if (!s.arch.eft && control == 0)
        return unpredictable(s, Unpredictable::BADPMSFCR, 2, consulted, "3.9", {"PMSFCR_EL1.FT", 1},
                             {"PMSFCR_EL1.B", 0});
    // Without FEAT_SPE_EFT an empty OR group is no reason to keep anything, and it cannot occur here.
    const bool any = (control & ~mask) == 0 || (flags & control & ~mask) != 0;
    const bool exact = (flags & mask) == (control & mask);
    return drops(!any || !exact, s.arch.eft ? "3.12" : "3.9", "the type filter does not keep operations of this type",
                 {{{"PMSFCR_EL1.FT", 1}}}, 0);
}

Decision<bool> modern_filters(const State& s, std::uint64_t events, std::uint32_t total_latency, OpType optype,
                              const SampleDetails& details) {
    Decision<bool> d{true, {"3.9", "no filter drops it"}, {}};
    const PmsfcrEl1& control = s.regs.pmsfcr_el1;
    const std::uint64_t filterable = filterable_events(s.arch);
    const std::uint64_t ones = s.regs.pmsevfr_el1.e & filterable, zeros = s.regs.pmsnevfr_el1.e & filterable;
    const bool fe = control.fe, fn_e = control.fn_e && s.arch.fn_e;
    const Fact ones_fact{"PMSEVFR_EL1.E", s.regs.pmsevfr_el1.e}, zeros_fact{"PMSNEVFR_EL1.E", s.regs.pmsnevfr_el1.e};
    const auto bad = [&](unsigned site, std::string_view field, Fact mask) {
        return unpredictable(s, Unpredictable::BADPMSFCR, site, d.consulted, "3.9", {field, 1}, mask);
    };
    const bool contradiction = fe && fn_e && (ones & zeros) != 0;

    // All filters are evaluated, since each also has a PMU event. The reported reason is the first filter that drops
    // the record.
    Rejection nevent, event, latency, source;
    if (fn_e)
        nevent = contradiction || zeros == 0
                     ? bad(0, "PMSFCR_EL1.FnE", zeros_fact)
                     : drops((events & zeros) != 0, "3.9", "an event that must be 0 is 1",
                             {zeros_fact, {"PMSFCR_EL1.FnE", 1}, {"events", events}}, zeros_fact.value & ~events);
    if (fe)
        event = contradiction || ones == 0
                    ? bad(1, "PMSFCR_EL1.FE", ones_fact)
                    : drops((ones & ~events) != 0, "3.9", "an event that must be 1 is 0",
                            {ones_fact, {"PMSFCR_EL1.FE", 1}, {"events", events}}, ones_fact.value & events);
    const Rejection type = modern_type_filter(s, optype, details, d.consulted);
    if (control.fl) {
        const std::uint16_t minlat = s.regs.pmslatfr_el1.minlat;
        latency =
            minlat == 0
                ? bad(3, "PMSFCR_EL1.FL", {"PMSLATFR_EL1.MINLAT", 0})
                : drops(total_latency < minlat, "3.9", "the operation took less than the least latency kept",
                        {{{"PMSLATFR_EL1.MINLAT", minlat}, {"PMSFCR_EL1.FL", 1}, {"total latency", total_latency}}},
                        total_latency);
    }
    if (control.fds && s.arch.fds && loads(optype) && details.data_source) {
        const std::uint64_t kept = s.regs.pmsdsfr_el1.s, bit = std::uint64_t{1} << (*details.data_source % 64);
        source = drops((kept & bit) == 0, "3.13", "loads from this data source are not kept",
                       {{{"PMSDSFR_EL1.S", kept}, {"PMSFCR_EL1.FDS", 1}, {"data source", *details.data_source}}},
                       kept | bit);
    }
    for (const Rejection& rejection : {nevent, event, type, latency, source})
        if (rejection) return {false, *rejection, d.consulted};
    return d;
}

}  // namespace

Decision<bool> passes_filters(const State& s, std::uint64_t events, std::uint32_t total_latency, OpType optype,
                              const SampleDetails& details) {
    return s.arch.revision == Revision::modern ? modern_filters(s, events, total_latency, optype, details)
                                               : first_filters(s, events, total_latency, optype);
}

Decision<bool> CollectRecord(const State& s, std::uint64_t events, std::uint32_t total_latency, OpType optype,
                             const SampleDetails& details) {
    WM_CHECK(StatisticalProfilingEnabled(s));
    return passes_filters(s, events, total_latency, optype, details);
}

}  // namespace waymark::spe
