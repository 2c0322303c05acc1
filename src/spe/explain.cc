#include "waymark/spe/explain.h"

#include <algorithm>
#include <array>
#include <utility>

#include "waymark/spe/sampling.h"

namespace waymark::spe {

namespace {

/// More remedies than this would not help; no function has this number of conditions.
constexpr unsigned most_obstacles = 12;

State at(const State& s, std::uint8_t el) {
    State out = s;
    out.regs.pstate.el = el;
    return out;
}

/// The implemented exception levels that may be sampled in the present state.
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

/// Features that fields and whole registers belong to, and whether they are implemented.
struct Option {
    std::string_view name, feature;
    bool here;
};
auto options_of(const Architecture& a) {
    const bool v1_2 = a.version >= Version::v1_2;
    return std::to_array<Option>({
        {"PMSCR_EL1.EE", "FEAT_SPE_EXC", a.exc},
        {"PMSCR_EL1.KE", "FEAT_SPE_EXC", a.exc},
        {"PMSCR_EL2.EE", "FEAT_SPE_EXC", a.exc},
        {"PMSCR_EL2.KE", "FEAT_SPE_EXC", a.exc},
        {"PMSCR_EL2.EnVM", "FEAT_SPE_nVM", a.n_vm},
        {"PMSFCR_EL1.FnE", "FEAT_SPE_FnE", a.fn_e},
        {"PMSFCR_EL1.FDS", "FEAT_SPE_FDS", a.fds},
        {"PMSFCR_EL1.FP", "FEAT_SPE_EFT", a.eft},
        {"PMSFCR_EL1.SIMD", "FEAT_SPE_EFT", a.eft},
        {"PMSFCR_EL1.Bm", "FEAT_SPE_EFT", a.eft},
        {"PMSFCR_EL1.LDm", "FEAT_SPE_EFT", a.eft},
        {"PMSFCR_EL1.STm", "FEAT_SPE_EFT", a.eft},
        {"PMSFCR_EL1.FPm", "FEAT_SPE_EFT", a.eft},
        {"PMSFCR_EL1.SIMDm", "FEAT_SPE_EFT", a.eft},
        {"PMBLIMITR_EL1.FM", "FEAT_SPEv1p2", v1_2},
        {"PMBLIMITR_EL1.PMFZ", "FEAT_SPEv1p2", v1_2},
        {"PMBLIMITR_EL1.nVM", "FEAT_SPE_nVM", a.n_vm},
        {"PMSNEVFR_EL1.E", "FEAT_SPE_FnE", a.fn_e},
        {"PMSDSFR_EL1.S", "FEAT_SPE_FDS", a.fds},
        {"PMBSR_EL2", "FEAT_SPE_EXC", a.exc},
        {"PMBSR_EL3", "FEAT_SPE_EXC", a.exc},
        {"PMBMAR_EL1", "FEAT_SPE_nVM", a.n_vm},
        {"MDCR_EL3.NSPBE", "FEAT_RME", a.rme},
        {"MDCR_EL3.EnPMSN", "FEAT_SPE_FnE", a.fn_e},
        {"MDCR_EL3.EnPMS3", "FEAT_SPE_FDS", a.fds},
        {"MDCR_EL3.PMSEE", "FEAT_SPE_EXC", a.exc},
        {"MDCR_EL3.EnPMS4", "FEAT_SPEv1p5", a.n_vm || a.version >= Version::v1_5},
        {"SCR_EL3.NSE", "FEAT_RME", a.rme},
        {"SCR_EL3.EEL2", "FEAT_SEL2", a.secure_el2},
    });
}

/// The feature that a field needs and this architecture lacks; empty if there is none.
std::string_view missing_feature(const Architecture& a, std::string_view field) {
    for (const Option& option : options_of(a))
        if (!option.here && (option.name == field || option.name == field.substr(0, field.find('.'))))
            return option.feature;
    return {};
}

/// The exception level of a register, if it is not implemented; 0 if it is.
unsigned missing_level(const Architecture& a, std::string_view register_name) {
    if (!a.el3 && register_name.ends_with("_EL3")) return EL3;
    return !a.el2 && register_name.ends_with("_EL2") ? EL2 : 0;
}

/// The level in question cannot be entered.
std::optional<RegisterFinding> not_entered(const State& s, const ExplainOptions& options) {
    if (!options.current_level_only || s.regs.pstate.el != EL1 || !EL2Enabled(s) || !s.regs.hcr_el2.tge)
        return std::nullopt;
    return RegisterFinding{Weight::stops,
                           "3.4",
                           "with TGE = 1 EL1 is never entered: exceptions to EL1 go to EL2",
                           {{"HCR_EL2.TGE", 1}, {"PSTATE.EL", EL1}},
                           0};
}

class Findings {
public:
    Findings(const State& s, const ExplainOptions& options)
        : s_(s), r_(s.regs), options_(options), first_(s.arch.revision == Revision::first) {}

    std::vector<RegisterFinding> take() {
        level();
        events();
        types();
        latency();
        data_source();
        interval();
        buffer();
        ownership();
        status();
        reserved();
        std::stable_sort(out_.begin(), out_.end(),
                         [](const RegisterFinding& a, const RegisterFinding& b) { return a.weight < b.weight; });
        return std::move(out_);
    }

    /// Only the first condition that stops samples, for callers that do not need the others.
    std::optional<RegisterFinding> first_stop() {
        level();
        types();
        latency();
        buffer();
        const auto stop =
            std::find_if(out_.begin(), out_.end(), [](const auto& f) { return f.weight == Weight::stops; });
        return stop == out_.end() ? std::nullopt : std::optional(std::move(*stop));
    }

private:
    void add(Weight weight, std::string section, std::string text, std::vector<Fact> facts,
             std::optional<std::uint64_t> remedy = std::nullopt) {
        out_.push_back({weight, std::move(section), std::move(text), std::move(facts), remedy});
    }
    [[nodiscard]] bool given(std::string_view name) const { return options_.given(name); }

    /// A filter that is enabled without any criterion.
    void empty_filter(Unpredictable choice, std::string_view enable, Fact mask) {
        const std::string which(name(first_ ? choice : Unpredictable::BADPMSFCR));
        add(Weight::may, "3.9",
            "the filter is on, but has no criterion: UNPREDICTABLE (" + which + "), it may drop every sample or none",
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
            add(Weight::note, "2.4", "events " + hex(ones & ~mask) + " cannot be filtered here and have no effect",
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

    void level() {
        if (auto finding = not_entered(s_, options_)) out_.push_back(std::move(*finding));
    }

    void latency() {
        const std::uint16_t minlat = r_.pmslatfr_el1.minlat;
        if (!r_.pmsfcr_el1.fl) {
            if (minlat != 0) idle("PMSFCR_EL1.FL", {{"PMSLATFR_EL1.MINLAT", minlat}});
            return;
        }
        if (minlat == 0)
            return empty_filter(Unpredictable::ZEROMINLATENCY, "PMSFCR_EL1.FL", {"PMSLATFR_EL1.MINLAT", 0});
        // Memory answers within some hundreds of cycles; longer latencies are rare.
        constexpr std::uint16_t rare = 1024, sensible = 256;
        const std::uint8_t size = given(PmsidrEl1::name) ? r_.pmsidr_el1.count_size : 0;
        const std::vector<Fact> facts{{"PMSLATFR_EL1.MINLAT", minlat}, {"PMSIDR_EL1.CountSize", size}};
        if (minlat > 0xfff && size == 2)
            add(Weight::stops, "2.4",
                "counters saturate at 0xfff, so no operation reaches the minimum latency of the filter", facts,
                sensible);
        else if (minlat > 0xfff && size != 3)
            add(Weight::may, "2.4",
                "no operation reaches the minimum latency of the filter if counters have 12 bits; PMSIDR_EL1.CountSize "
                "would show whether they have",
                {facts[0]}, sensible);
        else if (minlat >= rare)
            add(Weight::note, "2.4",
                "almost no operation takes " + std::to_string(minlat) + " cycles: few samples, or none", {facts[0]},
                sensible);
    }

    void data_source() {
        if (!s_.arch.fds) return;
        if (r_.pmsfcr_el1.fds && r_.pmsdsfr_el1.s == 0)
            add(Weight::may, "3.13", "every load that has a data source is dropped",
                {{"PMSDSFR_EL1.S", 0}, {"PMSFCR_EL1.FDS", 1}}, ~std::uint64_t{0});
        if (!r_.pmsfcr_el1.fds && r_.pmsdsfr_el1.s != 0) idle("PMSFCR_EL1.FDS", {{"PMSDSFR_EL1.S", r_.pmsdsfr_el1.s}});
    }

    void interval() {
        if (!given("PMSIRR_EL1.INTERVAL")) return;
        constexpr std::uint16_t recommended[] = {256, 0, 512, 768, 1024, 1536, 2048, 3072, 4096};
        const std::uint8_t code = r_.pmsidr_el1.interval;
        const bool known = given(PmsidrEl1::name);
        // Reserved codes are taken as the longest interval (2.6).
        const std::uint32_t least = !known                                                    ? 256
                                    : code < std::size(recommended) && recommended[code] != 0 ? recommended[code]
                                                                                              : 4096;
        const std::uint32_t interval = r_.pmsirr_el1.interval, usual = std::max(least, 1024U);
        if (interval == 0)
            return add(Weight::may, "1.2",
                       "with an interval of 0 it is UNKNOWN how often samples are taken, or whether they are; " +
                           std::to_string(usual / 256) + " is one in " + std::to_string(usual) + " operations",
                       {{"PMSIRR_EL1.INTERVAL", 0}}, usual / 256);
        if (known && std::uint64_t{interval} * 256 < least)
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
        if (limit.n_vm && s_.arch.n_vm && given(PmblimitrEl1::name))
            add(Weight::note, "2.7", "the buffer's addresses are physical", {{"PMBLIMITR_EL1.nVM", 1}});
        const unsigned align = given(PmbidrEl1::name) ? r_.pmbidr_el1.align : 0;
        const std::uint64_t unaligned = ~(~std::uint64_t{0} << align);
        if (given("PMBLIMITR_EL1.LIMIT")) room(unaligned);
        if (given(PmbptrEl1::name) && (r_.pmbptr_el1.ptr & unaligned) != 0)
            add(Weight::may, "1.6", "the write pointer is not a multiple of " + std::to_string(1U << align),
                {{"PMBPTR_EL1.PTR", r_.pmbptr_el1.ptr}, {"PMBIDR_EL1.Align", align}}, r_.pmbptr_el1.ptr & ~unaligned);
    }

    /// Whether a record fits below the limit.
    void room(std::uint64_t unaligned) {
        Registers r = r_;
        // The permitted minimum, if the register is not given (2.6).
        if (!given(PmsidrEl1::name) || r.pmsidr_el1.max_size < 4) r.pmsidr_el1.max_size = 6;
        const bool pointer = given(PmbptrEl1::name);
        if (!pointer) r.pmbptr_el1.ptr = 0;
        if (!buffer_full(r)) return;
        const std::uint64_t end = r.pmblimitr_el1.limit << 12, record = std::uint64_t{1} << r.pmsidr_el1.max_size;
        const std::uint64_t ptr = r.pmbptr_el1.ptr;
        const Fact limit_fact{"PMBLIMITR_EL1.LIMIT", r.pmblimitr_el1.limit}, pointer_fact{"PMBPTR_EL1.PTR", ptr};
        const std::string size = std::to_string(record) + " bytes below the limit, " + hex(end);
        if (end < record) {
            // No pointer helps: the limit has to be raised so that a record fits after the pointer.
            const std::uint64_t needed = ptr + record + 0xfff;
            std::vector<Fact> facts{limit_fact};
            if (pointer) facts.push_back(pointer_fact);
            return add(Weight::stops, "1.6", "there is no room for a record of " + size, std::move(facts),
                       needed > ptr ? std::optional(needed >> 12) : std::nullopt);
        }
        const std::string text = ptr >= end ? "the write pointer is not below the limit, " + hex(end) +
                                                  ": the buffer is full before the first record"
                                            : "there is no room for a record of " + size;
        add(Weight::stops, "1.6",
            text + "; the pointer belongs at the buffer's start, or at most where one record still fits",
            {pointer_fact, limit_fact}, (end - record) & ~unaligned);
    }

    void ownership() {
        if (s_.arch.el2 && r_.mdcr_el2.e2pb == 0b01)
            add(Weight::note, "2.8", "a reserved value; the functions treat it as 'EL1 owns the buffer'",
                {{"MDCR_EL2.E2PB", 0b01}}, 0b11);
        if (given(PmbidrEl1::name) && r_.pmbidr_el1.p)
            add(Weight::note, "2.7", "as it was read, the exception level that read it may not program the buffer",
                {{"PMBIDR_EL1.P", 1}});
        if (r_.pmbsr_el1.coll)
            add(Weight::note, "1.3", "samples were dropped because a previous one was still in flight",
                {{"PMBSR_EL1.COLL", 1}}, 0);
        if (r_.pmbsr_el1.s && r_.pmbsr_el1.dl)
            add(Weight::note, "1.6", "the last record in the buffer is not whole", {{"PMBSR_EL1.DL", 1}});
        if (r_.pmbsr_el1.s)
            add(Weight::note, "2.7", "what stopped profiling: " + event(r_.pmbsr_el1),
                {{"PMBSR_EL1.EC", r_.pmbsr_el1.ec}, {"PMBSR_EL1.MSS", r_.pmbsr_el1.mss}});
        if (r_.hcr_el2.e2h && s_.arch.el2 && given(PmscrEl1::name) && !given(PmscrEl2::name))
            add(Weight::note, "3.1",
                "a kernel at EL2 reads and writes PMSCR_EL2 by the name PMSCR_EL1; if such a kernel reported this "
                "value, "
                "it is "
                "PMSCR_EL2's",
                {{"HCR_EL2.E2H", 1}});
    }

    /// Reports management events of EL2 and EL3 that no software handles.
    void status() {
        if (!s_.arch.exc) return;
        constexpr std::string_view text = "it stops nothing, because its exceptions are off";
        if (s_.arch.el2 && r_.pmbsr_el2.s && (r_.pmscr_el2.ee & 0b10) == 0)
            add(Weight::note, "3.3", std::string(text), {{"PMBSR_EL2.S", 1}, {"PMSCR_EL2.EE", r_.pmscr_el2.ee}});
        if (s_.arch.el3 && r_.pmbsr_el3.s && (r_.mdcr_el3.pmsee & 0b10) == 0)
            add(Weight::note, "3.3", std::string(text), {{"PMBSR_EL3.S", 1}, {"MDCR_EL3.PMSEE", r_.mdcr_el3.pmsee}});
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
            if (const unsigned el = missing_level(s_.arch, r.name); el != 0)
                return add(
                    Weight::note, std::string(r.section),
                    std::string(r.name) + " has no effect, because EL" + std::to_string(el) + " is not implemented",
                    {});
            for (const Field& field : without_meaning(s_, r.name)) {
                const std::string name = std::string(r.name) + "." + std::string(field.name);
                add(Weight::note, std::string(r.section),
                    std::string(r.name) + " has " + hex(field.value << field.lo) + " in " + std::string(field.name) +
                        (field.reserved() ? ", which should be 0"
                                          : ", but " + std::string(missing_feature(s_.arch, name)) +
                                                " is not implemented, so it has no effect"),
                    {});
            }
        });
    }

    const State& s_;
    const Registers& r_;
    const ExplainOptions& options_;
    const bool first_;
    std::vector<RegisterFinding> out_;
};

RegisterFinding finding_of(const Why& why) {
    RegisterFinding out{Weight::stops, std::string(why.row), std::string(why.text), {}, why.remedy};
    for (const Fact& fact : why.facts)
        if (!fact.name.empty()) out.facts.push_back(fact);
    return out;
}

/// The first condition that is not satisfied.
std::optional<RegisterFinding> obstacle(const State& s, const ExplainOptions& options) {
    if (auto finding = not_entered(s, options)) return finding;
    if (const auto decision = StatisticalProfilingEnabled(s); !decision) return finding_of(decision.why);
    return Findings(s, options).first_stop();
}

std::vector<RegisterFinding> obstacles(State s, const ExplainOptions& options) {
    std::vector<RegisterFinding> out;
    while (out.size() < most_obstacles) {
        auto next = obstacle(s, options);
        if (!next) break;
        out.push_back(std::move(*next));
        const RegisterFinding& last = out.back();
        if (!last.remedy || !s.regs.set_field(last.facts[0].name, *last.remedy)) break;
    }
    return out;
}

/// Registers that EL3 can trap individually, if its setting is given.
std::vector<OwnAccess> own_accesses(const State& s, const ExplainOptions& options) {
    struct Own {
        std::string_view name, enable;
        bool here;
    };
    const Own own[] = {{PmsnevfrEl1::name, "MDCR_EL3.EnPMSN", s.arch.fn_e},
                       {PmsdsfrEl1::name, "MDCR_EL3.EnPMS3", s.arch.fds},
                       {PmbmarEl1::name, "MDCR_EL3.EnPMS4", s.arch.n_vm}};
    std::vector<OwnAccess> out;
    for (const Own& o : own) {
        if (!o.here || !options.given(o.enable)) continue;
        const auto access = check_register_access(s, o.name);
        const auto group =
            o.name.starts_with("PMB") ? CheckProfilingBufferAccess(s) : CheckStatisticalProfilingAccess(s);
        if (access.value != group.value) out.push_back({o.name, access});
    }
    return out;
}

/// Reports registers without a given value that would matter if there are samples.
void not_given(const State& s, const ExplainOptions& options, std::vector<RegisterFinding>& out) {
    const auto note = [&](std::string_view section, std::string text) {
        out.push_back({Weight::note, std::string(section), std::move(text), {}, {}});
    };
    if (!options.given("PMSIRR_EL1.INTERVAL"))
        note("1.2", "PMSIRR_EL1 is not given, so the interval is not judged: with 0 it would be UNKNOWN");
    if (s.regs.pmblimitr_el1.fm == 0b10 && s.arch.version >= Version::v1_2) return;
    const bool limit = options.given("PMBLIMITR_EL1.LIMIT"), pointer = options.given("PMBPTR_EL1.PTR");
    if (limit && pointer) return;
    note("1.6", std::string(limit     ? "PMBPTR_EL1 is"
                            : pointer ? "PMBLIMITR_EL1.LIMIT is"
                                      : "PMBPTR_EL1 and PMBLIMITR_EL1.LIMIT are") +
                    " not given, so whether a record fits into the buffer is not judged");
}

}  // namespace

bool Explanation::samples() const {
    return std::any_of(levels.begin(), levels.end(), [](const Level& level) { return level.samples(); });
}

std::vector<Field> without_meaning(const State& s, std::string_view register_name) {
    std::vector<Field> out;
    for (const Field& field : s.regs.fields(register_name)) {
        if (field.value == 0) continue;
        const std::string name = std::string(register_name) + "." + std::string(field.name);
        if (field.reserved() || !missing_feature(s.arch, name).empty()) out.push_back(field);
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
        out.levels.push_back({el, StatisticalProfilingEnabled(there), obstacles(there, options),
                              CheckProfilingBufferAccess(there), CheckStatisticalProfilingAccess(there),
                              own_accesses(there, options), CollectContextIDR1(there), CollectContextIDR2(there),
                              CollectPhysicalAddress(there), CollectTimeStamp(there)});
    }
    out.findings = Findings(s, options).take();
    if (out.samples()) not_given(s, options, out.findings);
    return out;
}

}  // namespace waymark::spe
