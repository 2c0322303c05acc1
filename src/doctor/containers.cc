// Examines captures that describe themselves: folders of a DPU, perf.data files.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "examination.h"
#include "waymark/analysis/dpu_findings.h"
#include "waymark/analysis/profile.h"
#include "waymark/analysis/program.h"
#include "waymark/analysis/quality.h"
#include "waymark/analysis/samples.h"
#include "waymark/analysis/spe_answers.h"
#include "waymark/answers/account.h"
#include "waymark/capture/byte_stream.h"
#include "waymark/capture/dpu_folder.h"
#include "waymark/capture/perf_cs_etm.h"
#include "waymark/core/numbers.h"
#include "waymark/doctor/dpu.h"
#include "waymark/doctor/examine.h"
#include "waymark/pipeline/dpu.h"

namespace waymark::doctor {

namespace {

void sort_and_conclude(ExaminationReport& report, std::uint64_t examined, std::string_view what) {
    std::stable_sort(report.findings.begin(), report.findings.end(),
                     [](const CaptureFinding& a, const CaptureFinding& b) {
                         return std::pair(a.severity, a.offset) < std::pair(b.severity, b.offset);
                     });
    const std::size_t errors = report.count(Severity::error), warnings = report.count(Severity::warning);
    const bool without_code = std::any_of(report.findings.begin(), report.findings.end(), [](const CaptureFinding& f) {
        return f.kind == "image-missing" && f.severity != Severity::note;
    });
    report.labelled = true;
    report.recognised = examined != 0;
    report.verdict =
        examined == 0  ? fmt::format("There are no {} to diagnose.", what)
        : errors != 0  ? fmt::format("This capture needs {} before it can be trusted.", counted(errors, "correction"))
        : without_code ? fmt::format("This capture decodes, but some code that it needs is missing; it has {}.",
                                     counted(warnings, "warning"))
        : answers::completeness(report.account).strict
            ? fmt::format("This capture decodes in part{}.",
                          warnings != 0 ? fmt::format("; it has {}", counted(warnings, "warning")) : "")
        : warnings != 0 ? fmt::format("This capture decodes; it has {}.", counted(warnings, "warning"))
                        : fmt::format("Nothing is wrong with this capture: {} {}.", grouped(examined), what);
}

/// Finds the first place of each kind of problem.
class FirstTrouble final : public dpu::ElementSink {
public:
    void consume(const dpu::Batch& batch) override {
        for (const dpu::Element& e : batch.elements) {
            if (e.kind == dpu::ElementKind::gap && e.reason == GapReason::framing && !cut) cut = e.offset;
            if (e.kind == dpu::ElementKind::gap && e.reason != GapReason::framing && e.reason != GapReason::padding &&
                !gap)
                gap = e.offset;
            if (e.kind == dpu::ElementKind::lost && !lost) lost = e.offset;
        }
    }
    std::optional<Offset> gap, cut, lost;
};

/// Collects the findings of one buffer.
class Findings {
public:
    Findings(ExaminationReport& report, std::string buffer) : report_(report), buffer_(std::move(buffer)) {}
    void add(Severity severity, std::string kind, std::optional<Offset> at, std::string found, std::string expected,
             std::string cause, std::string advice) {
        report_.findings.push_back({severity,
                                    std::move(kind),
                                    buffer_,
                                    {},
                                    at,
                                    std::move(found),
                                    std::move(expected),
                                    std::move(cause),
                                    std::move(advice)});
    }

private:
    ExaminationReport& report_;
    std::string buffer_;
};

/// The texts that doctor adds to a finding of the trace (analysis/dpu_findings.h).
struct DpuWords {
    analysis::DpuFinding::Kind kind;
    Severity severity;
    std::string_view name, expected, cause, advice;
};
constexpr std::array dpu_words = [] {
    using Kind = analysis::DpuFinding::Kind;
    constexpr std::string_view no_wrap = "intervals that cannot have wrapped unnoticed";
    return std::array{
        DpuWords{Kind::cut,
                 Severity::error,
                 "cut",
                 {},
                 "the file is shorter than the data that the unit wrote: it was cut, or the buffer was not read out to "
                 "its end",
                 "copy the whole file; the part that is there is read"},
        DpuWords{Kind::gap, Severity::warning, "damaged-entries", "entries of layout WL-1",
                 "damage, another layout or byte order, or the oldest line of a buffer that wrapped",
                 "check layout, dpu_base and the byte order in dpu.ini"},
        DpuWords{Kind::next_to_gap, Severity::warning, "doubtful-entries", "none",
                 "entries next to bytes that are not an entry may be a part of them", "waymark packets shows them"},
        DpuWords{Kind::held, Severity::note, "held", "none", "software turned TMPDIS of DP_TC on",
                 "hold for a short time"},
        DpuWords{Kind::off, Severity::note, "off", "none", "software wrote EN of DP_TC = 0 and then 1, or late",
                 "leave tracing on"},
        DpuWords{Kind::unplaced, Severity::warning, "off-anywhere", "none", "dpu.ini has no place of the buffer",
                 "give DP_TSA, DP_TEA and DP_TW"},
        DpuWords{Kind::no_room, Severity::warning, "overflow", "none",
                 "memory did not take samples as fast as the unit made them",
                 "sample less often, or trace fewer kinds"},
        DpuWords{Kind::no_room_unseen, Severity::warning, "overflow", "none",
                 "memory did not take data as fast as software wrote them", "trace less, or write less to DP_TD"},
        DpuWords{Kind::overwritten, Severity::note, "overwritten", "all since the first enable", "the buffer wrapped",
                 "a larger buffer, or stop earlier"},
        DpuWords{Kind::cut_head, Severity::note, "cut-entry", "whole entries",
                 "the buffer wrapped, and its oldest line begins inside an entry", "nothing"},
        DpuWords{Kind::incomplete, Severity::warning, "incomplete", "TWBA = 0", "the buffer was read too early",
                 "stop the unit, and wait for TWBA, before reading"},
        DpuWords{Kind::readings, Severity::warning, "doubtful-readings",
                 "counters that go on from one reading to the next", "the trace is damaged there",
                 "read the buffer again; counts between the neighbouring readings are kept as <unattributed>"},
        DpuWords{Kind::wide, Severity::warning, "counter-wrap", no_wrap, "readings that are too far apart, or damage",
                 "read the counters more often (mode sample with a shorter period)"},
        DpuWords{Kind::wide_lossy, Severity::warning, "counter-loss", no_wrap, "readings are missing in between",
                 "avoid the loss of entries, as the other findings explain"},
    };
}();

/// Adds the findings from decoding the buffer. `bytes`: the contents of its file.
void add_dpu_findings(Findings& to, std::vector<analysis::DpuFinding> findings, const pipeline::DpuTrace& trace,
                      std::size_t bytes, const FirstTrouble& first) {
    using Kind = analysis::DpuFinding::Kind;
    for (analysis::DpuFinding& each : findings) {
        if (each.kind == Kind::gap && each.reason == GapReason::framing) {
            to.add(Severity::warning, "torn-entries", first.cut, std::move(each.what), "whole entries",
                   "the rest of these entries is in the part that the file lacks", "copy the whole file");
            continue;
        }
        const auto words =
            std::find_if(dpu_words.begin(), dpu_words.end(), [&](const DpuWords& w) { return w.kind == each.kind; });
        if (words == dpu_words.end()) continue;
        std::optional<Offset> at = each.first;
        if (each.kind == Kind::cut) at = first.cut ? first.cut : Offset{bytes};
        if (each.kind == Kind::no_room) at = first.lost;
        if (each.kind == Kind::gap || each.kind == Kind::cut_head || each.kind == Kind::next_to_gap) at = first.gap;
        std::string expected(words->expected);
        if (each.kind == Kind::cut)
            expected =
                trace.vtb.single_address ? "all lines that were written (lines_written)" : "DP_TSA to DP_TEA + 31";
        to.add(words->severity, std::string(words->name), at, std::move(each.what), std::move(expected),
               std::string(words->cause), std::string(words->advice));
    }
}

/// Reports whether the entries add up to the counters' own values.
void add_dpu_sums(Findings& to, const analysis::DpuCosts& costs) {
    analysis::DpuCounts rows{};
    for (const auto& [owner, task] : costs.tasks()) analysis::add(rows, task.sum);
    const auto all = costs.reconciled(rows);
    for (unsigned c = 0; c < dpu::counter_count; ++c)
        if (all[c].residual() != 0)
            to.add(Severity::error, "sums", {},
                   fmt::format("intervals of counter {} add up to {}, modulo 2^31", dpu::counter_name(c),
                               grouped(all[c].sum)),
                   fmt::format("{}, by its first and last value", grouped(all[c].counted())),
                   "damaged trace looks like readings, or registers are of another run",
                   "waymark packets shows the entries");
}

/// Collects one sample of each mapping, and counts the samples.
class SampledMappings final : public analysis::SampleSink {
public:
    struct Mapping {
        std::uint64_t pc{}, samples{};
    };
    void consume(const analysis::SampleBatch& batch) override {
        for (const std::uint16_t i : batch.rows) {
            Mapping& mapping = mappings[batch.mapping[i]];
            if (mapping.samples++ == 0) mapping.pc = spe::program_address(batch.records.pc[i]).address.value;
        }
    }
    [[nodiscard]] std::unique_ptr<SampleSink> fork() const override { return std::make_unique<SampledMappings>(); }
    void join(SampleSink& fork) override {
        for (const auto& [number, theirs] : static_cast<SampledMappings&>(fork).mappings) {
            Mapping& mapping = mappings[number];
            if (mapping.samples == 0) mapping.pc = theirs.pc;
            mapping.samples += theirs.samples;
        }
    }
    std::map<std::uint32_t, Mapping> mappings;
};

/// Reports programs that were sampled but do not exist on this machine.
void add_missing_programs(Findings& to, const analysis::SampleCapture& capture, const SampledMappings& sampled,
                          std::uint64_t all) {
    analysis::Program program(capture, {});
    std::map<std::uint32_t, std::uint64_t> samples;  // by file
    for (const auto& [number, mapping] : sampled.mappings)
        samples[program.find(number, mapping.pc).file] += mapping.samples;
    std::string names;
    std::uint64_t nameless = 0;
    std::size_t files = 0;
    constexpr std::size_t most_named = 5;
    for (const auto& [number, n] : samples) {
        const analysis::Program::File& file = program.file(number);
        if (file.symbols || file.problem.empty()) continue;
        nameless += n;
        if (files++ < most_named) names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", file.name, file.problem);
    }
    if (files == 0) return;
    if (files > most_named) names += fmt::format(" and {} more", files - most_named);
    to.add(Severity::note, "image-missing", {}, "no names for " + names, "the files that were sampled",
           fmt::format("without them {} of {} have addresses, and neither functions nor lines", grouped(nameless),
                       counted(all, "sample")),
           "give copies of the recorded machine's files with --symfs DIR, of its /proc/kallsyms with --kallsyms");
}

/// Reports how the samples were taken, and which are missing.
void add_sampling(Findings& to, const analysis::SampleCapture& capture, const analysis::Quality& q) {
    if (q.truncated.stretches + q.partial.stretches != 0)
        to.add(Severity::warning, "overflow", {},
               fmt::format("{} of trace {} truncated, {} amid a record",
                           counted(q.truncated.stretches, "stretch", "stretches"), are(q.truncated.stretches),
                           grouped(q.partial.stretches)),
               "none", "perf did not empty the AUX buffer in time",
               "a larger buffer (-m ,SIZE), or a larger period (-c)");
    if (q.collided.stretches != 0)
        to.add(Severity::warning, "collision", {},
               fmt::format("{} saw collisions", counted(q.collided.stretches, "stretch", "stretches")), "none",
               "a sample was taken while the previous one was not finished, so long operations are sampled too rarely",
               "a larger period (-c)");
    constexpr std::uint32_t throttle = 5;
    if (const auto found = capture.data->counts.find(throttle); found != capture.data->counts.end())
        to.add(Severity::warning, "throttled", {},
               fmt::format("the kernel stopped sampling {} for a while", counted(found->second, "time")), "never",
               "sampling took too much time", "a larger period (-c), or raise kernel.perf_event_max_sample_rate");
    if (q.lost_events != 0)
        to.add(Severity::warning, "lost-events", {},
               fmt::format("perf lost {} of its own records", grouped(q.lost_events)), "none",
               "mappings or threads may be missing", "a larger buffer (-m SIZE)");
    if (q.unfinished)
        to.add(Severity::warning, "unfinished", {}, "the recorder was ended before it had finished the file",
               "a finished header", "perf was killed", "end perf with SIGINT, and wait until it has ended");
    if (q.records != 0 && q.without_thread != 0)
        to.add(Severity::note, "no-thread", {},
               fmt::format("the thread of {} is not known", counted(q.without_thread, "sample")), "the thread of each",
               "neither context packets nor switch events were recorded", "record as root, or with switch events");
    if (q.without_mapping != 0)
        to.add(Severity::note, "not-mapped", {},
               fmt::format("{} outside every known mapping", counted(q.without_mapping, "sample lies", "samples lie")),
               "a file for each", "code that was generated, or mappings that were not recorded",
               "nothing, if it is known");
    if (q.without_address != 0) {
        const std::string why = analysis::why_no_address(q);
        to.add(Severity::note, "no-address", {},
               fmt::format("{} of loads and stores without an address{}", counted(q.without_address, "sample"),
                           why.empty() ? "" : fmt::format(" ({})", why)),
               "an address of each", "the unit or the recorder did not know it",
               "do not look for them among cache lines and data pages");
    }
    if (q.modelled)
        to.add(Severity::note, "modelled", {}, "the samples are of a modelled machine", "samples of silicon",
               "waymark record made them",
               "treat latencies, data sources and events of caches, TLBs and prediction as the model's");
    for (const auto& [midr, erratum] : q.errata)
        to.add(Severity::note, "erratum", {}, fmt::format("erratum {}: {}", erratum.number, erratum.text), "none",
               analysis::core_name(midr), "interpret shares accordingly");
}

}  // namespace

Result<ExaminationReport> examine_dpu(const std::filesystem::path& folder) {
    WM_ASSIGN_OR_RETURN(const capture::DpuCapture capture, capture::read_dpu_folder(folder));
    ExaminationReport report;
    Findings to(report, capture.buffer.string());
    for (const capture::Problem& problem : capture.problems) {
        if (problem.lacks == capture.buffer && !problem.lacks.empty())
            continue;  // reported below, with its consequences
        to.add(Severity::warning, "description", {}, capture::to_string(problem), "a complete dpu.ini",
               "the description does not contain it", "add the value to dpu.ini, if you know it");
    }
    WM_ASSIGN_OR_RETURN(const pipeline::DpuTrace trace, pipeline::dpu_trace(capture));
    analysis::DpuCode code;
    std::error_code no_file;
    const std::uintmax_t trace_bytes = std::filesystem::file_size(pipeline::trace_file(capture, trace), no_file);
    for (const DpuImageProblem& problem : name_code(capture, trace, no_file ? 0 : trace_bytes, code))
        to.add(Severity::warning, "image-missing", {}, problem.what, "the program that ran, whole",
               "it was not copied with the capture, or is damaged", cost_and_remedy(problem));
    if (const std::string turns = turns_not_known(capture, code); !turns.empty())
        to.add(Severity::warning, "turns-not-known", {}, turns, "when each file lay there, in bytes of trace",
               "which of them ran there is not known", "record again with this Waymark");
    bool anything = false;
    std::uint64_t entries = 0;
    const std::filesystem::path& file = pipeline::trace_file(capture, trace);
    if (file.empty()) {
        to.add(Severity::note, "no-buffer", {}, "no buffer is named", "a buffer with entries",
               why_nothing(capture, trace, {}), "nothing, if only messages were wanted");
    } else {
        std::vector<std::uint8_t> dump;
        std::error_code error;
        if (std::filesystem::file_size(file, error) != 0 || error) {
            WM_ASSIGN_OR_RETURN(const auto stream, capture::open_bytes(file));
            constexpr std::uint64_t most = std::uint64_t{1} << 30;
            WM_ASSIGN_OR_RETURN(dump, capture::read_all(*stream, most));
        }
        analysis::DpuSetup setup = setup_of(capture, trace);
        FirstTrouble first;
        WM_ASSIGN_OR_RETURN(const DpuSums sums, add_up(trace, dump, setup, code, [&](const auto&) { return &first; }));
        const pipeline::DpuDecoded& decoded = sums.decoded;
        anything = has_content(decoded.totals);
        if (anything)
            for (const std::uint64_t n : decoded.totals.entries) entries += n;
        ExaminedBuffer buffer;
        buffer.name = file.filename().string();
        buffer.files = {file};
        buffer.looked_at = dump.size();
        buffer.bytes = dump.size();
        buffer.pieces = 1;
        buffer.format = capture::Buffer::Format::source_data;
        report.buffers.push_back(std::move(buffer));
        const analysis::DpuSaid said = said_of(capture, trace, setup, decoded, dump.size());
        report.cut = said.cut || said.missing_bytes != 0;
        if (anything) report.account = analysis::dpu_account(said, *sums.costs);
        std::vector<analysis::DpuFinding> found = analysis::dpu_losses(said);
        if (anything)
            for (analysis::DpuFinding& doubt : analysis::dpu_doubts(*sums.costs, said, said.first_counter()))
                found.push_back(std::move(doubt));
        add_dpu_findings(to, std::move(found), trace, dump.size(), first);
        for (const std::string& rule : said.rules)
            to.add(Severity::note, "counter", {}, rule, "all that happens", "the counter's control register",
                   "count in trace mode, at once and everywhere, for totals");
        if (std::string left_out = analysis::dpu_left_out(said); !left_out.empty())
            to.add(Severity::note, "filter", {}, std::move(left_out), "all tasks", "IDFLT of DP_TC was on",
                   "trace without it to have all tasks");
        if (!trace.ring_known && !trace.vtb.single_address)
            to.add(Severity::warning, "ring", {}, "DP_TSA, DP_TEA or DP_TW is not known", "all three",
                   "dpu.ini does not name them", "where the trace begins in the buffer is guessed; add them");
        if (anything)
            add_dpu_sums(to, *sums.costs);
        else
            to.add(Severity::error, "nothing", {}, fmt::format("not one entry in {}", counted(dump.size(), "byte")),
                   mode_of(trace) ? fmt::format("entries of mode {}", mode_text(trace)) : "entries",
                   why_nothing(capture, trace, dump), "put that right, or record again");
    }
    sort_and_conclude(report, entries, "entries");
    return report;
}

Result<ExaminationReport> examine_perf(const open::Container& container) {
    const std::filesystem::path file = container.path;
    WM_ASSIGN_OR_RETURN(const analysis::SampleCapture capture, open::open_samples(container));
    // The file had trace of CoreSight units, but the trace was removed.
    if (const auto found = capture::perf::without_cs_trace(*capture.data); !found.empty()) {
        ExaminationReport report;
        for (const capture::Peculiarity& p : found) report.findings.push_back(finding_of(p));
        sort_and_conclude(report, 0, "bytes of trace");
        return report;
    }
    SampledMappings sink;
    const analysis::SampleTotals totals = analysis::run_samples(capture, {}, sink, 1);
    const analysis::Quality q = analysis::quality_of(capture, totals);
    ExaminationReport report;
    report.account = analysis::samples_account(capture, totals, q);
    Findings to(report, file.filename().string());
    for (const Error& e : capture.damage)
        to.add(Severity::error, "unreadable", e.offset, e.message, "a file that can be read completely",
               "the compressed file is damaged or cut", "copy the file again");
    for (const Error& e : totals.errors)
        to.add(Severity::error, "unreadable", e.offset, e.message, "a file that can be read completely",
               "a damaged disk", "copy the file again");
    if (q.container_losses != 0)
        to.add(
            Severity::error, "cut",
            capture.data->losses.empty() ? std::optional<Offset>() : std::optional(capture.data->losses.front().first),
            fmt::format("{}{}",
                        capture.data->losses.empty() ? "a part is missing" : capture.data->losses.front().message,
                        q.container_lost_bytes == 0
                            ? ""
                            : fmt::format("; {} of the file's own structure {} lost",
                                          counted(q.container_lost_bytes, "byte"), are(q.container_lost_bytes))),
            "a whole file", "perf.data is damaged or cut", "copy the file again; the readable part was decoded");
    report.cut = !capture.damage.empty() || !totals.errors.empty() || q.container_losses != 0;
    if (q.lost_bytes() + q.damaged_bytes() != 0)
        to.add(Severity::warning, "damaged-records", {},
               fmt::format("{} in no record, {} of damage inside records", counted(q.lost_bytes(), "byte"),
                           grouped(q.damaged_bytes())),
               "records only",
               report.cut ? "the file is damaged or cut, or the kernel cut a record at the end of a buffer"
                          : "the kernel cut a record at the end of a buffer, or bytes were damaged",
               "waymark spe records shows where; a larger AUX buffer (perf record -m ,SIZE) is cut less often");
    add_sampling(to, capture, q);
    if (q.selected != 0) add_missing_programs(to, capture, sink, q.selected);
    if (q.selected != 0 && q.selected < answers::few_samples)
        to.add(Severity::warning, "few-samples", {}, fmt::format("{}: too few", counted(q.selected, "sample")),
               fmt::format("{} or more", answers::few_samples), "a short run, or a long interval",
               "record longer, or with a smaller period (-c)");
    ExaminedBuffer buffer;
    buffer.name = file.filename().string();
    buffer.files = {file};
    for (const analysis::StreamQuality& s : q.streams) buffer.looked_at += s.bytes;
    buffer.bytes = buffer.looked_at;
    buffer.pieces = 1;
    buffer.format = capture::Buffer::Format::source_data;
    report.buffers.push_back(std::move(buffer));
    sort_and_conclude(report, q.selected, "samples");
    return report;
}

}  // namespace waymark::doctor
