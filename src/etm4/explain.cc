#include "waymark/etm4/explain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "waymark/etm4/access.h"
#include "waymark/flow/flow.h"
#include "waymark/protocol/constant.h"
#include "waymark/protocol/explanation_builder.h"

namespace waymark::etm4 {

namespace {

using protocol::both, protocol::Constant, protocol::either, protocol::inverted;
using protocol::Given, protocol::TraceCondition, protocol::TraceContent, protocol::UnitExplanation,
    protocol::TraceEffect;

constexpr bool bit(std::uint64_t bits, unsigned n) { return (bits >> n & 1U) != 0; }

/// If the ID registers of a unit are not known, it is assumed to have every feature.
Registers completed(Registers r, const Given& given) {
    if (!given(Trcidr0::name)) {
        r.idr0.retstack = r.idr0.trccci = r.idr0.trcbb = r.idr0.trccond = r.idr0.qfilt = r.idr0.ite = true;
        r.idr0.tssize = 8, r.idr0.qsupp = 3, r.idr0.numevent = 3, r.idr0.instp0 = 3, r.idr0.trcdata = 3;
    }
    if (!given(Trcidr2::name)) r.idr2.cidsize = r.idr2.vmidsize = 4;
    if (!given(Trcidr3::name)) r.idr3.exlevel_s = 0b1011, r.idr3.exlevel_ns = 0b111;
    if (!given(Trcidr4::name)) {
        r.idr4.numacpairs = r.idr4.numsscc = r.idr4.numcidc = r.idr4.numvmidc = 8;
        r.idr4.numrspair = 15;
    }
    if (!given(Trcidr5::name)) {
        r.idr5.numextinsel = r.idr5.numcntr = r.idr5.numseqstate = 4;
        r.idr5.traceidsize = 7;
    }
    return r;
}

/// An exception level in a security state, or a mode of a core of profile M.
struct LevelOf {
    flow::Security security{};
    unsigned el = 0;
    std::string name{};
};

std::vector<LevelOf> levels_of(const Registers& r, CoreProfile profile) {
    using flow::Security;
    if (profile == CoreProfile::m) return {{Security::secure, 0, "Thread mode"}, {Security::secure, 3, "Handler mode"}};
    std::vector<LevelOf> out;
    const auto add = [&](unsigned mask, Security security, std::string_view state) {
        for (unsigned el = 0; el < 4; ++el)
            if (bit(mask, el))
                out.push_back({security, el, el == 3 ? std::string("EL3") : fmt::format("EL{}, {}", el, state)});
    };
    add(r.idr3.exlevel_ns, Security::non_secure, "Non-secure");
    add(r.idr3.exlevel_s, Security::secure, "Secure");
    if (r.devarch.archver == 5) add(r.idr6.exlevel_rl, Security::realm, "Realm");
    return out;
}

/// Possible values of resources, selectors and events (2.5 to 2.11), at one level or at any level.
class PossibleResources {
public:
    /// `asked`: whether a register was given; it records the registers that were not.
    PossibleResources(const Registers& r, const Given& asked)
        : r_(r),
          asked_(asked),
          comparators_(std::min(2U * r.idr4.numacpairs, 16U)),
          selectors_(r.idr4.numrspair == 0 ? 0 : std::min(2U * (r.idr4.numrspair + 1U), 32U)) {}

    [[nodiscard]] unsigned comparators() const { return comparators_; }
    [[nodiscard]] unsigned selectors() const { return selectors_; }

    /// Whether comparator `n` can match at this level; for a null `level`, at any level.
    [[nodiscard]] Constant applies(unsigned n, const LevelOf* level) const {
        if (n >= comparators_) return protocol::never;
        if (!asked_(fmt::format("TRCACATR{}", n))) return protocol::varies;
        const Trcacatr& a = r_.acatr[n];
        if (a.type != 0) return protocol::never;
        if (level != nullptr && excluded(a.exlevel_s, a.exlevel_ns, a.high, *level)) return protocol::never;
        const bool all_levels = a.exlevel_s == 0 && a.exlevel_ns == 0 && a.high == 0;
        Constant out = level != nullptr || all_levels ? protocol::always : protocol::varies;
        if ((a.contexttype & 1U) != 0)
            out = both(out, identifier(a.context, r_.idr4.numcidc, r_.cidcctlr, Trccidcctlr::name));
        if ((a.contexttype & 2U) != 0)
            out = both(out, identifier(a.context, r_.idr4.numvmidc, r_.vmidcctlr, Trcvmidcctlr::name));
        return out;
    }
    /// Whether range `n` matches instructions at this level.
    [[nodiscard]] Constant range(unsigned n, const LevelOf* level) const {
        if (2 * n >= comparators_) return protocol::never;
        for (const unsigned end : {2 * n, 2 * n + 1})
            if (!asked_(fmt::format("TRCACVR{}", end))) return protocol::varies;
        const std::uint64_t low = r_.acvr[2 * n].address, high = r_.acvr[2 * n + 1].address;
        if (low > high) return protocol::never;
        return both(applies(2 * n, level), low == 0 && high == ~std::uint64_t{0} ? protocol::always : protocol::varies);
    }
    [[nodiscard]] Constant event(bool pair, unsigned sel, const LevelOf* level) const {
        if (!pair) return selector(sel, level);
        const unsigned a = 2 * (sel & 0xfU);
        if (a == 0 || a + 1 >= selectors_) return protocol::never;
        if (!asked_(fmt::format("TRCRSCTLR{}", a))) return protocol::varies;
        return inverted(both(selector(a, level), selector(a + 1, level)), r_.rsctlr[a - 2].pairinv);
    }

    [[nodiscard]] std::string range_words(unsigned n) const {
        if (!asked_(fmt::format("TRCACVR{}", 2 * n)) || !asked_(fmt::format("TRCACVR{}", 2 * n + 1)))
            return fmt::format("range {}, of which TRCACVR{} and TRCACVR{} were not both given", n, 2 * n, 2 * n + 1);
        return fmt::format("{:#x} to {:#x}{}", r_.acvr[2 * n].address, r_.acvr[2 * n + 1].address,
                           condition_words(2 * n));
    }
    [[nodiscard]] std::string address_words(unsigned n) const {
        if (!asked_(fmt::format("TRCACVR{}", n))) return fmt::format("TRCACVR{}, which is not given", n);
        return fmt::format("{:#x}{}", r_.acvr[n].address, condition_words(n));
    }
    [[nodiscard]] std::string event_words(bool pair, unsigned sel) const {
        if (!pair) return selector_words(sel);
        const unsigned a = 2 * (sel & 0xfU);
        if (a == 0 || a + 1 >= selectors_) return fmt::format("selector pair {}, which the unit does not have", sel);
        const std::string words = fmt::format("{} and {}", selector_words(a), selector_words(a + 1));
        return r_.rsctlr[a - 2].pairinv ? fmt::format("not ({})", words) : words;
    }

    /// Whether masks of exception levels exclude a level.
    [[nodiscard]] static bool excluded(std::uint8_t secure, std::uint8_t non_secure, std::uint8_t realm,
                                       const LevelOf& level) {
        switch (level.security) {
            case flow::Security::realm: return bit(realm, level.el) != bit(non_secure, level.el);
            case flow::Security::non_secure: return bit(non_secure, level.el);
            default: return bit(secure, level.el);
        }
    }

private:
    /// An identifier comparator that compares no byte always matches.
    [[nodiscard]] Constant identifier(unsigned n, unsigned count, const auto& controls, std::string_view name) const {
        if (n >= std::min(count, 8U)) return protocol::never;
        if (!asked_(fmt::format("{}{}", name, n / 4))) return protocol::varies;
        const auto& c = controls[n / 4];
        const std::array masks{c.comp0, c.comp1, c.comp2, c.comp3};
        return (masks[n % 4] & 0xfU) == 0xf ? protocol::always : protocol::varies;
    }
    [[nodiscard]] Constant resource(unsigned group, unsigned n, const LevelOf* level) const {
        switch (group) {
            case 0: return n < std::min<unsigned>(r_.idr5.numextinsel, 4) ? protocol::varies : protocol::never;
            case 1: return n < r_.idr4.numpc ? protocol::varies : protocol::never;
            case 2:
                if (n < 4) return n < r_.idr5.numcntr ? protocol::varies : protocol::never;
                return n < 8 ? sequencer(n - 4) : protocol::never;
            case 3: return n < std::min<unsigned>(r_.idr4.numsscc, 8) ? protocol::varies : protocol::never;
            case 4: return n < comparators_ ? both(applies(n, level), protocol::varies) : protocol::never;
            case 5: return n < 8 ? range(n, level) : protocol::never;
            case 6: return n < 8 ? identifier(n, r_.idr4.numcidc, r_.cidcctlr, Trccidcctlr::name) : protocol::never;
            case 7: return n < 8 ? identifier(n, r_.idr4.numvmidc, r_.vmidcctlr, Trcvmidcctlr::name) : protocol::never;
            default: return protocol::never;
        }
    }
    /// Without a sequencer the state is fixed by TRCSEQSTR; with one it may change.
    [[nodiscard]] Constant sequencer(unsigned state) const {
        if (r_.idr5.numseqstate == 4 || !asked_(Trcseqstr::name)) return protocol::varies;
        return r_.seqstr.state == state ? protocol::always : protocol::never;
    }
    [[nodiscard]] Constant selector(unsigned n, const LevelOf* level) const {
        if (n < 2) return n == 1;
        if (n >= selectors_) return protocol::never;
        if (!asked_(fmt::format("TRCRSCTLR{}", n))) return protocol::varies;
        const Trcrsctlr& s = r_.rsctlr[n - 2];
        Constant out = protocol::never;
        for (unsigned i = 0; i < 16; ++i)
            if (bit(s.select, i)) out = either(out, resource(s.group, i, level));
        return inverted(out, s.inv);
    }

    [[nodiscard]] std::string selector_words(unsigned n) const {
        if (n == 0) return "selector 0, which is never true";
        if (n == 1) return "selector 1, which is always true";
        if (n >= selectors_) return fmt::format("selector {}, which the unit does not have", n);
        if (!asked_(fmt::format("TRCRSCTLR{}", n)))
            return fmt::format("selector {}, of which TRCRSCTLR{} was not given", n, n);
        const Trcrsctlr& s = r_.rsctlr[n - 2];
        std::vector<std::string> parts;
        for (unsigned i = 0; i < 16; ++i)
            if (bit(s.select, i)) parts.push_back(resource_words(s.group, i));
        std::string words = parts.empty() ? "no resource" : fmt::format("{}", fmt::join(parts, " or "));
        if (parts.size() > 1) words = "(" + words + ")";
        return s.inv ? "not " + words : words;
    }
    [[nodiscard]] std::string resource_words(unsigned group, unsigned n) const {
        switch (group) {
            case 0: return fmt::format("external input {}", n);
            case 1: return fmt::format("PE comparator input {}", n);
            case 2: return n < 4 ? fmt::format("counter {} at zero", n) : fmt::format("sequencer state {}", n - 4);
            case 3: return fmt::format("single-shot comparator {}", n);
            case 4: return "an instruction at " + address_words(n);
            case 5: return n < 8 ? "an instruction from " + range_words(n) : std::string("no range");
            case 6: return n < 8 ? context_words(n) : std::string("no Context ID");
            case 7: return n < 8 ? vmid_words(n) : std::string("no VMID");
            default: return fmt::format("the reserved resource {} of group {}", n, group);
        }
    }
    [[nodiscard]] std::string context_words(unsigned n) const {
        if (!asked_(fmt::format("TRCCIDCVR{}", n))) return fmt::format("the Context ID of TRCCIDCVR{}, not given", n);
        return fmt::format("Context ID {:#x}", r_.cidcvr[n].value);
    }
    [[nodiscard]] std::string vmid_words(unsigned n) const {
        if (!asked_(fmt::format("TRCVMIDCVR{}", n))) return fmt::format("the VMID of TRCVMIDCVR{}, not given", n);
        return fmt::format("VMID {:#x}", r_.vmidcvr[n].value);
    }
    /// Words such as `, with Context ID 0x12`, if the comparator requires an identifier.
    [[nodiscard]] std::string condition_words(unsigned n) const {
        const Trcacatr& a = r_.acatr[n];
        std::string out;
        if ((a.contexttype & 1U) != 0) out += " with " + context_words(a.context);
        if ((a.contexttype & 2U) != 0) out += " with " + vmid_words(a.context);
        return out;
    }

    const Registers& r_;
    const Given& asked_;
    unsigned comparators_, selectors_;
};

class RegisterExplainer : private protocol::ExplanationBuilder {
public:
    RegisterExplainer(const Registers& registers, CoreProfile profile, const Given& given)
        : ExplanationBuilder(given),
          r_(completed(registers, given)),
          profile_(profile),
          asked_([this](std::string_view name) { return asked(name); }),
          resources_(r_, asked_) {}

    UnitExplanation explain() {
        out.unit = r_.devarch.archver == 5 ? fmt::format("ETE1.{}", static_cast<unsigned>(r_.devarch.revision))
                   : given(Trcidr1::name)  ? fmt::format("ETMv4.{}", static_cast<unsigned>(r_.idr1.archmin))
                                           : "ETMv4";
        out.document = "docs/spec/etm4-registers.md";
        for (LevelOf& level : levels_of(r_, profile_)) {
            out.levels.push_back({level.name, {}});
            levels_.push_back(std::move(level));
        }
        power();
        enabled();
        authentication();
        if (asked(Trcvictlr::name)) view_inst();
        output();
        for (const Objection& objection : objections_to(r_)) object(objection.message, "TRC", "1.2");
        lift();
        describe();
        if (asked(Trcconfigr::name)) contents();
        return std::move(out);
    }

private:
    void power() {
        if (!given(Trcpdsr::name)) return;
        if (!r_.pdsr.power)
            find(TraceEffect::stops, "TRCPDSR.POWER",
                 "TRCPDSR.POWER is 0: the unit's registers have no power, and hold nothing",
                 "set TRCPDCR.PU to 1 and wait for TRCPDSR.POWER", "1.6");
        if (r_.pdsr.stickypd)
            find(TraceEffect::note, "TRCPDSR.STICKYPD",
                 "TRCPDSR.STICKYPD is 1: since it was last read, the unit lost power, and its programming",
                 "program the unit again", "1.6");
    }
    void enabled() {
        if (given(Trcoslsr::name) && r_.oslsr.oslk)
            find(TraceEffect::stops, "TRCOSLSR.OSLK",
                 "TRCOSLSR.OSLK is 1: the OS Lock is locked, which disables the unit",
                 r_.oslsr.oslm_high == 2 ? "clear the OS Lock of the processor (OSLAR_EL1)" : "write 0 to TRCOSLAR",
                 "2.1");
        if (asked(Trcprgctlr::name) && !r_.prgctlr.enable)
            find(TraceEffect::stops, "TRCPRGCTLR.EN",
                 "TRCPRGCTLR.EN is 0: the unit is disabled, or was when its registers were read",
                 "write 1 to TRCPRGCTLR as the last register", "2.1");
        if (given(Trcprgctlr::name) && given(Trcstatr::name) && r_.prgctlr.enable && r_.statr.idle)
            find(TraceEffect::note, "TRCSTATR.IDLE",
                 "TRCSTATR.IDLE is 1 with TRCPRGCTLR.EN 1: the unit had not begun to run when its registers were read",
                 "", "2.1");
        if (given(Trclsr::name) && bit(to_value(r_.lsr), 0) && bit(to_value(r_.lsr), 1))
            find(TraceEffect::note, "TRCLSR.SLK",
                 "TRCLSR.SLK is 1: memory-mapped writes of software to the unit's registers are ignored",
                 "write 0xc5acce55 to TRCLAR before programming", "1.6");
    }
    /// Pairs of TRCAUTHSTATUS: 0 absent, 2 disabled, 3 enabled.
    void authentication() {
        if (!given(Trcauthstatus::name)) return;
        const Trcauthstatus& a = r_.authstatus;
        for (std::size_t n = 0; n < levels_.size(); ++n) {
            const LevelOf& level = levels_[n];
            const auto [value, field] = level.security == flow::Security::non_secure ? std::pair(a.nsnid, "NSNID")
                                        : level.security == flow::Security::realm    ? std::pair(a.rlnid, "RLNID")
                                                                                     : std::pair(a.snid, "SNID");
            // A processor with one security state has only that state's pair.
            const bool other = profile_ == CoreProfile::m && a.snid == 0;
            if ((other ? a.nsnid : value) != 2) continue;
            const std::string name = std::string("TRCAUTHSTATUS.") + (other ? "NSNID" : field);
            obstacle(n, TraceEffect::stops, name,
                     name + " is 2: the system's authentication signals do not allow trace in this security state",
                     "enable non-invasive debug of this security state in the system", "1.6");
        }
    }

    /// Nothing is traced. If TRCIDR4 was not given, this is true unless the unit lacks the feature that the register
    /// controls.
    [[nodiscard]] TraceCondition never(std::string field, std::string text, std::string remedy, std::string section,
                                       const char* lacks) const {
        if (strongest_ == TraceEffect::may)
            return never_unless(lacks, std::move(field), std::move(text), std::move(remedy), std::move(section));
        return {strongest_, std::move(field), std::move(text), std::move(remedy), std::move(section)};
    }
    void find_never(std::string field, std::string text, std::string remedy, std::string section, const char* lacks) {
        out.findings.push_back(never(std::move(field), std::move(text), std::move(remedy), std::move(section), lacks));
    }
    void never_at(std::size_t level, std::string field, std::string text, std::string remedy, std::string section,
                  const char* lacks) {
        out.levels[level].obstacles.push_back(
            never(std::move(field), std::move(text), std::move(remedy), std::move(section), lacks));
    }
    static constexpr const char* no_selectors = "the unit has no resource selectors (TRCIDR4, not given)";
    static constexpr const char* no_comparators = "the unit has no address comparators (TRCIDR4, not given)";

    void view_inst() {
        // A unit without selectors or comparators would ignore these registers.
        strongest_ = asked(Trcidr4::name) ? TraceEffect::stops : TraceEffect::may;
        view_event();
        start_and_stop();
        for (std::size_t n = 0; n < levels_.size(); ++n) {
            exception_level(n);
            if (resources_.comparators() != 0) include_and_exclude(n);
        }
    }
    void view_event() {
        // Without selectors the event is true.
        if (resources_.selectors() == 0) return;
        const bool pair = r_.victlr.type;
        const unsigned sel = r_.victlr.sel;
        const Constant event = resources_.event(pair, sel, nullptr);
        const std::string field = "TRCVICTLR.EVENT";
        const std::string what = fmt::format("TRCVICTLR.EVENT is {}", resources_.event_words(pair, sel));
        if (event == protocol::always) return;
        if (event == protocol::never) {
            find_never(field, what + ", and never happens: ViewInst is never active",
                       "write 0x01 to TRCVICTLR.EVENT, which is always true", "2.5", no_selectors);
            return;
        }
        find(TraceEffect::may, field, what + ": instructions are traced only while it happens", "", "2.5");
        for (std::size_t n = 0; n < levels_.size(); ++n)
            if (resources_.event(pair, sel, &levels_[n]) == protocol::never)
                never_at(n, field, what + ", which cannot happen at this level", "", "2.6", no_selectors);
    }
    void start_and_stop() {
        if (resources_.comparators() == 0) return;
        const unsigned pc_inputs = r_.idr4.numpc;
        const auto points = [&](unsigned mask) {
            std::vector<std::string> list;
            for (unsigned n = 0; n < 16; ++n)
                if (bit(mask, n) && resources_.applies(n, nullptr) != protocol::never)
                    list.push_back(resources_.address_words(n));
            return list;
        };
        const std::vector<std::string> starts = points(r_.vissctlr.start), stops = points(r_.vissctlr.stop);
        const bool inputs_known = pc_inputs == 0 || asked(Trcvipcssctlr::name);
        const bool by_input = pc_inputs != 0 && (r_.vipcssctlr.start != 0 || r_.vipcssctlr.stop != 0);
        const bool known = asked(Trcvissctlr::name);
        if (!r_.victlr.ssstatus) {
            const std::string off = "TRCVICTLR.SSSTATUS is 0: the start/stop state is off";
            const std::string remedy = "write 1 to TRCVICTLR.SSSTATUS with each write to TRCVICTLR";
            if (by_input)
                find(TraceEffect::may, "TRCVICTLR.SSSTATUS", off + " until a PE comparator input turns it on", "",
                     "2.12");
            else if (!starts.empty())
                find(TraceEffect::may, "TRCVICTLR.SSSTATUS",
                     fmt::format("{} until the instruction at {} runs (TRCVISSCTLR.START)", off,
                                 fmt::join(starts, " or ")),
                     "", "2.12");
            else if (!known)
                find(TraceEffect::may, "TRCVICTLR.SSSTATUS", off + ", unless TRCVISSCTLR.START has a start point",
                     remedy, "2.12");
            else if (!inputs_known)
                find(TraceEffect::may, "TRCVICTLR.SSSTATUS",
                     off + ", unless TRCVIPCSSCTLR lets a PE comparator input turn it on", remedy, "2.12");
            else
                find_never("TRCVICTLR.SSSTATUS", off + ", and no start point can turn it on", remedy, "2.12",
                           no_comparators);
            return;
        }
        if (!stops.empty() || by_input)
            find(TraceEffect::may, "TRCVISSCTLR.STOP",
                 stops.empty()
                     ? std::string("TRCVIPCSSCTLR lets PE comparator inputs turn trace on and off")
                     : fmt::format(
                           "TRCVISSCTLR.STOP turns trace off behind the instruction at {}{}", fmt::join(stops, " or "),
                           starts.empty() ? ", and no start point turns it on again"
                                          : fmt::format(", and TRCVISSCTLR.START on at {}", fmt::join(starts, " or "))),
                 "", "2.12");
    }
    void exception_level(std::size_t n) {
        const LevelOf& level = levels_[n];
        const Trcvictlr& v = r_.victlr;
        if (!PossibleResources::excluded(v.exlevel_s, v.exlevel_ns, v.exlevel_rl, level)) return;
        const bool realm = level.security == flow::Security::realm;
        const std::string_view state = realm ? "RL" : level.security == flow::Security::non_secure ? "NS" : "S";
        const std::string field = fmt::format("TRCVICTLR.EXLEVEL_{}[{}]", state, level.el);
        const std::string other = fmt::format("EXLEVEL_NS[{}]", level.el);
        obstacle(n, TraceEffect::stops, field,
                 fmt::format("{} {}: this level is filtered out", field, realm ? "differs from " + other : "is 1"),
                 fmt::format("write {} to it", realm ? "the value of " + other : "0"), "1.3");
    }
    void include_and_exclude(std::size_t n) {
        if (!asked(Trcviiectlr::name)) return;
        const LevelOf& level = levels_[n];
        const unsigned include = r_.viiectlr.include, exclude = r_.viiectlr.exclude;
        std::vector<std::string> inside, outside, empty;
        Constant included = include == 0 ? protocol::always : protocol::never, excluded = protocol::never;
        for (unsigned i = 0; i < 8; ++i) {
            if (!bit(include | exclude, i)) continue;
            const Constant range = resources_.range(i, &level);
            if (bit(include, i)) {
                included = either(included, range);
                (range == protocol::never ? empty : inside).push_back(resources_.range_words(i));
            }
            if (bit(exclude, i) && range != protocol::never) {
                excluded = either(excluded, range);
                outside.push_back(resources_.range_words(i));
            }
        }
        if (included == protocol::never)
            never_at(n, "TRCVIIECTLR.INCLUDE",
                     fmt::format("TRCVIIECTLR.INCLUDE selects {}, which no instruction at this level can match",
                                 fmt::join(empty, " and ")),
                     "write 0 to TRCVIIECTLR.INCLUDE, or mend the comparators", "2.6", no_comparators);
        else if (included == protocol::varies)
            obstacle(n, TraceEffect::may, "TRCVIIECTLR.INCLUDE",
                     fmt::format("TRCVIIECTLR.INCLUDE keeps only blocks with an instruction from {}",
                                 fmt::join(inside, " or from ")),
                     "", "2.12");
        if (excluded == protocol::always)
            never_at(n, "TRCVIIECTLR.EXCLUDE",
                     fmt::format("TRCVIIECTLR.EXCLUDE leaves out all addresses, {}", fmt::join(outside, " and ")),
                     "write 0 to TRCVIIECTLR.EXCLUDE", "2.12", no_comparators);
        else if (excluded == protocol::varies)
            obstacle(n, TraceEffect::may, "TRCVIIECTLR.EXCLUDE",
                     fmt::format("TRCVIIECTLR.EXCLUDE leaves out blocks that lie entirely in {}",
                                 fmt::join(outside, " or in ")),
                     "", "2.12");
    }

    /// Explains what happens to the trace after it leaves the unit.
    void output() {
        if (given(Trctraceidr::name) && r_.idr5.traceidsize != 0) {
            const unsigned id = r_.traceidr.trace_id;
            if (id == 0 || id >= 0x70)
                find(TraceEffect::may, "TRCTRACEIDR",
                     fmt::format("TRCTRACEIDR is {:#04x}: behind a CoreSight formatter, where IDs are from 0x01 to "
                                 "0x6f, the trace is lost (a TRBE ignores the ID)",
                                 id),
                     "write an ID from 0x01 to 0x6f that no other source has", "1.2");
        }
        if (given(Trcsyncpr::name) && r_.syncpr.period == 0)
            find(TraceEffect::note, "TRCSYNCPR.PERIOD",
                 "TRCSYNCPR.PERIOD is 0: the unit synchronises only when it is enabled or the system asks, so a buffer "
                 "that wrapped may not be decodable",
                 "write 12 to it: an A-sync every 4096 bytes", "1.2");
        if (given(Trcstallctlr::name) && r_.stallctlr.istall)
            find(TraceEffect::note, "TRCSTALLCTLR.ISTALL",
                 "TRCSTALLCTLR.ISTALL is 1: the unit stalls the processor when its FIFO fills, so times are longer "
                 "than without trace",
                 "", "1.2");
        if (given(Trcimspec0::name) && bit(to_value(r_.imspec0), 4))
            find(TraceEffect::note, "TRCIMSPEC0.EN",
                 "TRCIMSPEC0.EN is not 0: implementation defined features are on, which may change the trace",
                 "write 0 to TRCIMSPEC0", "1.5");
        if (given(Trcauxctlr::name) && to_value(r_.auxctlr) != 0)
            find(TraceEffect::note, "TRCAUXCTLR",
                 "TRCAUXCTLR is not 0: implementation defined behaviour is chosen, which may break the architecture",
                 "write 0 to TRCAUXCTLR", "1.2");
    }

    void contents() {
        const Trcconfigr& c = r_.configr;
        const Trcidr0& has = r_.idr0;
        out.contents.push_back({"program flow", true,
                                "the outcome of each branch, and addresses that the program does "
                                "not give",
                                ""});
        const auto add = [&](std::string what, bool wanted, bool there, std::string field, std::string text,
                             std::string_view id) {
            if (wanted && !there) text = fmt::format("enabled, but the unit cannot do it ({})", id);
            out.contents.push_back({std::move(what), wanted && there, std::move(text), std::move(field)});
        };
        add("an address for each taken branch", c.bb, has.trcbb, "TRCCONFIGR.BB", c.bb ? broadcast() : "",
            "TRCIDR0.TRCBB is 0");
        add("cycle counts", c.cci, has.trccci, "TRCCONFIGR.CCI",
            c.cci && asked(Trcccctlr::name)
                ? fmt::format("at least {} cycles apart (TRCCCCTLR.THRESHOLD)", r_.ccctlr.threshold)
                : "",
            "TRCIDR0.TRCCCI is 0");
        add("timestamps", c.ts, has.tssize != 0, "TRCCONFIGR.TS", c.ts ? timestamps() : "", "TRCIDR0.TSSIZE is 0");
        add("Context IDs", c.cid, r_.idr2.cidsize != 0, "TRCCONFIGR.CID", "", "TRCIDR2.CIDSIZE is 0");
        add("VMIDs", c.vmid, r_.idr2.vmidsize != 0, "TRCCONFIGR.VMID", "", "TRCIDR2.VMIDSIZE is 0");
        add("return stack", c.rs, has.retstack, "TRCCONFIGR.RS",
            c.rs ? "returns to the caller have no address, which makes the trace smaller" : "",
            "TRCIDR0.RETSTACK is 0");
        add("Q elements", c.qe != 0, has.qsupp != 0, "TRCCONFIGR.QE",
            c.qe != 0 ? "the unit may leave out stretches of instructions" : "", "TRCIDR0.QSUPP is 0");
        add("loads and stores as waypoints", c.instp0 != 0, has.instp0 != 0, "TRCCONFIGR.INSTP0",
            c.instp0 != 0 ? "Waymark does not follow them" : "", "TRCIDR0.INSTP0 is 0");
        if (r_.devarch.archver != 5) {
            add("conditional instructions", c.cond != 0, has.trccond, "TRCCONFIGR.COND", "", "TRCIDR0.TRCCOND is 0");
            add("data addresses and values", c.da || c.dv, has.trcdata != 0, "TRCCONFIGR.DA", "",
                "TRCIDR0.TRCDATA is 0");
        }
        events();
        synchronisation();
    }
    [[nodiscard]] std::string broadcast() {
        if (resources_.comparators() == 0 || !asked(Trcbbctlr::name)) return "";
        std::vector<std::string> ranges;
        for (unsigned n = 0; n < 8; ++n)
            if (bit(r_.bbctlr.range, n)) ranges.push_back(resources_.range_words(n));
        if (ranges.empty()) return "everywhere";
        return fmt::format("{} {} (TRCBBCTLR)", r_.bbctlr.mode ? "only from" : "but not from",
                           fmt::join(ranges, " and from "));
    }
    [[nodiscard]] std::string timestamps() {
        if (!asked(Trctsctlr::name) || resources_.selectors() == 0) return "";
        const Constant event = resources_.event(r_.tsctlr.type, r_.tsctlr.sel, nullptr);
        if (event == protocol::never) return "after synchronisation only: TRCTSCTLR.EVENT never happens";
        return fmt::format("after synchronisation, and when this happens (TRCTSCTLR.EVENT): {}",
                           resources_.event_words(r_.tsctlr.type, r_.tsctlr.sel));
    }
    void events() {
        if (!given(Trceventctl1r::name) || r_.eventctl1r.insten == 0 || resources_.selectors() == 0) return;
        if (!asked(Trceventctl0r::name)) return;
        const Trceventctl0r& e = r_.eventctl0r;
        const std::array types{e.type0, e.type1, e.type2, e.type3};
        const std::array sels{e.sel0, e.sel1, e.sel2, e.sel3};
        for (unsigned n = 0; n <= r_.idr0.numevent && n < 4; ++n) {
            if (!bit(r_.eventctl1r.insten, n)) continue;
            const std::string words = resources_.event_words(types[n], sels[n]);
            const bool happens = resources_.event(types[n], sels[n], nullptr) != protocol::never;
            out.contents.push_back({fmt::format("event {}", n), happens, happens ? words : "never happens: " + words,
                                    fmt::format("TRCEVENTCTL1R.INSTEN[{}]", n)});
        }
    }
    void synchronisation() {
        if (!given(Trcsyncpr::name) || r_.syncpr.period == 0) return;
        out.contents.push_back({"synchronisation", true,
                                fmt::format("an A-sync every {} bytes", std::uint64_t{1} << r_.syncpr.period),
                                "TRCSYNCPR.PERIOD"});
    }

    Registers r_;
    CoreProfile profile_;
    const Given asked_;
    PossibleResources resources_;
    std::vector<LevelOf> levels_;
    TraceEffect strongest_ = TraceEffect::stops;
};

}  // namespace

UnitExplanation explain(const Registers& registers, CoreProfile profile, const Given& given) {
    return RegisterExplainer(registers, profile, given).explain();
}

}  // namespace waymark::etm4
