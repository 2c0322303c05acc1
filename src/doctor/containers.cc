// Captures that say themselves what they are: folders of a DPU, perf.data files.
#include <fmt/format.h>

#include <algorithm>

#include "text.h"
#include "waymark/analysis/quality.h"
#include "waymark/analysis/samples.h"
#include "waymark/capture/byte_stream.h"
#include "waymark/capture/dpu_folder.h"
#include "waymark/doctor/examine.h"
#include "waymark/pipeline/dpu.h"

namespace waymark::doctor {

namespace {

void sort_and_conclude(Report& report, std::uint64_t told, std::string_view what) {
    std::stable_sort(report.findings.begin(), report.findings.end(), [](const Finding& a, const Finding& b) {
        return std::pair(a.severity, a.offset) < std::pair(b.severity, b.offset);
    });
    const std::size_t errors = report.count(Severity::error), warnings = report.count(Severity::warning);
    report.labelled = true;
    report.verdict =
        told == 0       ? fmt::format("There are no {} to diagnose.", what)
        : errors != 0   ? fmt::format("This capture needs {} before it can be trusted.", counted(errors, "correction"))
        : warnings != 0 ? fmt::format("This capture decodes; {} in it should be known.", counted(warnings, "thing"))
                        : fmt::format("Nothing is wrong with this capture: {} {}.", told, what);
}

class FirstGap final : public dpu::ElementSink {
public:
    void consume(const dpu::Batch& batch) override {
        for (const dpu::Element& e : batch.elements) {
            if (e.kind == dpu::ElementKind::gap && e.reason != GapReason::padding && !gap) gap = e.offset;
            if (e.kind == dpu::ElementKind::lost && !lost) lost = e.offset;
        }
    }
    std::optional<Offset> gap, lost;
};

class NoSamples final : public analysis::SampleSink {
public:
    void consume(const analysis::SampleBatch&) override {}
    [[nodiscard]] std::unique_ptr<SampleSink> fork() const override { return std::make_unique<NoSamples>(); }
    void join(SampleSink&) override {}
};

}  // namespace

Result<Report> examine_dpu(const std::filesystem::path& folder) {
    WM_ASSIGN_OR_RETURN(const capture::DpuCapture capture, capture::read_dpu_folder(folder));
    Report report;
    const auto add = [&](Severity severity, std::string kind, std::optional<Offset> at, std::string found,
                         std::string expected, std::string cause, std::string advice) {
        report.findings.push_back({severity,
                                   std::move(kind),
                                   capture.buffer.string(),
                                   {},
                                   at,
                                   std::move(found),
                                   std::move(expected),
                                   std::move(cause),
                                   std::move(advice)});
    };
    for (const capture::Problem& problem : capture.problems)
        add(Severity::warning, "description", {}, capture::to_string(problem), "a complete dpu.ini",
            "what is missing cannot be told", "add it, if it is known");
    WM_ASSIGN_OR_RETURN(const pipeline::DpuTrace trace, pipeline::dpu_trace(capture));
    std::uint64_t entries = 0;
    if (!capture.buffer.empty()) {
        WM_ASSIGN_OR_RETURN(const auto stream, capture::open_bytes(capture.buffer));
        constexpr std::uint64_t most = std::uint64_t{1} << 30;
        WM_ASSIGN_OR_RETURN(const auto dump, capture::read_all(*stream, most));
        FirstGap sink;
        WM_ASSIGN_OR_RETURN(const pipeline::DpuDecoded decoded, pipeline::decode_dpu(trace, dump, sink));
        const dpu::Totals& t = decoded.totals;
        for (const std::uint64_t n : t.entries) entries += n;
        BufferReport buffer;
        buffer.name = capture.buffer.filename().string();
        buffer.files = {capture.buffer};
        buffer.looked_at = dump.size();
        buffer.bytes = dump.size();
        buffer.pieces = 1;
        buffer.format = capture::Buffer::Format::source_data;
        report.buffers.push_back(std::move(buffer));
        if (t.lost_bytes() != 0)
            add(Severity::warning, "damaged-entries", sink.gap,
                fmt::format("{} of {} {} no entry", t.lost_bytes(), counted(t.bytes, "byte"), are(t.lost_bytes())),
                "entries of layout WL-1",
                "damage, another layout or byte order, or the oldest line of a buffer that wrapped",
                "check layout, dpu_base and the byte order in dpu.ini");
        if (t.lost != 0)
            add(Severity::warning, "overflow", sink.lost,
                fmt::format("{} found no room in the unit", counted(t.lost, "entry", "entries")), "none",
                "the unit sampled faster than memory took", "sample less often, or trace fewer kinds");
        if (t.wide != 0)
            add(Severity::warning, "counter-wrap", {},
                fmt::format("{} of {} {} above half the range", t.wide, counted(t.readings, "counter interval"),
                            are(t.wide)),
                "intervals that cannot have wrapped unseen", "readings lie too far apart", "sample more often");
        if (decoded.overwritten)
            add(Severity::note, "overwritten", {}, "older trace was overwritten", "all since the first enable",
                "the buffer wrapped", "a larger buffer");
        if (decoded.cut)
            add(Severity::warning, "cut", {}, "trace is missing from the dump", "DP_TSA to DP_TEA + 31",
                "the file is shorter than the buffer", "read the whole buffer out");
        if (!trace.ring_known)
            add(Severity::warning, "ring", {}, "DP_TSA, DP_TEA or DP_TW is not known", "all three",
                "dpu.ini does not name them", "where the trace begins in the buffer is guessed; add them");
        if (!trace.complete)
            add(Severity::note, "incomplete", {}, "the unit had not written all it had (DP_SR.TWBA)", "TWBA = 0",
                "the buffer was read too early", "stop the unit, and wait for TWBA, before reading");
    }
    sort_and_conclude(report, entries, "entries");
    return report;
}

Result<Report> examine_perf(const std::filesystem::path& file) {
    WM_ASSIGN_OR_RETURN(const analysis::SampleCapture capture, analysis::open_samples(file));
    NoSamples sink;
    const analysis::SampleTotals totals = analysis::run_samples(capture, {}, sink, 1);
    const analysis::Quality q = analysis::quality_of(capture, totals);
    Report report;
    const auto add = [&](Severity severity, std::string kind, std::optional<Offset> at, std::string found,
                         std::string expected, std::string cause, std::string advice) {
        report.findings.push_back({severity,
                                   std::move(kind),
                                   file.filename().string(),
                                   {},
                                   at,
                                   std::move(found),
                                   std::move(expected),
                                   std::move(cause),
                                   std::move(advice)});
    };
    for (const Error& e : capture.damage)
        add(Severity::error, "unreadable", e.offset, e.message, "a file that can be read to its end",
            "the compressed file is damaged or cut", "get the file anew");
    for (const Error& e : totals.errors)
        add(Severity::error, "unreadable", e.offset, e.message, "a file that can be read to its end", "a damaged disk",
            "get the file anew");
    if (q.lost_bytes() + q.damaged_bytes() != 0)
        add(Severity::warning, "damaged-records", {},
            fmt::format("{} in no record, {} of damage inside records", counted(q.lost_bytes(), "byte"),
                        q.damaged_bytes()),
            "records only", "the kernel cut a record at the end of a buffer, or bytes were damaged",
            "waymark spe records shows where; a larger AUX buffer (perf record -m ,SIZE) is cut less often");
    if (q.truncated.stretches != 0)
        add(Severity::warning, "overflow", {},
            fmt::format("{} of trace {} truncated", counted(q.truncated.stretches, "stretch", "stretches"),
                        are(q.truncated.stretches)),
            "none", "perf did not empty the AUX buffer in time", "a larger buffer (-m ,SIZE), or a larger period (-c)");
    if (q.collided.stretches != 0)
        add(Severity::note, "collision", {},
            fmt::format("{} saw collisions", counted(q.collided.stretches, "stretch", "stretches")), "none",
            "a sample was taken while the one before was not finished", "a larger period (-c)");
    if (q.container_losses != 0)
        add(Severity::warning, "container", {},
            fmt::format("{} of the file itself {} lost", counted(q.container_lost_bytes, "byte"),
                        are(q.container_lost_bytes)),
            "a whole file", "perf.data is damaged or cut", "get the file anew");
    if (q.lost_events != 0)
        add(Severity::warning, "lost-events", {}, fmt::format("perf lost {} of its own records", q.lost_events), "none",
            "mappings or threads may be missing", "a larger buffer (-m SIZE)");
    if (q.unfinished)
        add(Severity::note, "unfinished", {}, "the recorder was ended before it had finished the file",
            "a finished header", "perf was killed", "end perf with SIGINT");
    for (const auto& [midr, erratum] : q.errata)
        add(Severity::note, "erratum", {}, fmt::format("erratum {}: {}", erratum.number, erratum.text), "none",
            analysis::core_name(midr), "read shares with that in mind");
    BufferReport buffer;
    buffer.name = file.filename().string();
    buffer.files = {file};
    for (const analysis::StreamQuality& s : q.streams) buffer.looked_at += s.bytes;
    buffer.bytes = buffer.looked_at;
    buffer.pieces = 1;
    buffer.format = capture::Buffer::Format::source_data;
    report.buffers.push_back(std::move(buffer));
    sort_and_conclude(report, q.records, "samples");
    return report;
}

}  // namespace waymark::doctor
