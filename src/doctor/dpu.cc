#include "waymark/doctor/dpu.h"

#include <fmt/format.h>

#include <algorithm>

#include "text.h"
#include "waymark/analysis/dpu_doubts.h"
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

bool tells(const dpu::Totals& totals) {
    std::uint64_t entries = 0;
    for (const std::uint64_t n : totals.entries) entries += n;
    return entries != totals.count<dpu::Pad>() + totals.count<dpu::Closed>();
}

std::uint64_t missing_bytes(const capture::DpuCapture& capture, const pipeline::DpuTrace& trace, std::uint64_t there) {
    if (!capture.lines_written || capture.buffer.empty()) return 0;
    std::uint64_t lines = *capture.lines_written;
    if (!trace.vtb.single_address) {
        if (!trace.ring_known || trace.vtb.tea < trace.vtb.tsa) return 0;
        lines = std::min((std::uint64_t{trace.vtb.tea} - trace.vtb.tsa) / dpu::line_bytes + 1, lines);
    }
    // More than a file can be: the number is damaged.
    if (lines > std::uint64_t{1} << 58) return 0;
    return lines * dpu::line_bytes - std::min<std::uint64_t>(lines * dpu::line_bytes, there);
}

std::optional<dpu::TraceMode> mode_of(const pipeline::DpuTrace& trace) {
    const auto first = trace.periods.front().format.mode;
    for (const pipeline::DpuPeriod& period : trace.periods) {
        if (period.format.mode == first) continue;
        // Where modes change, only what all of them tell is told.
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

std::string why_nothing(const capture::DpuCapture& capture, const pipeline::DpuTrace& trace, Bytes dump) {
    const auto mode = mode_of(trace);
    const std::string parent = capture.path.parent_path().string(), folder = parent.empty() ? "." : parent;
    const auto messages = [&](std::string_view before) {
        return fmt::format("{}; 'waymark packets {}' lists its messages, and --nexus mirror records both", before,
                           folder);
    };
    if (capture.buffer.empty()) return messages("the capture has no buffer, only what the Nexus interface sent");
    const std::string file = capture.buffer.filename().string();
    const auto tc = dpu::from_value<dpu::DpTc>(value_of(capture, "DP_TC").value_or(0));
    if (value_of(capture, "DP_TC") && tc.nxmode == static_cast<std::uint8_t>(dpu::NexusMode::only))
        return messages("DP_TC.NXMODE sends everything to the Nexus interface and nothing to the buffer");
    if (const std::uint64_t missing = missing_bytes(capture, trace, dump.size()); missing != 0)
        return fmt::format("{} has {} and lacks {} that were written; copy the whole of it", file,
                           counted(dump.size(), "byte"), counted(missing, "byte"));
    if (capture.lines_written.value_or(1) != 0) {
        if (dump.empty()) return fmt::format("{} is empty; copy the whole of the buffer into it", file);
        if (std::any_of(dump.begin(), dump.end(), [](std::uint8_t b) { return b != 0; }))
            return fmt::format(
                "the words in {} are no entries of mode {}; check DP_TC, dpu_base and byte_order in "
                "dpu.ini, and that the buffer is of this capture",
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

analysis::DpuSetup setup_of(const capture::DpuCapture& capture, const pipeline::DpuTrace& trace) {
    analysis::DpuSetup out;
    out.mode = mode_of(trace);
    out.complete = trace.complete;
    out.initial_context = trace.periods.front().start.context;
    out.initial = trace.periods.front().start.counters;
    // What was true when tracing began says nothing of where an overwritten buffer begins.
    constexpr std::uint64_t whole = std::uint64_t{1} << 32;
    if (const auto order = dpu::reading_order(trace.vtb, whole); trace.ring_known && order && order->overwritten) {
        out.initial_context.reset();
        out.initial.reset();
    }
    if (capture.final) {
        dpu::Counters& final = out.final.emplace();
        std::copy(capture.final->begin(), capture.final->end(), final.begin());
    }
    const auto tc = dpu::from_value<dpu::DpTc>(value_of(capture, "DP_TC").value_or(0));
    const auto cr = dpu::from_value<dpu::DpCr>(value_of(capture, "DP_CR").value_or(0));
    const auto reference = value_of(capture, tc.tids ? "DP_RDID" : "DP_RPID");
    if (tc.idflt && cr.tidcm != 0 && reference) out.filter = static_cast<std::uint8_t>(*reference);
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
    if (out.costs->wide().intervals == 0) return out;
    analysis::DpuDoubts doubts(setup);
    WM_RETURN_IF_ERROR(pipeline::decode_dpu(trace, dump, doubts));
    doubts.finish();
    setup.doubtful = doubts.readings();
    if (!setup.doubtful.empty()) WM_RETURN_IF_ERROR(pass());
    return out;
}

std::string cost_and_remedy(const DpuImageProblem& problem) {
    return fmt::format(
        "its functions are shown by their addresses, and returns are told from calls by where they lead. Give a whole "
        "copy of the program with --image FILE{}",
        problem.image.load_bias == 0 ? std::string() : fmt::format("@{:#x}", problem.image.load_bias));
}

std::vector<DpuImageProblem> name_code(const capture::DpuCapture& capture, analysis::DpuCode& code) {
    std::vector<DpuImageProblem> out;
    // The folder has copies under other names.
    const auto name_of = [&](const capture::DpuImage& image) {
        const auto info = image::DebugInfo::open(image.path);
        if (info && !info->build_id().empty())
            for (const capture::Module& m : capture.modules.modules)
                if (m.build_id == info->build_id()) return m.file;
        return std::string();
    };
    for (const capture::DpuImage& image : capture.images)
        if (std::string problem = code.add_image(image.path.string(), image.load_bias, name_of(image));
            !problem.empty())
            out.push_back({image, std::move(problem)});
    for (const capture::DpuSymbol& symbol : capture.symbols) code.add_name(symbol.address, symbol.name);
    return out;
}

}  // namespace waymark::doctor
