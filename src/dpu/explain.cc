#include "waymark/dpu/explain.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "names.h"
#include "waymark/dpu/events.h"
#include "waymark/dpu/vtb.h"
#include "waymark/protocol/explanation_builder.h"

namespace waymark::dpu {

namespace {

using protocol::TraceEffect;

class UnitExplainer {
public:
    UnitExplainer(const Registers& r, const ExplainOptions& options)
        : r_(r), options_(options), build_(options.given) {}

    protocol::UnitExplanation explain() {
        protocol::UnitExplanation& out = build_.out;
        out.unit = "DPU";
        out.document = "docs/spec/dpu.md";
        out.levels.push_back({"every task", {}});
        if (build_.asked(DpTc::name)) {
            control();
            if (r_.tc.en && r_.tc.tmode < trace_modes) mode();
        }
        filter();
        buffer();
        build_.describe();
        contents();
        return std::move(out);
    }

private:
    void find(TraceEffect effect, std::string_view reg, std::string_view field, std::string text, std::string remedy,
              std::string section) {
        build_.find(effect, std::string(reg) + (field.empty() ? "" : ".") + std::string(field), std::move(text),
                    std::move(remedy), std::move(section));
    }
    [[nodiscard]] bool reaches_buffer() const {
        return !build_.given(DpTc::name) || r_.tc.nexus_mode() != NexusMode::only;
    }

    void control() {
        const DpTc& tc = r_.tc;
        if (!tc.en)
            find(TraceEffect::stops, DpTc::name, "EN",
                 "DP_TC.EN is 0: tracing is off, or was when the registers were read",
                 "write 1 to DP_TC.EN, after all other registers are set", "3.4");
        if (tc.tmpdis)
            find(TraceEffect::stops, DpTc::name, "TMPDIS",
                 "DP_TC.TMPDIS is 1: tracing is held, and events of that time have no entry", "write 0 to it", "5.10");
        if (tc.tmode >= trace_modes)
            find(TraceEffect::stops, DpTc::name, "TMODE",
                 fmt::format("DP_TC.TMODE is {}, a reserved mode, which traces nothing", tc.tmode),
                 fmt::format("write EN = 0 first, then a mode from 0 to {}", trace_modes - 1), "3.4");
        if (tc.nexus_mode() == NexusMode::only)
            find(TraceEffect::may, DpTc::name, "NXMODE",
                 "DP_TC.NXMODE is 3: all trace goes to the Nexus interface, and the trace buffer does not change",
                 "write EN = 0 first, then NXMODE = 1 for both, or 0 for the buffer alone", "5.8");
    }

    void mode() {
        const TraceMode mode = r_.tc.mode();
        const auto depends = [&](std::string what, std::string section = "5.3") {
            find(TraceEffect::may, DpTc::name, "TMODE", fmt::format("DP_TC.TMODE is {}: {}", name(mode), what), "",
                 std::move(section));
        };
        const auto needs = [&](bool passes, std::string_view classes, std::string_view events) {
            if (options_.eonce && !passes)
                return find(
                    TraceEffect::stops, "TB_CTRL", "",
                    fmt::format("the EOnCE does not trace {}, so mode {} does not see {}", classes, name(mode), events),
                    fmt::format("turn {} of the EOnCE on", classes), "5.3");
            depends(fmt::format("an entry is made of {}{}", events,
                                options_.eonce ? "" : fmt::format(", if the EOnCE traces {}", classes)));
        };
        const EonceSetup none, &e = options_.eonce ? *options_.eonce : none;
        switch (mode) {
            case TraceMode::task:
                return needs(e.passes(ItemKind::interrupt) || e.passes(ItemKind::rte), "TINT and TRTE",
                             "interrupts and their returns that change the task or the privilege");
            case TraceMode::flow:
                return needs(e.passes(ItemKind::interrupt) || e.passes(ItemKind::rte) || e.passes(ItemKind::call),
                             "TINT, TRTE and TSUB", "calls, interrupts and returns");
            case TraceMode::eonce_raw:
            case TraceMode::eonce_comp:
                return needs(e.tchof || e.tint || e.texec || e.tmark || e.tloop || e.tsub || e.trte,
                             "any class (TCHOF, TINT, TEXEC, TMARK, TLOOP, TSUB, TRTE)", "what the EOnCE traces");
            case TraceMode::sw_sample: return depends("an entry is made when software writes 1 to DP_TC.SAMPLE");
            case TraceMode::edca5: return depends("an entry is written when channel EDCA5 of the EOnCE hits");
            case TraceMode::user:
            case TraceMode::user_raw: return depends("an entry is made when software writes to DP_TD");
        }
    }

    void filter() {
        if (!build_.given(DpTc::name) || !r_.tc.idflt || !build_.asked(DpCr::name)) return;
        const auto compare = static_cast<IdCompare>(r_.cr.tidcm);
        if (compare == IdCompare::neither)
            return find(TraceEffect::note, DpTc::name, "IDFLT",
                        "DP_TC.IDFLT is 1, but DP_CR.TIDCM is 0: no ID is compared, and every event counts as a match",
                        "write 1, 2 or 3 to DP_CR.TIDCM to compare the program ID, the data ID or both", "5.1");
        std::string ids;
        const auto id = [&](bool compared, std::string_view reg, std::string_view what, std::uint32_t value) {
            if (!compared) return;
            ids += ids.empty() ? "" : " and ";
            ids += build_.asked(reg) ? fmt::format("{} {} ({})", what, value, reg)
                                     : fmt::format("the {} of {}, which is not given", what, reg);
        };
        id(compare != IdCompare::data, DpRpid::name, "program ID", r_.rpid.value);
        id(compare != IdCompare::program, DpRdid::name, "data ID", r_.rdid.value);
        find(TraceEffect::may, DpTc::name, "IDFLT",
             fmt::format("DP_TC.IDFLT is 1: only events that enter or leave {} make entries", ids),
             "write 0 to DP_TC.IDFLT to trace every task", "5.2");
    }

    void buffer() {
        if (!reaches_buffer()) return;
        const bool single = build_.given(DpTc::name) && r_.tc.vtb_mode() == VtbMode::single_address;
        if (single) {
            if (build_.asked(DpTw::name))
                find(TraceEffect::note, DpTc::name, "VTBWM",
                     fmt::format("DP_TC.VTBWM is 1: every line is written to {:#010x}, over the previous line",
                                 to_value(r_.tw)),
                     "", "5.7");
            return;
        }
        const bool first = build_.asked(DpTsa::name), last = build_.asked(DpTea::name), at = build_.asked(DpTw::name);
        if (first && last && r_.tea.value < r_.tsa.value)
            return find(TraceEffect::stops, DpTea::name, "",
                        fmt::format("DP_TEA {:#x} lies before DP_TSA {:#x}: the unit keeps EN at 0", to_value(r_.tea),
                                    to_value(r_.tsa)),
                        "write the address of the buffer's last line to DP_TEA, before EN", "3.4");
        if (first && last && at && (r_.tw.value < r_.tsa.value || r_.tw.value > r_.tea.value))
            return find(TraceEffect::stops, DpTw::name, "",
                        fmt::format("DP_TW {:#x} lies outside the buffer of {:#x} to {:#x}: the unit keeps EN at 0",
                                    to_value(r_.tw), to_value(r_.tsa), to_value(r_.tea)),
                        "write DP_TSA's value to DP_TW, before EN", "3.4");
        if (first && last && build_.given(DpTc::name) && r_.tc.vtb_mode() == VtbMode::trace_event_request &&
            build_.asked(DpTer::name) &&
            (to_value(r_.ter) < to_value(r_.tsa) || to_value(r_.ter) > to_value(r_.tea) + (line_bytes - 1)))
            find(TraceEffect::note, DpTer::name, "",
                 fmt::format("DP_TER {:#x} lies outside the buffer: its readout is never requested, and the oldest "
                             "trace is overwritten",
                             to_value(r_.ter)),
                 "write an address inside the buffer", "5.7");
    }

    void contents() {
        const bool known = build_.given(DpTc::name) && r_.tc.tmode < trace_modes;
        const auto row = [&](std::string what, bool traced, std::string text, std::string field) {
            build_.out.contents.push_back({std::move(what), traced, std::move(text), std::move(field)});
        };
        if (!known) return;
        const TraceMode mode = r_.tc.mode();
        const bool addresses = mode == TraceMode::task || mode == TraceMode::flow || mode == TraceMode::eonce_raw ||
                               mode == TraceMode::eonce_comp;
        const bool raw = mode == TraceMode::user_raw;
        row("program counters", addresses, addresses ? "source and target, or the end of a loop" : "", "DP_TC.TMODE");
        row("task and privilege", !raw, raw ? "" : fmt::format("the {} ID (TIDS)", r_.tc.tids ? "data" : "program"),
            "DP_TC.TMODE");
        const bool user = mode == TraceMode::user || raw || r_.tc.uden;
        row("user data", user, user ? "what software writes to DP_TD" : "", "DP_TC.UDEN");
        const bool nexus = r_.tc.nxmode != 0;
        row("Nexus messages", nexus, "", "DP_TC.NXMODE");
        for (unsigned c = 0; c < counter_count; ++c) counter(c, mode);
    }

    void counter(unsigned c, TraceMode mode) {
        const bool a = c < counters_per_triad;
        if (!build_.asked(a ? DpTac::name : DpTbc::name)) return;
        DpTac control = a ? r_.tac : from_value<DpTac>(to_value(r_.tbc));
        std::string reg(a ? DpTac::name : DpTbc::name);
        const bool triad = control.tcen;
        if (!triad) {
            reg = fmt::format("DP_C{}C", counter_name(c));
            if (!build_.asked(reg)) return;
            control = from_value<DpTac>(*r_.get(Registers::find(reg)->offset));
        }
        const EventWire event =
            control.ceg < event_sets ? event_set(control.ceg)[c % counters_per_triad] : EventWire::none;
        std::string text;
        bool counts = false;
        const std::string_view t = triad ? "T" : "";
        if (event == EventWire::none)
            text = fmt::format("{}.CEG is {}: it counts nothing", reg, control.ceg);
        else if (control.tenm == 0)
            text = fmt::format("{} is never enabled: {}.{}ENM is 0", name(event), reg, t);
        else if (!has_readings(mode))
            text = fmt::format("counts {}, but mode {} writes no counters unless SAMPLE is written", name(event),
                               name(mode));
        else
            counts = true;
        if (counts) {
            text = fmt::format(
                "{}{}", name(event),
                control.cmode == static_cast<std::uint8_t>(CounterMode::trace) ? "" : ", once down to zero");
            if (control.tenm != static_cast<std::uint8_t>(Selector::immediate))
                text += fmt::format(", from an event on ({}.{}ENM is {})", reg, t, control.tenm);
            if (control.tdm != 0)
                text += fmt::format(", up to an event ({}.{}DM is {})", reg, triad ? "T" : "", control.tdm);
            if (control.cegp != 0) text += fmt::format(", in some contexts only ({}.CEGP is {})", reg, control.cegp);
        }
        build_.out.contents.push_back({fmt::format("counter {}", counter_name(c)), counts, text, reg + ".CEG"});
    }

    const Registers& r_;
    const ExplainOptions& options_;
    protocol::ExplanationBuilder build_;
};

}  // namespace

protocol::UnitExplanation explain(const Registers& registers, const ExplainOptions& options) {
    return UnitExplainer(registers, options).explain();
}

}  // namespace waymark::dpu
