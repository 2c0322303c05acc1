#include "waymark/pipeline/dpu.h"

#include <fmt/format.h>

#include <algorithm>

#include "waymark/dpu/nexus_decoder.h"

namespace waymark::pipeline {

namespace {

/// DP_TC.TMODE as a mode, if it is one of section 3.4.
std::optional<dpu::TraceMode> mode_of(std::uint64_t dp_tc) {
    const auto code = static_cast<unsigned>(dp_tc >> 1 & 0xfU);
    return code < dpu::trace_modes ? std::optional(static_cast<dpu::TraceMode>(code)) : std::nullopt;
}
/// The context; flags show the task ID if DP_TC.TIDS is set.
dpu::TaskContext context_of(const capture::DpuContext& c, std::uint64_t dp_tc) {
    return {c.supervisor, (dp_tc >> 5 & 1U) != 0 ? c.did : c.pid};
}

/// Finds the filters of the trace, and the offsets at which they take effect.
void find_filters(const capture::DpuCapture& capture, DpuTrace& out) {
    const auto value = [&](std::string_view name) -> std::uint32_t {
        const capture::Register* found = capture.find_register(name);
        return found == nullptr ? 0 : static_cast<std::uint32_t>(found->value);
    };
    const auto add = [&](std::uint64_t offset, const capture::DpuFilter& f) {
        out.filters.push_back({offset, f.idflt, f.tids, static_cast<dpu::IdCompare>(f.tidcm & 3U), f.rpid, f.rdid});
    };
    if (capture.filters.empty()) {
        const std::uint32_t tc = value("DP_TC");
        return add(0,
                   {0, (tc >> 11 & 1U) != 0, (tc >> 5 & 1U) != 0, static_cast<std::uint8_t>(value("DP_CR") >> 28 & 3U),
                    static_cast<std::uint8_t>(value("DP_RPID")), static_cast<std::uint8_t>(value("DP_RDID"))});
    }
    // Offsets count from the oldest remaining trace.
    std::uint64_t gone = 0;
    constexpr std::uint64_t all = std::uint64_t{1} << 32;
    if (!out.nexus && out.ring_known && !out.vtb.single_address && capture.lines_written)
        if (const auto order = dpu::reading_order(out.vtb, all); order && order->overwritten)
            gone = *capture.lines_written * dpu::line_bytes - order->bytes();
    for (const capture::DpuFilter& f : capture.filters) {
        const std::uint64_t at = out.nexus ? f.message_bytes.value_or(0) : 4 * f.words;
        if (at < gone) out.filters.clear();  // earlier trace is overwritten
        add(at < gone ? 0 : at - gone, f);
    }
    out.filters.front().offset = 0;
}

}  // namespace

Result<DpuTrace> dpu_trace(const capture::DpuCapture& capture) {
    if (capture.layout != dpu::layout_name)
        return Error{
            Errc::unsupported,
            fmt::format("{}: its words have layout '{}', but this Waymark knows {} alone; use the program that "
                        "made the capture, or a newer Waymark",
                        capture.path.string(), capture.layout, dpu::layout_name)};
    const auto value = [&](std::string_view name) -> std::optional<std::uint32_t> {
        const capture::Register* found = capture.find_register(name);
        return found == nullptr ? std::nullopt : std::optional(static_cast<std::uint32_t>(found->value));
    };
    DpuTrace out;
    out.order = capture.little_endian ? dpu::ByteOrder::little : dpu::ByteOrder::big;
    const auto tsa = value("DP_TSA"), tea = value("DP_TEA"), tw = value("DP_TW"), tc = value("DP_TC");
    const std::uint8_t c = capture.eonce_counters.value_or(0);
    out.ring_known = tsa && tea && tw;
    out.vtb = {tsa.value_or(0),
               tea.value_or(0),
               tw.value_or(0),
               (tc && (*tc >> 8 & 3U) == 1) || capture.readout,
               (value("DP_MR").value_or(0) >> 10 & 1U) != 0,
               capture.lines_written};
    const auto sr = value("DP_SR");
    out.complete = sr && (*sr >> 6 & 1U) == 0;

    std::vector<capture::DpuPeriod> periods = capture.periods;
    if (periods.empty()) periods.push_back({out.vtb.tw, tc.value_or(0), {}, {}});
    if (!periods.front().context) periods.front().context = capture.initial_context;
    for (const capture::DpuPeriod& period : periods) {
        DpuPeriod next;
        const bool known = tc || !capture.periods.empty();
        next.format = {capture.dpu_base, known ? mode_of(period.dp_tc) : std::nullopt, c};
        if (period.context && known) next.start.context = context_of(*period.context, period.dp_tc);
        out.periods.push_back(next);
        if (&period != &periods.front()) out.later_starts.push_back({period.dp_tw, period.lines_written});
    }
    out.nexus = !capture.nexus.empty() &&
                (capture.buffer.empty() || (tc && (*tc >> 24 & 3U) == static_cast<unsigned>(dpu::NexusMode::only)));
    if (out.nexus) out.complete = true;
    find_filters(capture, out);
    if (capture.readout) out.overruns = capture.overruns;
    if (capture.initial) {
        dpu::Counters& counters = out.periods.front().start.counters.emplace();
        std::copy(capture.initial->begin(), capture.initial->end(), counters.begin());
    }
    return out;
}

std::optional<std::vector<DpuModuleTime>> module_times(const capture::DpuCapture& capture, const DpuTrace& trace,
                                                       std::uint64_t trace_bytes) {
    if (capture.modules.clock != capture::trace_bytes_clock) return std::nullopt;
    std::uint64_t gone = 0;  // overwritten
    dpu::ReadingOrder order;
    if (!trace.nexus && !trace.vtb.single_address) {
        constexpr std::uint64_t all = std::uint64_t{1} << 32;
        const auto found = dpu::reading_order(trace.vtb, all);
        if (!trace.ring_known || !found || !capture.lines_written) return std::nullopt;
        order = *found;
        const std::uint64_t written = *capture.lines_written * dpu::line_bytes, kept = order.bytes();
        if (written < kept) return std::nullopt;
        // If a buffer was moved during the run, its trace is not the trace that its registers describe.
        const std::uint64_t lines = (std::uint64_t{trace.vtb.tea} - trace.vtb.tsa) / dpu::line_bytes + 1;
        const auto line = [&](std::uint32_t tw) { return (std::uint64_t{tw} - trace.vtb.tsa) / dpu::line_bytes; };
        for (const capture::DpuPeriod& period : capture.periods) {
            const capture::DpuPeriod& first = capture.periods.front();
            if (!period.lines_written || !first.lines_written) return std::nullopt;
            const std::uint64_t since = *period.lines_written - *first.lines_written;
            if (line(period.dp_tw) != (line(first.dp_tw) + since) % lines) return std::nullopt;
        }
        gone = written - kept;
    }
    const auto place = [&](std::uint64_t time) {
        std::uint64_t at = time < gone ? 0 : time - gone;
        // The missing part of a truncated file has no offset.
        std::uint64_t end = 0, lacking = 0;
        for (const dpu::Stretch& stretch : order.stretches) {
            const std::uint64_t there = std::min(stretch.bytes, trace_bytes - std::min(trace_bytes, stretch.offset));
            if (at < end + stretch.bytes) return std::min(at, end + there) - lacking;
            end += stretch.bytes;
            lacking += stretch.bytes - there;
        }
        return at - lacking;
    };
    std::vector<DpuModuleTime> out;
    for (const capture::Module& m : capture.modules.modules)
        out.push_back({place(m.from), m.to ? std::optional(place(*m.to)) : std::nullopt});
    return out;
}

const std::filesystem::path& trace_file(const capture::DpuCapture& capture, const DpuTrace& trace) {
    return trace.nexus ? capture.nexus : capture.buffer;
}

Result<DpuDecoded> decode_dpu(const DpuTrace& trace, Bytes dump, dpu::ElementSink& out) {
    DpuDecoded result;
    if (trace.nexus) {
        dpu::nexus::Decoder decoder(trace.periods[0].format.mode, trace.filters[0].shows_did, out,
                                    trace.periods[0].start);
        decoder.feed(dump);
        decoder.finish();
        result.totals = decoder.totals();
        return result;
    }
    dpu::ReadingOrder order;
    if (trace.ring_known || trace.vtb.single_address) {
        // Uses the order of the whole buffer, so that offsets are right even if a dump is truncated.
        constexpr std::uint64_t whole = std::uint64_t{1} << 32;
        WM_ASSIGN_OR_RETURN(order, dpu::reading_order(trace.vtb, trace.vtb.single_address ? dump.size() : whole));
    } else {
        result.unwritten_bytes = dump.size();
        dump = dpu::without_unwritten(dump);
        result.unwritten_bytes -= dump.size();
        if (!dump.empty()) order.stretches.push_back({0, dump.size()});
    }
    result.overwritten = order.overwritten;

    // Periods that began in overwritten trace: the last of them is active where the trace begins.
    const auto starts = trace.ring_known ? dpu::period_starts(trace.vtb, order, trace.later_starts)
                                         : std::vector<std::optional<std::uint64_t>>(trace.later_starts.size());
    std::size_t period = 0;
    while (trace.ring_known && period < starts.size() && !starts[period]) ++period;
    dpu::Decoder decoder(trace.periods[period].format, trace.order, out,
                         order.overwritten || period != 0 ? dpu::StartState{} : trace.periods[0].start);
    std::uint64_t at = 0;  // in the trace
    std::size_t overrun = 0;
    for (const dpu::Stretch& stretch : order.stretches) {
        for (std::uint64_t done = 0; done < stretch.bytes;) {
            while (period < starts.size() && starts[period] && *starts[period] <= at) {
                ++period;
                decoder.restart(trace.periods[period].format, trace.periods[period].start);
            }
            std::uint64_t size = stretch.bytes - done;
            if (period < starts.size() && starts[period]) size = std::min(size, *starts[period] - at);
            for (; overrun < trace.overruns.size() && trace.overruns[overrun] <= at; ++overrun) decoder.reset();
            if (overrun < trace.overruns.size()) size = std::min(size, trace.overruns[overrun] - at);
            const std::uint64_t from = std::min<std::uint64_t>(stretch.offset + done, dump.size());
            const std::uint64_t there = std::min<std::uint64_t>(size, dump.size() - from);
            decoder.feed(dump.subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(there)));
            if (there < size) {
                decoder.reset();
                result.cut = true;
            }
            done += size;
            at += size;
        }
    }
    // Skips periods that wrote nothing.
    for (; period < starts.size() && starts[period]; ++period)
        decoder.restart(trace.periods[period].format, trace.periods[period].start);
    result.unplaced_periods = starts.size() - period;
    decoder.finish(trace.complete);
    result.totals = decoder.totals();
    return result;
}

}  // namespace waymark::pipeline
