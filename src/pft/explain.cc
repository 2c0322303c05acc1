#include "waymark/pft/explain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "waymark/pft/access.h"
#include "waymark/protocol/constant.h"
#include "waymark/protocol/explanation_builder.h"

namespace waymark::pft {

namespace {

using protocol::both, protocol::Constant, protocol::either, protocol::inverted;
using protocol::Given, protocol::TraceCondition, protocol::UnitExplanation, protocol::TraceEffect;

constexpr bool has_bit(std::uint64_t bits, unsigned n) { return (bits >> n & 1U) != 0; }

/// The mode in which an instruction runs, in the terms of comparators' access types.
struct Mode {
    bool ns{}, user{}, hyp{};
    std::string name{};
};

/// Possible values of resources and events (5.6), in one mode or in any mode.
class Possible {
public:
    /// `asked`: whether a register was given; it records the registers that were not.
    Possible(const Registers& r, const Given& asked) : r_(r), asked_(asked) {
        sequencer_moves_ = std::any_of(r.sqevr.begin(), r.sqevr.end(), [](const Etmsqevr& e) {
            constexpr std::uint32_t never_happens = 0x406f;
            return (to_value(e) & 0x1ffffU) != never_happens;
        });
    }

    /// Whether comparator `n` can match in this mode; for a null `mode`, in any mode.
    [[nodiscard]] Constant permitted(unsigned n, const Mode* mode) const {
        if (!asked_(fmt::format("ETMACTR{}", n + 1))) return protocol::varies;
        const Etmactr& a = r_.actr[n];
        if (r_.is_etmv3() && a.access > 3) return protocol::never;  // for data
        if (mode != nullptr) {
            const unsigned control = mode->ns ? a.ns_high * 2U + a.ns_low : a.secure_high * 2U + a.secure_low;
            if (control == 1 || (control == 2 && mode->user) || (control == 3 && !mode->user)) return protocol::never;
            if (a.hyp && mode->hyp) return protocol::never;
        }
        const bool all_modes = !a.ns_high && !a.ns_low && !a.secure_high && !a.secure_low && !a.hyp;
        Constant out = mode != nullptr || all_modes ? protocol::always : protocol::varies;
        if (a.context_id != 0) out = both(out, context_id(a.context_id - 1U));
        if (r_.is_etmv3() && a.access > 1) out = both(out, protocol::varies);  // its condition true, or false
        return a.vmid ? both(out, protocol::varies) : out;
    }
    [[nodiscard]] Constant range(unsigned n, const Mode* mode) const {
        for (const unsigned end : {2 * n + 1, 2 * n + 2})
            if (!asked_(fmt::format("ETMACVR{}", end))) return protocol::varies;
        const bool whole = r_.acvr[2 * n].value == 0 && r_.acvr[2 * n + 1].value == 0xffffffff;
        return both(permitted(2 * n, mode), whole ? protocol::always : protocol::varies);
    }
    [[nodiscard]] Constant event(const EventFields& e, const Mode* mode) const {
        const Constant a = resource(e.a_type, e.a_index, mode);
        // Functions 0 and 1 depend only on A.
        const Constant b = e.function < 2 ? protocol::never : resource(e.b_type, e.b_index, mode);
        switch (e.function) {
            case 0: return a;
            case 1: return inverted(a);
            case 2: return both(a, b);
            case 3: return both(inverted(a), b);
            case 4: return both(inverted(a), inverted(b));
            case 5: return either(a, b);
            case 6: return either(inverted(a), b);
            default: return either(inverted(a), inverted(b));
        }
    }

    [[nodiscard]] std::string range_words(unsigned n) const {
        if (!asked_(fmt::format("ETMACVR{}", 2 * n + 1)) || !asked_(fmt::format("ETMACVR{}", 2 * n + 2)))
            return fmt::format("range {}, of which ETMACVR{} and ETMACVR{} were not both given", n + 1, 2 * n + 1,
                               2 * n + 2);
        return fmt::format("{:#x} to before {:#x}{}", r_.acvr[2 * n].value, r_.acvr[2 * n + 1].value,
                           condition_words(2 * n));
    }
    [[nodiscard]] std::string address_words(unsigned n) const {
        if (!asked_(fmt::format("ETMACVR{}", n + 1))) return fmt::format("ETMACVR{}, which is not given", n + 1);
        return fmt::format("{:#x}{}", r_.acvr[n].value, condition_words(n));
    }
    [[nodiscard]] std::string event_words(const EventFields& e) const {
        const std::string a = resource_words(e.a_type, e.a_index);
        if (e.function == 0) return a;
        if (e.function == 1) return "not " + a;
        constexpr std::array<std::string_view, 8> forms{"",
                                                        "",
                                                        "{} and {}",
                                                        "not {} and {}",
                                                        "neither {} nor {}",
                                                        "{} or {}",
                                                        "not {}, or {}",
                                                        "not {}, or not {}"};
        return fmt::format(fmt::runtime(forms[e.function]), a, resource_words(e.b_type, e.b_index));
    }

private:
    [[nodiscard]] Constant context_id(unsigned n) const {
        if (n >= r_.cidcvr.size()) return protocol::never;
        return asked_(Etmcidcmr::name) && r_.cidcmr.value == 0xffffffff ? protocol::always : protocol::varies;
    }
    [[nodiscard]] Constant resource(unsigned type, unsigned index, const Mode* mode) const {
        switch (type) {
            case 0: return both(permitted(index, mode), protocol::varies);
            case 1: return index < 8 ? range(index, mode) : index < 12 ? protocol::varies : protocol::never;
            case 2: return index < 8 ? protocol::varies : protocol::never;
            case 4: return index < 4 ? protocol::varies : protocol::never;
            case 5:
                if (index < 3)
                    return sequencer_moves_ || !sequencer_given() ? protocol::varies
                                                                  : Constant(std::min(r_.sqr.value, 2U) == index);
                if (index >= 8 && index < 11) return context_id(index - 8);
                return index == 11 || index == 15 ? protocol::varies : protocol::never;
            case 6:
                if (index < 4 || (index >= 8 && index < 12)) return protocol::varies;
                if (index == 13) return mode != nullptr ? Constant(mode->ns) : protocol::varies;
                // Where trace is prohibited, nothing is traced even if the event occurs.
                return index == 15;
            default: return protocol::never;
        }
    }
    [[nodiscard]] bool sequencer_given() const {
        bool all = asked_(Etmsqr::name);
        for (const std::string_view name :
             {"ETMSQ12EVR", "ETMSQ21EVR", "ETMSQ23EVR", "ETMSQ31EVR", "ETMSQ32EVR", "ETMSQ13EVR"})
            all = asked_(name) && all;
        return all;
    }
    [[nodiscard]] std::string resource_words(unsigned type, unsigned index) const {
        switch (type) {
            case 0: return "an instruction at " + address_words(index);
            case 1:
                if (index < 8) return "an instruction from " + range_words(index);
                if (index < 12) return fmt::format("instrumentation resource {}", index - 7);
                break;
            case 2:
                if (index < 8) return fmt::format("watchpoint {}", index + 1);
                break;
            case 4:
                if (index < 4) return fmt::format("counter {} at zero", index + 1);
                break;
            case 5:
                if (index < 3) return fmt::format("sequencer state {}", index + 1);
                if (index >= 8 && index < 11) return context_words(index - 8);
                if (index == 11) return vmid_words();
                if (index == 15) return "the start/stop block on";
                break;
            case 6:
                if (index < 4) return fmt::format("external input {}", index + 1);
                if (index >= 8 && index < 12) return fmt::format("extended external input {}", index - 7);
                if (index == 13) return "Non-secure state";
                if (index == 14) return "trace prohibited";
                if (index == 15) return "always true";
                break;
            default: break;
        }
        return fmt::format("the reserved resource {}:{}", type, index);
    }
    [[nodiscard]] std::string condition_words(unsigned n) const {
        const Etmactr& a = r_.actr[n];
        std::string out;
        if (r_.is_etmv3() && (a.access == 2 || a.access == 3))
            out += a.access == 2 ? " whose condition is true" : " whose condition is false";
        if (a.context_id != 0) out += " with " + context_words(a.context_id - 1U);
        if (a.vmid) out += " with " + vmid_words();
        return out;
    }
    [[nodiscard]] std::string context_words(unsigned n) const {
        if (n >= r_.cidcvr.size()) return "a Context ID";
        if (!asked_(fmt::format("ETMCIDCVR{}", n + 1)))
            return fmt::format("the Context ID of ETMCIDCVR{}, not given", n + 1);
        return fmt::format("Context ID {:#x}", r_.cidcvr[n].value);
    }
    [[nodiscard]] std::string vmid_words() const {
        if (!asked_(Etmvmidcvr::name)) return "the VMID of ETMVMIDCVR, not given";
        return fmt::format("VMID {:#x}", r_.vmidcvr.value);
    }

    const Registers& r_;
    const Given& asked_;
    bool sequencer_moves_ = false;
};

class RegisterExplainer : private protocol::ExplanationBuilder {
public:
    RegisterExplainer(const Registers& registers, const ManagementValues& management, const Given& given,
                      Macrocell kind)
        : ExplanationBuilder(given),
          kind_(kind),
          r_(registers),
          management_(management),
          asked_([this](std::string_view name) { return asked(name); }),
          possible_(r_, asked_) {}

    UnitExplanation explain() {
        const bool named = given(Etmidr::name) && r_.idr.major == (etmv3() ? etmv3_major : pft_v1_major);
        const auto minor = static_cast<unsigned>(r_.idr.minor);
        if (etmv3())
            out.unit = named ? fmt::format("ETMv3.{}", minor) : "ETMv3";
        else
            out.unit = named ? fmt::format("PFT1.{}", minor) : "PTM";
        out.document = etmv3() ? "docs/spec/etmv3.md" : "docs/spec/pft.md";
        const bool one_state = given(Etmidr::name) && !r_.idr.security;
        const bool virtualised = !given(Etmccer::name) || r_.ccer.virtualization;
        modes_ = {{false, true, false, one_state ? "User mode" : "User mode, Secure"},
                  {false, false, false, one_state ? "privileged modes" : "privileged modes, Secure"}};
        if (!one_state) {
            modes_.push_back({true, true, false, "User mode, Non-secure"});
            modes_.push_back({true, false, false, "privileged modes, Non-secure"});
            if (virtualised) modes_.push_back({true, false, true, "Hyp mode"});
        }
        for (const Mode& mode : modes_) out.levels.push_back({mode.name, {}});
        version();
        stopped();
        authentication();
        trace_enable();
        output();
        for (const std::string& objection : objections_to(r_)) object(objection, "ETM", "3");
        lift();
        describe();
        if (asked(Etmcr::name)) contents();
        if (etmv3()) cite_etmv3();
        return std::move(out);
    }

private:
    static constexpr unsigned pft_v1_major = 3, etmv3_major = 2;

    [[nodiscard]] bool etmv3() const { return kind_ == Macrocell::etmv3; }
    /// The document of the ETMv3 has one section for all rules.
    void cite_etmv3() {
        constexpr const char* section = "13";
        for (TraceCondition& f : out.findings) f.section = section;
        for (protocol::TracedLevel& level : out.levels)
            for (TraceCondition& f : level.obstacles) f.section = section;
    }
    /// Reports the version of the unit: the other unit has registers with the same names.
    void version() {
        if (!asked(Etmidr::name) || r_.idr.major == (etmv3() ? etmv3_major : pft_v1_major)) return;
        if (etmv3()) {
            find(TraceEffect::may, "ETMIDR",
                 fmt::format("ETMIDR[11:8] is {}: this is not an ETMv3, but the rules of an ETMv3 are applied here",
                             static_cast<unsigned>(r_.idr.major)),
                 "", "3");
            return;
        }
        find(TraceEffect::may, "ETMIDR",
             fmt::format(
                 "ETMIDR[11:8] is {}: this is an ETMv{}.{} and not a PTM, but the rules of a PTM are applied here",
                 static_cast<unsigned>(r_.idr.major), r_.idr.major + 1U, static_cast<unsigned>(r_.idr.minor)),
             "", "3");
    }
    void stopped() {
        if (management_.pdsr) {
            if (!has_bit(*management_.pdsr, 0))
                find(TraceEffect::stops, "ETMPDSR[0]", "ETMPDSR[0] is 0: the macrocell has no power",
                     "set ETMPDCR[3] and wait for ETMPDSR[0]", "3.1");
            if (has_bit(*management_.pdsr, 1))
                find(TraceEffect::note, "ETMPDSR[1]",
                     "ETMPDSR[1] is 1: since it was last read, registers lost their programming",
                     "program the macrocell again", "3.1");
        }
        if (management_.oslsr && has_bit(*management_.oslsr, 1))
            find(TraceEffect::stops, "ETMOSLSR[1]",
                 "ETMOSLSR[1] is 1: the OS Lock is locked, which stops the macrocell", "write 0 to ETMOSLAR", "3.1");
        if (management_.lsr && (*management_.lsr & 3U) == 3)
            find(TraceEffect::note, "ETMLSR[1]", "ETMLSR[1] is 1: memory-mapped writes of software are ignored",
                 "write 0xc5acce55 to ETMLAR before programming", "3.1");
        if (!asked(Etmcr::name)) return;
        if (r_.cr.power_down)
            find(TraceEffect::stops, "ETMCR[0]", "ETMCR[0] is 1: power down; the macrocell does not trace",
                 "write 0 to ETMCR[0]", "3.1");
        if (r_.cr.programming)
            find(TraceEffect::stops, "ETMCR[10]",
                 "ETMCR[10] is 1, the Programming bit: the macrocell is stopped, or was when its registers were read",
                 "write 0 to ETMCR[10] as the last bit", "3");
    }
    /// Pairs of bits: 0 not implemented, 2 disabled, 3 enabled.
    void authentication() {
        if (!management_.authstatus) return;
        for (std::size_t n = 0; n < modes_.size(); ++n) {
            const unsigned lowest = modes_[n].ns ? 2 : 6;
            if ((*management_.authstatus >> lowest & 3U) != 2) continue;
            const std::string field = fmt::format("ETMAUTHSTATUS[{}:{}]", lowest + 1, lowest);
            obstacle(n, TraceEffect::stops, field,
                     field + " is 2: the system's authentication signals do not allow trace in this security state",
                     "enable non-invasive debug of this security state in the system", "5.3");
        }
    }
    void trace_enable() {
        if (asked(Etmteevr::name)) enabling_event();
        if (!asked(Etmtecr1::name)) return;
        if (r_.tecr1.start_stop) start_and_stop();
        singles_known_ = !etmv3() || asked(Etmtecr2::name);
        for (std::size_t n = 0; n < modes_.size(); ++n) selection(n);
    }
    void enabling_event() {
        const Constant event = possible_.event(r_.teevr, nullptr);
        const std::string what = fmt::format("ETMTEEVR is {}", possible_.event_words(r_.teevr));
        if (event == protocol::always) return;
        if (event == protocol::never) {
            find(TraceEffect::stops, "ETMTEEVR", what + ", which never happens", "write 0x6f to ETMTEEVR, always true",
                 "5.6");
            return;
        }
        find(TraceEffect::may, "ETMTEEVR", what + ": instructions are traced only while it happens", "", "5.6");
        for (std::size_t n = 0; n < modes_.size(); ++n)
            if (possible_.event(r_.teevr, &modes_[n]) == protocol::never)
                obstacle(n, TraceEffect::stops, "ETMTEEVR", what + ", which cannot happen in this mode", "", "5.6");
    }
    void start_and_stop() {
        const auto points = [&](unsigned mask) {
            std::vector<std::string> list;
            for (unsigned n = 0; n < 16; ++n)
                if (has_bit(mask, n)) list.push_back("the instruction at " + possible_.address_words(n));
            return list;
        };
        const bool points_known = asked(Etmtsscr::name);
        std::vector<std::string> starts = points(r_.tsscr.start), stops = points(r_.tsscr.stop);
        if (r_.tesseicr.start != 0) starts.emplace_back("a watchpoint (ETMTESSEICR)");
        if (r_.tesseicr.stop != 0) stops.emplace_back("a watchpoint (ETMTESSEICR)");
        const std::string uses = "ETMTECR1[25] is 1: only what runs while the start/stop block is on is traced";
        const bool on = r_.sr.start_stop;
        if (!points_known) {
            find(TraceEffect::may, "ETMTECR1[25]",
                 uses + "; ETMTSSCR, which selects what turns it on and off, is not given", "", "5.6");
            return;
        }
        if (starts.empty() && !on) {
            const bool inputs_known = asked(Etmtesseicr::name), state_known = asked(Etmsr::name);
            std::string text = fmt::format("{}; {}no start comparator can turn it on", uses,
                                           state_known ? "it is off (ETMSR[2]), and " : "");
            const char* const remedy = "write 0 to ETMTECR1[25], or choose start comparators in ETMTSSCR";
            if (state_known && inputs_known)
                find(TraceEffect::stops, "ETMTECR1[25]", std::move(text), remedy, "5.6");
            else
                out.findings.push_back(never_unless(state_known ? "a watchpoint turns it on (ETMTESSEICR, not given)"
                                                                : "it is on already (ETMSR[2], not given)",
                                                    "ETMTECR1[25]", std::move(text), remedy, "5.6"));
            return;
        }
        if (on && stops.empty() && asked(Etmtesseicr::name)) return;
        find(TraceEffect::may, "ETMTECR1[25]",
             fmt::format("{}; {} turns it on, and {} turns it off", uses,
                         starts.empty() ? "nothing" : fmt::format("{}", fmt::join(starts, " or ")),
                         stops.empty() ? "nothing" : fmt::format("{}", fmt::join(stops, " or "))),
             "", "5.6");
    }
    /// The ranges of ETMTECR1, and of an ETMv3 the single addresses of ETMTECR2.
    void selection(std::size_t n) {
        std::vector<std::string> words;
        Constant some = protocol::never;
        for (unsigned i = 0; i < 8; ++i) {
            if (!has_bit(r_.tecr1.ranges, i)) continue;
            const Constant range = possible_.range(i, &modes_[n]);
            some = either(some, range);
            if (range != protocol::never) words.push_back("from " + possible_.range_words(i));
        }
        for (unsigned i = 0; i < 16; ++i) {
            if (!etmv3() || !singles_known_ || !has_bit(r_.tecr2.single, i)) continue;
            const Constant single = both(possible_.permitted(i, &modes_[n]), protocol::varies);
            some = either(some, single);
            if (single != protocol::never) words.push_back("at " + possible_.address_words(i));
        }
        const auto list = [&] { return fmt::format("{}", fmt::join(words, " or ")); };
        const char* const one = etmv3() ? "instructions" : "blocks with an instruction";
        const char* const whole = etmv3() ? "instructions" : "blocks that lie entirely";
        if (!r_.tecr1.exclude && !singles_known_ && some == protocol::never) {
            if (n == 0)
                out.findings.push_back(never_unless("it includes single addresses (ETMTECR2, not given)",
                                                    "ETMTECR1[24]",
                                                    "ETMTECR1[24] is 0, include, and no range can match",
                                                    "write 0x01000000 to ETMTECR1: exclude nothing", "5.6"));
        } else if (!r_.tecr1.exclude && r_.tecr1.ranges == 0 && r_.tecr2.single == 0) {
            if (n == 0 && etmv3())
                find(TraceEffect::stops, "ETMTECR1[24]",
                     "ETMTECR1[24] is 0, include, and neither ETMTECR1[7:0] nor ETMTECR2 selects a comparator: nothing "
                     "is included",
                     "write 0x01000000 to ETMTECR1: exclude nothing", "5.6");
            else if (n == 0)
                find(TraceEffect::stops, "ETMTECR1[24]",
                     "ETMTECR1[24] is 0, include, and ETMTECR1[7:0] selects no range: nothing is included",
                     "write 0x01000000 to ETMTECR1: exclude nothing", "5.6");
        } else if (!r_.tecr1.exclude && some == protocol::never) {
            obstacle(n, TraceEffect::stops, "ETMTECR1[7:0]",
                     etmv3() ? "ETMTECR1 and ETMTECR2 include addresses of which none matches in this mode (ETMACTR)"
                             : "ETMTECR1 includes ranges of which none matches in this mode (ETMACTR)",
                     "", "5.6");
        } else if (!r_.tecr1.exclude && some == protocol::varies) {
            obstacle(n, TraceEffect::may, "ETMTECR1[7:0]", fmt::format("ETMTECR1 keeps only {} {}", one, list()), "",
                     "5.6");
        } else if (r_.tecr1.exclude && some == protocol::always) {
            obstacle(n, TraceEffect::stops, "ETMTECR1[7:0]",
                     fmt::format("ETMTECR1 leaves out all addresses, {}", list()),
                     "write 0x01000000 to ETMTECR1: exclude nothing", "5.6");
        } else if (r_.tecr1.exclude && some == protocol::varies) {
            obstacle(n, TraceEffect::may, "ETMTECR1[7:0]", fmt::format("ETMTECR1 leaves out {} {}", whole, list()), "",
                     "5.6");
        }
    }

    void output() {
        if (given(Etmtraceidr::name) && (r_.traceidr.trace_id == 0 || r_.traceidr.trace_id > 0x6f))
            find(TraceEffect::may, "ETMTRACEIDR",
                 fmt::format("ETMTRACEIDR is {:#04x}: behind a CoreSight formatter, where IDs are from 0x01 to 0x6f, "
                             "the trace is lost",
                             r_.traceidr.trace_id),
                 "write an ID from 0x01 to 0x6f that no other source has", "3");
        if (given(Etmsyncfr::name) && r_.syncfr.value == 0)
            find(TraceEffect::note, "ETMSYNCFR",
                 "ETMSYNCFR is 0: the macrocell synchronises only where it begins or the system asks, so a buffer that "
                 "wrapped may not be decodable",
                 "write 1024 to ETMSYNCFR", "3");
        if (given(Etmsr::name) && r_.sr.overflow)
            find(TraceEffect::note, "ETMSR[0]",
                 "ETMSR[0] is 1: the FIFO overflowed, and the trace does not show it yet", "", "3");
    }
    void contents() {
        const Etmcr& c = r_.cr;
        const bool known = given(Etmccer::name);
        const auto add = [&](std::string what, bool wanted, bool there, std::string field, std::string text,
                             std::string_view id) {
            if (wanted && known && !there) text = fmt::format("enabled, but the unit cannot do it ({})", id);
            out.contents.push_back({std::move(what), wanted && (there || !known), std::move(text), std::move(field)});
        };
        out.contents.push_back({"program flow", true,
                                fmt::format("the outcome of each {}, and addresses that the program does not give",
                                            etmv3() ? "instruction" : "waypoint"),
                                ""});
        add("an address for each taken branch", c.branch_broadcast, true, "ETMCR[8]", "", "");
        add("cycle counts", c.cycle_accurate, true, "ETMCR[12]",
            !c.cycle_accurate ? ""
            : etmv3()         ? "with each instruction"
                              : "with each waypoint",
            "");
        // Some units send timestamps although ETMCCER[22] is 0.
        add("timestamps", c.timestamps, true, "ETMCR[28]",
            c.timestamps && known && !r_.ccer.timestamps ? "though ETMCCER[22] says that the unit has none" : "", "");
        add("Context IDs", c.context_id_size != 0, true, "ETMCR[15:14]",
            c.context_id_size != 0 ? fmt::format("of {}", c.context_id_size == 1   ? "1 byte"
                                                          : c.context_id_size == 2 ? "2 bytes"
                                                                                   : "4 bytes")
                                   : "",
            "");
        add("VMIDs", c.vmid_trace, r_.ccer.virtualization, "ETMCR[30]", "", "ETMCCER[26] is 0");
        if (!etmv3())
            add("return stack", c.return_stack, r_.ccer.return_stack, "ETMCR[29]",
                c.return_stack ? "returns to the caller have no address, which makes the trace smaller" : "",
                "ETMCCER[23] is 0");
        if (given(Etmtrigger::name)) {
            const bool happens = possible_.event(r_.trigger, nullptr) != protocol::never;
            out.contents.push_back({"a trigger", happens,
                                    happens ? "when this happens: " + possible_.event_words(r_.trigger) : "",
                                    "ETMTRIGGER"});
        }
        if (given(Etmsyncfr::name) && r_.syncfr.value != 0)
            out.contents.push_back({"synchronisation", true,
                                    fmt::format("an A-sync and an I-sync every {} bytes", r_.syncfr.value),
                                    "ETMSYNCFR"});
    }

    const Macrocell kind_;
    const Registers& r_;
    const ManagementValues& management_;
    const Given asked_;
    Possible possible_;
    std::vector<Mode> modes_;
    bool singles_known_ = true;  ///< ETMTECR2 was given, or the unit has none
};

}  // namespace

UnitExplanation explain(const Registers& registers, const ManagementValues& management, const Given& given,
                        Macrocell kind) {
    return RegisterExplainer(registers, management, given, kind).explain();
}

UnitExplanation explain(const std::vector<RegisterValue>& values, Registers registers, Macrocell kind) {
    for (const RegisterValue& r : values)
        if (const RegisterPlace* const place = register_called(r.name))
            registers.set(place->number, static_cast<std::uint32_t>(r.value));
    const auto value = [&](std::string_view name) {
        const RegisterValue* const r = find_register(values, name);
        return r == nullptr ? std::nullopt : std::optional(static_cast<std::uint32_t>(r->value));
    };
    const auto& [oslsr, pdsr, lsr, authstatus] = management_names;
    return explain(
        registers, {value(oslsr), value(pdsr), value(lsr), value(authstatus)},
        [&](std::string_view name) { return find_register(values, name) != nullptr; }, kind);
}

std::vector<std::string> filters(const std::vector<RegisterValue>& values) {
    std::vector<std::string> out;
    constexpr std::uint64_t always = 0x6f;  // only resource A, which is true (docs/spec/pft.md, 3)
    if (const RegisterValue* r = find_register(values, Etmteevr::name); r != nullptr && r->value != always)
        out.emplace_back(Etmteevr::name);
    if (const RegisterValue* value = find_register(values, Etmtecr1::name)) {
        const auto r = from_value<Etmtecr1>(static_cast<std::uint32_t>(value->value));
        if (r.start_stop || r.ranges != 0 || !r.exclude) out.emplace_back(Etmtecr1::name);
    }
    return out;
}

}  // namespace waymark::pft
