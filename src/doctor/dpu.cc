#include "waymark/doctor/dpu.h"

#include <fmt/format.h>

#include <algorithm>

#include "waymark/analysis/dpu_doubts.h"
#include "waymark/core/numbers.h"
#include "waymark/core/quote.h"
#include "waymark/core/wire.h"
#include "waymark/dpu/parser.h"
#include "waymark/dpu/registers.h"
#include "waymark/dpu/vtb.h"

namespace waymark::doctor {

namespace {

std::optional<std::uint32_t> value_of(const capture::DpuCapture& capture, std::string_view name) {
    const capture::Register* found = capture.find_register(name);
    return found == nullptr ? std::nullopt : std::optional(static_cast<std::uint32_t>(found->value));
}

class Both final : public dpu::ElementSink {
public:
    Both(dpu::ElementSink& first, dpu::ElementSink* second) : first_(first), second_(second) {}
    void consume(const dpu::Batch& batch) override {
        first_.consume(batch);
        if (second_ != nullptr) second_->consume(batch);
    }

private:
    dpu::ElementSink& first_;
    dpu::ElementSink* second_;
};

}  // namespace

bool has_content(const dpu::Totals& totals) {
    std::uint64_t entries = 0;
    for (const std::uint64_t n : totals.entries) entries += n;
    return entries != totals.count<dpu::Pad>() + totals.count<dpu::Closed>();
}

std::uint64_t missing_bytes(const capture::DpuCapture& capture, const pipeline::DpuTrace& trace, std::uint64_t there) {
    if (!capture.lines_written || trace.nexus || !capture.overruns.empty()) return 0;
    std::uint64_t lines = *capture.lines_written;
    if (!trace.vtb.single_address) {
        if (!trace.ring_known || trace.vtb.tea < trace.vtb.tsa) return 0;
        lines = std::min((std::uint64_t{trace.vtb.tea} - trace.vtb.tsa) / dpu::line_bytes + 1, lines);
    }
    // More lines than any file can contain: the number is damaged.
    if (lines > std::uint64_t{1} << 58) return 0;
    return lines * dpu::line_bytes - std::min<std::uint64_t>(lines * dpu::line_bytes, there);
}

std::optional<dpu::TraceMode> mode_of(const pipeline::DpuTrace& trace) {
    const auto first = trace.periods.front().format.mode;
    for (const pipeline::DpuPeriod& period : trace.periods) {
        if (period.format.mode == first) continue;
        // If modes change, only facts that all of them record are known.
        const auto changes = [](std::optional<dpu::TraceMode> m) {
            return m == dpu::TraceMode::task || m == dpu::TraceMode::flow;
        };
        const bool all = std::all_of(trace.periods.begin(), trace.periods.end(),
                                     [&](const pipeline::DpuPeriod& p) { return changes(p.format.mode); });
        return all ? dpu::TraceMode::task : dpu::TraceMode::sw_sample;
    }
    return first;
}

std::string mode_text(const pipeline::DpuTrace& trace) {
    std::string out;
    for (const pipeline::DpuPeriod& period : trace.periods) {
        const std::string each(period.format.mode ? name(*period.format.mode) : "not known");
        if (!out.ends_with(each)) out += (out.empty() ? "" : ", then ") + each;
    }
    return out;
}

namespace {

/// Whether every word is padding of a line, or was never written.
bool only_padding(const pipeline::DpuTrace& trace, Bytes dump) {
    const dpu::TraceFormat& format = trace.periods.front().format;
    for (std::size_t at = 0; at + 4 <= dump.size(); at += 4) {
        const std::uint32_t word = dpu::load_word(dump.data() + at, trace.order);
        if (word != 0 && word != format.word({dpu::FlagKind::dummy, 0, true}) &&
            word != format.word({dpu::FlagKind::vtb_filled, 0, true}))
            return false;
    }
    return true;
}

}  // namespace

std::string why_nothing(const capture::DpuCapture& capture, const pipeline::DpuTrace& trace, Bytes dump) {
    const auto mode = mode_of(trace);
    const std::string parent = capture.path.parent_path().string(), folder = parent.empty() ? "." : parent;
    const auto messages = [&](std::string_view before) {
        return fmt::format("{}; waymark packets {} lists its messages, and --nexus mirror records both", before,
                           shell_file(folder));
    };
    if (trace.nexus) return messages("the messages of the Nexus interface contain only padding and unknown messages");
    const std::string file = capture.buffer.filename().string();
    const auto tc = from_value<dpu::DpTc>(value_of(capture, "DP_TC").value_or(0));
    if (value_of(capture, "DP_TC") && tc.nxmode == static_cast<std::uint8_t>(dpu::NexusMode::only))
        return messages("DP_TC.NXMODE sends everything to the Nexus interface and nothing to the buffer");
    if (const std::uint64_t missing = missing_bytes(capture, trace, dump.size()); missing != 0)
        return fmt::format("{} has {} and lacks {} that were written; copy the whole file", file,
                           counted(dump.size(), "byte"), counted(missing, "byte"));
    if (capture.lines_written.value_or(1) != 0) {
        if (dump.empty()) return fmt::format("{} is empty; copy the whole of the buffer into it", file);
        if (!only_padding(trace, dump) && std::any_of(dump.begin(), dump.end(), [](std::uint8_t b) { return b != 0; }))
            return fmt::format(
                "the words in {} are not entries of mode {}; check DP_TC, dpu_base and byte_order in dpu.ini, and that "
                "the buffer belongs to this capture",
                file, mode ? mode_text(trace) : "any");
    }
    if (!capture.initial && capture.lines_written == std::uint64_t{0})
        return "tracing was never turned on: nothing wrote 1 to EN of DP_TC";
    const std::string none = "nothing was written to the buffer";
    if (!mode) return none + ", and without DP_TC it is not known what would have been";
    using enum dpu::TraceMode;
    switch (*mode) {
        case sw_sample:
            return none + ": mode SWSAMPLE writes when SAMPLE is asked for; record with --sample-every CYCLES";
        case edca5:
            return none +
                   ": mode EDCA5 writes when EDCA5 hits; let it watch what the program executes or accesses, "
                   "with --edca 5=SYMBOL";
        case user:
        case user_raw:
            return none +
                   ": modes USER and USERRAW hold what the program writes to DP_TD, with waymark_dp_td() of "
                   "waymark_dpu.h";
        case task:
        case flow:
        case eonce_raw:
        case eonce_comp: return none + ": nothing that this mode traces happened while tracing was on";
    }
    return none;
}

namespace {

constexpr std::string_view same_ids_key = "pid_and_did", same_ids_value = "equal";

/// No more cycles can be stalled or waited than were counted (section 8).
bool never_beyond_cycles(dpu::EventWire event) {
    using enum dpu::EventWire;
    switch (event) {
        case wait:
        case stall_all:
        case stall_prog:
        case stall_data:
        case stall_interlock:
        case stall_cof:
        case stall_wb:
        case stall_bank: return true;
        default: return false;
    }
}

std::string selector_text(std::uint8_t selector) {
    if (selector >= 1 && selector <= 6) return fmt::format("EDCA{}", selector - 1);
    switch (static_cast<dpu::Selector>(selector)) {
        case dpu::Selector::edcd: return "EDCD";
        case dpu::Selector::mark: return "MARK";
        case dpu::Selector::debugev: return "DEBUGEV";
        default: return {};
    }
}

/// A few words that state which contexts a qualifier selects; empty: all.
std::string qualifier_text(std::uint8_t qualifier, dpu::IdCompare compare, std::uint32_t rpid, std::uint32_t rdid) {
    std::string ids;
    if (compare == dpu::IdCompare::program || compare == dpu::IdCompare::both) ids += fmt::format("PID {}", rpid);
    if (compare == dpu::IdCompare::data || compare == dpu::IdCompare::both)
        ids += fmt::format("{}DID {}", ids.empty() ? "" : " ", rdid);
    const auto with = [&](std::string privilege) {
        return privilege + (privilege.empty() || ids.empty() ? "" : " ") + ids;
    };
    switch (static_cast<dpu::Qualifier>(qualifier & 3U)) {
        case dpu::Qualifier::any: return {};
        case dpu::Qualifier::user_match: return with("user");
        case dpu::Qualifier::supervisor_match: return with("supervisor");
        case dpu::Qualifier::match: return with("");
    }
    return {};
}

/// A parameter that is a number of cycles.
std::optional<std::uint64_t> cycles_parameter(const capture::DpuCapture& capture, std::string_view key) {
    std::uint64_t value = 0;
    return wire::scan_number(parameter(capture, key), value) ? std::optional(value) : std::nullopt;
}

}  // namespace

std::array<DpuCounter, dpu::counter_count> counters_of(const capture::DpuCapture& capture) {
    std::array<DpuCounter, dpu::counter_count> out;
    const auto cr = from_value<dpu::DpCr>(value_of(capture, "DP_CR").value_or(0));
    const std::uint32_t rpid = value_of(capture, "DP_RPID").value_or(0),
                        rdid = value_of(capture, "DP_RDID").value_or(0);
    const auto sr = value_of(capture, "DP_SR");
    for (unsigned c = 0; c < dpu::counter_count; ++c) {
        DpuCounter& counter = out[c];
        const auto triad = value_of(capture, c < dpu::counters_per_triad ? "DP_TAC" : "DP_TBC");
        if (!triad) continue;
        auto control = from_value<dpu::DpTac>(*triad);
        if (!control.tcen) {
            const auto own = value_of(capture, fmt::format("DP_C{}C", dpu::counter_name(c)));
            if (!own) continue;
            control = from_value<dpu::DpTac>(*own);
        }
        counter.event = control.ceg < dpu::event_sets ? dpu::event_set(control.ceg)[c % dpu::counters_per_triad]
                                                      : dpu::EventWire::none;
        if (counter.event == dpu::EventWire::none) continue;
        const auto in_history = [&](std::uint8_t capture::DpuCounterHistory::*mask) {
            return capture.history && ((*capture.history).*mask >> c & 1U) != 0;
        };
        const bool partial = in_history(&capture::DpuCounterHistory::partial);
        counter.rewritten = in_history(&capture::DpuCounterHistory::rewritten);
        std::string& when = counter.when;
        std::string rule;
        const auto say = [&](std::string_view few, std::string_view clause) {
            when += fmt::format("{}{}", when.empty() ? "" : ", ", few);
            rule += fmt::format("{}{}", rule.empty() ? "" : ", ", clause);
        };
        const auto compare = static_cast<dpu::IdCompare>(cr.tidcm);
        const auto in = [&](std::uint8_t qualifier) {
            const std::string text = qualifier_text(qualifier, compare, rpid, rdid);
            return text.empty() ? text : " in " + text;
        };
        const std::string from = selector_text(control.tenm), to = selector_text(control.tdm);
        if (const std::string context = qualifier_text(control.cegp, compare, rpid, rdid); !context.empty())
            say(context, fmt::format("in {} only", context));
        if (!from.empty()) say("from " + from, fmt::format("from {}{} on", from, in(control.tenmp)));
        if (!to.empty()) {
            when += from.empty() ? (when.empty() ? "to " : ", to ") : " to ";
            when += to;
            rule += fmt::format("{}up to {}{}", rule.empty() ? "" : from.empty() ? ", " : " ", to, in(control.tdmp));
        }
        const bool one_shot = control.cmode != static_cast<std::uint8_t>(dpu::CounterMode::trace);
        if (one_shot) say("one-shot", "once down to zero, where it stops");
        // The counter is not enabled by any register, and was not disabled when tracing stopped.
        const bool never = control.tenm == 0 && control.tdm != static_cast<std::uint8_t>(dpu::Selector::immediate) &&
                           sr && (*sr >> c & 1U) == 0;
        if (from.empty() && to.empty() && !one_shot && (partial || never))
            say("part of the time", "for a part of the time tracing was on");
        if (in_history(&capture::DpuCounterHistory::changed))
            say("changed on the way", "since its control was changed; before that, something else, or elsewhere");
        if (counter.rewritten) say("value written on the way", "from another value since it was written on the way");
        if (!when.empty())
            counter.rule = fmt::format("{} counts {} {}", dpu::counter_name(c), dpu::name(*counter.event), rule);
    }
    for (unsigned c = 0; c < dpu::counter_count; ++c) {
        DpuCounter& counter = out[c];
        if (!counter.event) {
            counter.name = dpu::counter_name(c);
            continue;
        }
        counter.name = dpu::name(*counter.event);
        if (counter.event == dpu::EventWire::none) continue;
        const auto same =
            std::count_if(out.begin(), out.end(), [&](const DpuCounter& o) { return o.event == counter.event; });
        if (same > 1) counter.name = fmt::format("{} {}", dpu::counter_name(c), counter.name);
        if (!counter.when.empty()) counter.name += fmt::format(" ({})", counter.when);
    }
    return out;
}

analysis::DpuSetup setup_of(const capture::DpuCapture& capture, const pipeline::DpuTrace& trace) {
    analysis::DpuSetup out;
    out.mode = mode_of(trace);
    out.complete = trace.complete;
    out.initial_context = trace.periods.front().start.context;
    out.initial = trace.periods.front().start.counters;
    // The state when tracing began does not describe the beginning of an overwritten buffer.
    constexpr std::uint64_t whole = std::uint64_t{1} << 32;
    if (const auto order = dpu::reading_order(trace.vtb, whole); trace.ring_known && order && order->overwritten) {
        out.initial_context.reset();
        out.initial.reset();
    }
    if (capture.final) {
        dpu::Counters& final = out.final.emplace();
        std::copy(capture.final->begin(), capture.final->end(), final.begin());
    }
    const bool same_ids =
        std::find(capture.parameters.begin(), capture.parameters.end(),
                  std::pair<std::string, std::string>(same_ids_key, same_ids_value)) != capture.parameters.end();
    for (const pipeline::DpuFilterChange& f : trace.filters)
        out.filters.push_back({f.offset, f.idflt && f.compare != dpu::IdCompare::neither, f.compare, f.rpid, f.rdid,
                               f.shows_did, same_ids});
    if (out.initial_context && capture.initial_context)
        out.initial_ids = {capture.initial_context->pid, capture.initial_context->did};
    out.began_before = cycles_parameter(capture, capture::off_before_key).value_or(0) != 0;
    out.ended_after = cycles_parameter(capture, capture::off_after_key).value_or(0) != 0;
    const auto counters = counters_of(capture);
    for (unsigned c = 0; c < dpu::counter_count && !out.cycles; ++c)
        if (counters[c].event == dpu::EventWire::cycles && counters[c].counts_all()) out.cycles = c;
    for (unsigned c = 0; c < dpu::counter_count; ++c)
        if (counters[c].rewritten) out.rewritten = static_cast<std::uint8_t>(out.rewritten | 1U << c);
    for (unsigned c = 0; c < dpu::counter_count && out.cycles; ++c)
        if (counters[c].event && counters[c].counts_all() && never_beyond_cycles(*counters[c].event))
            out.within_cycles = static_cast<std::uint8_t>(out.within_cycles | 1U << c);
    return out;
}

bool is_driven(const capture::DpuCapture& capture, const DpuCounter& counter) {
    if (!counter.event || !capture.driven || dpu::is_own(*counter.event)) return true;
    return std::find(capture.driven->begin(), capture.driven->end(), name(*counter.event)) != capture.driven->end();
}

std::string parameter(const capture::DpuCapture& capture, std::string_view name) {
    for (const auto& [key, value] : capture.parameters)
        if (key == name) return value;
    return {};
}

analysis::DpuSaid said_of(const capture::DpuCapture& capture, const pipeline::DpuTrace& trace,
                          const analysis::DpuSetup& setup, const pipeline::DpuDecoded& decoded, std::uint64_t there) {
    analysis::DpuSaid out;
    const auto counters = counters_of(capture);
    for (unsigned c = 0; c < dpu::counter_count; ++c) {
        if (counters[c].event != dpu::EventWire::none) out.events[c] = counters[c].name;
        out.unconnected[c] = !is_driven(capture, counters[c]);
        out.rewritten[c] = counters[c].rewritten;
        if (!counters[c].rule.empty()) out.rules.push_back(counters[c].rule);
    }
    out.mode = mode_of(trace);
    out.mode_text = mode_text(trace);
    out.cycles = setup.cycles;
    for (unsigned id = 0; id < 256; ++id)
        if (std::string task = parameter(capture, fmt::format("task{}", id)); !task.empty())
            out.tasks[static_cast<std::uint8_t>(id)] = std::move(task);
    out.program = parameter(capture, "program");
    if (std::string ended = parameter(capture, "ended");
        !ended.empty() && ended != capture::whole_run && !ended.ends_with(capture::recorded_up_to_there))
        out.ended = std::move(ended);
    out.cycles_note = parameter(capture, "cycles");
    out.layout = dpu::layout_note;
    out.totals = decoded.totals;
    const auto traced = [&](std::string_view name) {
        return capture.eonce_classes && std::find(capture.eonce_classes->begin(), capture.eonce_classes->end(), name) !=
                                            capture.eonce_classes->end();
    };
    out.all_changes = traced("TCHOF") && traced("TINT") && traced("TLOOP");
    out.lost_unseen = decoded.totals.lost == 0 && (value_of(capture, "DP_MR").value_or(0) >> 11 & 1U) != 0;
    out.offs = decoded.totals.offs;
    if (trace.nexus) {
        // Messages do not distinguish a hold from tracing being off.
        out.offs = std::min<std::uint64_t>(trace.periods.size() - 1, decoded.totals.holds);
        out.totals.holds -= out.offs;
    }
    out.unplaced = decoded.unplaced_periods;
    out.run_cycles = cycles_parameter(capture, capture::run_cycles_key);
    for (const auto key : {capture::off_before_key, capture::off_between_key, capture::off_after_key})
        if (const auto off = cycles_parameter(capture, key)) out.off_cycles = out.off_cycles.value_or(0) + *off;
    out.filter_changed = trace.filters.size() > 1;
    for (const pipeline::DpuFilterChange& f : trace.filters)
        if (f.idflt && f.compare != dpu::IdCompare::neither) {
            const std::string ids =
                qualifier_text(static_cast<std::uint8_t>(dpu::Qualifier::match), f.compare, f.rpid, f.rdid);
            if (out.filter.find(ids) == out.filter.npos) out.filter += (out.filter.empty() ? "" : " or ") + ids;
        }
    out.overwritten = decoded.overwritten;
    out.cut = decoded.cut;
    out.complete = setup.complete;
    out.missing_bytes = missing_bytes(capture, trace, there);
    return out;
}

Result<DpuSums> add_up(const pipeline::DpuTrace& trace, Bytes dump, analysis::DpuSetup& setup,
                       const analysis::DpuCode& code, const DpuBeside& beside) {
    DpuSums out;
    const auto pass = [&]() -> Status {
        out.costs = std::make_unique<analysis::DpuCosts>(setup, code);
        Both both(*out.costs, beside ? beside(setup) : nullptr);
        WM_ASSIGN_OR_RETURN(out.decoded, pipeline::decode_dpu(trace, dump, both));
        out.costs->finish();
        return Nothing{};
    };
    setup.doubtful.clear();
    WM_RETURN_IF_ERROR(pass());
    if (out.costs->wide().intervals == 0 && out.costs->wide().beyond == 0) return out;
    analysis::DpuDoubts doubts(setup);
    WM_RETURN_IF_ERROR(pipeline::decode_dpu(trace, dump, doubts));
    doubts.finish();
    setup.doubtful = doubts.readings();
    if (!setup.doubtful.empty()) WM_RETURN_IF_ERROR(pass());
    return out;
}

}  // namespace waymark::doctor
