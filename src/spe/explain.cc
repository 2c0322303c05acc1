#include "waymark/spe/explain.h"

#include <algorithm>
#include <utility>

#include "waymark/spe/sampling.h"

namespace waymark::spe {

namespace {

/// More remedies than this would be no help; none of the functions has so many conditions.
constexpr unsigned most_obstacles = 12;

State at(const State& s, std::uint8_t el) {
    State out = s;
    out.regs.pstate.el = el;
    return out;
}

std::vector<Why> obstacles(State s) {
    std::vector<Why> out;
    while (out.size() < most_obstacles) {
        const auto decision = StatisticalProfilingEnabled(s);
        if (decision) break;
        out.push_back(decision.why);
        if (!decision.why.remedy || !s.regs.set_field(decision.why.facts[0].name, *decision.why.remedy)) break;
    }
    return out;
}

/// The exception levels that exist here and now and may be sampled.
std::vector<std::uint8_t> levels(const State& s) {
    const State below = at(s, EL0);
    std::vector<std::uint8_t> out{EL0};
    if (!EL2Enabled(below) || !s.regs.hcr_el2.tge) out.push_back(EL1);
    if (EL2Enabled(below)) out.push_back(EL2);
    return out;
}

std::string hex(std::uint64_t value) {
    std::string out;
    wire::append_number(out, value);
    return out;
}

class Findings {
public:
    Findings(const State& s, const ExplainOptions& options)
        : s_(s), r_(s.regs), options_(options), first_(s.arch.revision == Revision::first) {}

    std::vector<Finding> take() {
        events();
        types();
        latency();
        data_source();
        interval();
        buffer();
        ownership();
        reserved();
        std::stable_sort(out_.begin(), out_.end(),
                         [](const Finding& a, const Finding& b) { return a.weight < b.weight; });
        return std::move(out_);
    }

private:
    void add(Weight weight, std::string section, std::string text, std::vector<Fact> facts,
             std::optional<std::uint64_t> remedy = std::nullopt) {
        out_.push_back({weight, std::move(section), std::move(text), std::move(facts), remedy});
    }
    [[nodiscard]] bool given(std::string_view name) const { return options_.given(name); }

    /// A filter that is on with nothing to go by.
    void empty_filter(Unpredictable choice, std::string_view enable, Fact mask) {
        const std::string which(name(first_ ? choice : Unpredictable::BADPMSFCR));
        add(Weight::may, "3.9",
            "the filter is on with nothing to go by: UNPREDICTABLE (" + which + "), it may drop every sample or none",
            {{enable, 1}, mask}, 0);
    }
    void idle(std::string_view enable, std::vector<Fact> masks) {
        masks.insert(masks.begin(), {enable, 0});
        add(Weight::note, "2.3", "the filter is set up but not on: it drops nothing", std::move(masks), 1);
    }

    void events() {
        const PmsfcrEl1& c = r_.pmsfcr_el1;
        const std::uint64_t mask = filterable_events(s_.arch), ones = r_.pmsevfr_el1.e, zeros = r_.pmsnevfr_el1.e;
        const bool fn_e = c.fn_e && s_.arch.fn_e;
        if (c.fe && (first_ ? ones : ones & mask) == 0)
            empty_filter(Unpredictable::ZEROPMSEVFR, "PMSFCR_EL1.FE", {"PMSEVFR_EL1.E", ones});
        else if (c.fe && (ones & ~mask) != 0)
            add(Weight::note, "2.4", "events " + hex(ones & ~mask) + " cannot be filtered here and count for nothing",
                {{"PMSEVFR_EL1.E", ones}}, ones & mask);
        if (!c.fe && ones != 0) idle("PMSFCR_EL1.FE", {{"PMSEVFR_EL1.E", ones}});
        if (fn_e && (zeros & mask) == 0)
            empty_filter(Unpredictable::BADPMSFCR, "PMSFCR_EL1.FnE", {"PMSNEVFR_EL1.E", zeros});
        if (!c.fn_e && s_.arch.fn_e && zeros != 0) idle("PMSFCR_EL1.FnE", {{"PMSNEVFR_EL1.E", zeros}});
        if (c.fe && fn_e && (ones & zeros & mask) != 0)
            add(Weight::may, "3.9",
                "events " + hex(ones & zeros & mask) +
                    " must be both 1 and 0: UNPREDICTABLE (BADPMSFCR), either filter may drop every sample or none",
                {{"PMSNEVFR_EL1.E", zeros}, {"PMSEVFR_EL1.E", ones}}, zeros & ~ones);
    }

    void types() {
        const PmsfcrEl1& c = r_.pmsfcr_el1;
        const bool none = !c.b && !c.ld && !c.st;
        if (c.ft && !s_.arch.eft && none) {
            const std::vector<Fact> facts{{"PMSFCR_EL1.FT", 1}, {"PMSFCR_EL1.LD", 0}, {"PMSFCR_EL1.ST", 0}};
            if (first_)
                add(Weight::stops, "3.9 T2",
                    "the type filter is on and keeps neither branches nor loads nor stores (B too is 0)", facts, 0);
            else
                empty_filter(Unpredictable::NOOPTYPES, "PMSFCR_EL1.FT", {"PMSFCR_EL1.B", 0});
        }
        if (!c.ft && !none)
            idle("PMSFCR_EL1.FT", {{"PMSFCR_EL1.B", c.b}, {"PMSFCR_EL1.LD", c.ld}, {"PMSFCR_EL1.ST", c.st}});
    }

    void latency() {
        const std::uint16_t minlat = r_.pmslatfr_el1.minlat;
        if (!r_.pmsfcr_el1.fl) {
            if (minlat != 0) idle("PMSFCR_EL1.FL", {{"PMSLATFR_EL1.MINLAT", minlat}});
            return;
        }
        if (minlat == 0)
            empty_filter(Unpredictable::ZEROMINLATENCY, "PMSFCR_EL1.FL", {"PMSLATFR_EL1.MINLAT", 0});
        else if (minlat > 0xfff && given(PmsidrEl1::name) && r_.pmsidr_el1.count_size == 2)
            add(Weight::stops, "2.4", "counters saturate at 0xfff, so no operation reaches the least latency kept",
                {{"PMSLATFR_EL1.MINLAT", minlat}, {"PMSIDR_EL1.CountSize", 2}}, 0xfff);
    }

    void data_source() {
        if (!s_.arch.fds) return;
        if (r_.pmsfcr_el1.fds && r_.pmsdsfr_el1.s == 0)
            add(Weight::may, "3.13", "every load that has a data source is dropped",
                {{"PMSDSFR_EL1.S", 0}, {"PMSFCR_EL1.FDS", 1}}, ~std::uint64_t{0});
        if (!r_.pmsfcr_el1.fds && r_.pmsdsfr_el1.s != 0) idle("PMSFCR_EL1.FDS", {{"PMSDSFR_EL1.S", r_.pmsdsfr_el1.s}});
    }

    void interval() {
        if (!given(PmsirrEl1::name)) return;
        const std::uint32_t interval = r_.pmsirr_el1.interval;
        if (interval == 0)
            return add(Weight::may, "1.2", "with an interval of 0 it is UNKNOWN how often samples are taken, if at all",
                       {{"PMSIRR_EL1.INTERVAL", 0}}, 1);
        if (!given(PmsidrEl1::name)) return;
        constexpr std::uint16_t recommended[] = {256, 0, 512, 768, 1024, 1536, 2048, 3072, 4096};
        const std::uint8_t code = r_.pmsidr_el1.interval;
        const std::uint32_t least = code < std::size(recommended) ? recommended[code] : 4096;
        if (std::uint64_t{interval} * 256 < least)
            add(Weight::note, "1.2",
                "the interval, " + std::to_string(interval * 256) + ", is below the least recommended, " +
                    std::to_string(least) + ": samples will collide and be lost",
                {{"PMSIRR_EL1.INTERVAL", interval}, {"PMSIDR_EL1.Interval", code}}, least / 256);
    }

    void buffer() {
        const PmblimitrEl1& limit = r_.pmblimitr_el1;
        const bool v1_2 = s_.arch.version >= Version::v1_2;
        if (limit.fm == 0b10 && v1_2)
            return add(Weight::stops, "1.6", "discard mode: everything runs, but nothing is written",
                       {{"PMBLIMITR_EL1.FM", limit.fm}}, 0);
        if (limit.fm != 0 && given(PmblimitrEl1::name))
            add(Weight::may, "2.7", "a reserved fill mode", {{"PMBLIMITR_EL1.FM", limit.fm}}, 0);
        if (!given(PmblimitrEl1::name) || !given(PmbptrEl1::name)) return;
        if (limit.n_vm && s_.arch.n_vm)
            add(Weight::note, "2.7", "the buffer's addresses are physical", {{"PMBLIMITR_EL1.nVM", 1}});
        Registers r = r_;
        if (!given(PmsidrEl1::name)) r.pmsidr_el1.max_size = 6;  // the least that is permitted
        const std::uint64_t end = limit.limit << 12, record = std::uint64_t{1} << r.pmsidr_el1.max_size;
        if (buffer_full(r))
            add(Weight::stops, "1.6",
                r_.pmbptr_el1.ptr >= end ? "the write pointer is not below the limit, " + hex(end) +
                                               ": the buffer is full before the first record"
                                         : "there is no room for a record of " + std::to_string(record) +
                                               " bytes below the limit, " + hex(end),
                {{"PMBPTR_EL1.PTR", r_.pmbptr_el1.ptr}, {"PMBLIMITR_EL1.LIMIT", limit.limit}});
        if (!given(PmbidrEl1::name)) return;
        const unsigned align = r_.pmbidr_el1.align;
        const std::uint64_t low = r_.pmbptr_el1.ptr & ~(~std::uint64_t{0} << align);
        if (low != 0)
            add(Weight::may, "1.6", "the write pointer is not a multiple of " + std::to_string(1U << align),
                {{"PMBPTR_EL1.PTR", r_.pmbptr_el1.ptr}, {"PMBIDR_EL1.Align", align}}, r_.pmbptr_el1.ptr - low);
    }

    void ownership() {
        if (s_.arch.el2 && r_.mdcr_el2.e2pb == 0b01)
            add(Weight::note, "2.8", "a reserved value; the functions take it for 'EL1 owns the buffer'",
                {{"MDCR_EL2.E2PB", 0b01}}, 0b11);
        if (given(PmbidrEl1::name) && r_.pmbidr_el1.p)
            add(Weight::note, "2.7", "as read, the exception level that read it may not program the buffer",
                {{"PMBIDR_EL1.P", 1}});
        if (r_.pmbsr_el1.coll)
            add(Weight::note, "1.3", "samples were dropped since one was still in flight", {{"PMBSR_EL1.COLL", 1}}, 0);
        if (r_.pmbsr_el1.s && r_.pmbsr_el1.dl)
            add(Weight::note, "1.6", "the last record in the buffer is not whole", {{"PMBSR_EL1.DL", 1}});
        if (r_.pmbsr_el1.s)
            add(Weight::note, "2.7", "what stopped profiling: " + event(r_.pmbsr_el1),
                {{"PMBSR_EL1.EC", r_.pmbsr_el1.ec}, {"PMBSR_EL1.MSS", r_.pmbsr_el1.mss}});
        if (r_.hcr_el2.e2h && s_.arch.el2 && given(PmscrEl1::name) && !given(PmscrEl2::name))
            add(Weight::note, "3.1",
                "a kernel at EL2 reads and writes PMSCR_EL2 by the name PMSCR_EL1; if such a kernel told this value, "
                "it is "
                "PMSCR_EL2's",
                {{"HCR_EL2.E2H", 1}});
    }

    static std::string event(const PmbsrFields& status) {
        switch (status.ec) {
            case 0x00:
                return (status.mss & 0x3f) == 1   ? "the buffer was filled"
                       : (status.mss & 0x3f) == 4 ? "a buffer of that size is not possible"
                       : status.ea                ? "an external abort"
                                                  : "no reason is given";
            case 0x1e: return "a granule protection check failed on a write to the buffer";
            case 0x1f: return "an IMPLEMENTATION DEFINED event";
            case 0x24: return "a write to the buffer faulted in stage 1, fault status " + hex(status.mss & 0x3f);
            case 0x25: return "a write to the buffer faulted in stage 2, fault status " + hex(status.mss & 0x3f);
            default: return "a reserved event class";
        }
    }

    void reserved() {
        Registers::for_each(r_, [&](const auto& r) {
            if (!given(r.name)) return;
            for (const Field& field : without_meaning(s_, r.name))
                add(Weight::note, std::string(r.section),
                    std::string(r.name) + " has " + hex(field.value << field.lo) + " in " + std::string(field.name) +
                        (field.reserved() ? ", which should be 0" : ", but the feature is not implemented"),
                    {});
        });
    }

    const State& s_;
    const Registers& r_;
    const ExplainOptions& options_;
    const bool first_;
    std::vector<Finding> out_;
};

}  // namespace

bool Explanation::samples() const {
    return std::any_of(levels.begin(), levels.end(), [](const Level& level) { return level.sampled.value; }) &&
           std::none_of(findings.begin(), findings.end(), [](const Finding& f) { return f.weight == Weight::stops; });
}

std::vector<Field> without_meaning(const State& s, std::string_view register_name) {
    struct Option {
        std::string_view field;
        bool here;
    };
    const Architecture& a = s.arch;
    const bool v1_2 = a.version >= Version::v1_2;
    const Option options[] = {
        {"PMSCR_EL1.EE", a.exc},      {"PMSCR_EL1.KE", a.exc},       {"PMSCR_EL2.EE", a.exc},
        {"PMSCR_EL2.KE", a.exc},      {"PMSCR_EL2.EnVM", a.n_vm},    {"PMSFCR_EL1.FnE", a.fn_e},
        {"PMSFCR_EL1.FDS", a.fds},    {"PMSFCR_EL1.FP", a.eft},      {"PMSFCR_EL1.SIMD", a.eft},
        {"PMSFCR_EL1.Bm", a.eft},     {"PMSFCR_EL1.LDm", a.eft},     {"PMSFCR_EL1.STm", a.eft},
        {"PMSFCR_EL1.FPm", a.eft},    {"PMSFCR_EL1.SIMDm", a.eft},   {"PMBLIMITR_EL1.FM", v1_2},
        {"PMBLIMITR_EL1.PMFZ", v1_2}, {"PMBLIMITR_EL1.nVM", a.n_vm}, {"PMSNEVFR_EL1.E", a.fn_e},
        {"PMSDSFR_EL1.S", a.fds},
    };
    std::vector<Field> out;
    for (const Field& field : s.regs.fields(register_name)) {
        if (field.value == 0) continue;
        const std::string name = std::string(register_name) + "." + std::string(field.name);
        const auto option =
            std::find_if(std::begin(options), std::end(options), [&](const Option& o) { return o.field == name; });
        if (field.reserved() || (option != std::end(options) && !option->here)) out.push_back(field);
    }
    return out;
}

Explanation explain(const State& s, const ExplainOptions& options) {
    Explanation out;
    out.owner = ProfilingBufferOwner(s);
    out.buffer = ProfilingBufferEnabled(s);
    const std::vector<std::uint8_t> els =
        options.current_level_only ? std::vector<std::uint8_t>{s.regs.pstate.el} : levels(s);
    for (const std::uint8_t el : els) {
        const State there = at(s, el);
        out.levels.push_back({el, StatisticalProfilingEnabled(there), obstacles(there),
                              CheckProfilingBufferAccess(there), CheckStatisticalProfilingAccess(there),
                              CollectContextIDR1(there), CollectContextIDR2(there), CollectPhysicalAddress(there),
                              CollectTimeStamp(there)});
    }
    out.findings = Findings(s, options).take();
    return out;
}

}  // namespace waymark::spe
