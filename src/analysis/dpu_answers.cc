#include "waymark/analysis/dpu_answers.h"
#include "waymark/capture/module_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <tuple>
#include <utility>

#include "waymark/analysis/dpu_findings.h"
#include "waymark/analysis/dpu_ratios.h"
#include "waymark/analysis/dpu_tables.h"
#include "waymark/answers/parts.h"
#include "waymark/core/numbers.h"
#include "waymark/image/debug_info.h"

namespace waymark::analysis {

using namespace answers;

using dpu::Element;
using dpu::ElementKind;

// ---- when

DpuTimes::DpuTimes(const DpuSetup& setup)
    : cycles_(setup.cycles), readings_checked_(setup), final_(setup.final), context_(setup.initial_context) {}

void DpuTimes::interval(const DpuCounts& counts) {
    const std::uint64_t begin = time_;
    time_ += cycles_ ? counts[*cycles_] : 1;
    const std::uint64_t end = time_, length = end - begin;
    while (end >> shift_ >= most_bins) {
        for (unsigned i = 0; i < most_bins / 2; ++i) {
            bins_[i] = bins_[2 * i];
            add(bins_[i], bins_[2 * i + 1]);
        }
        std::fill(bins_.begin() + most_bins / 2, bins_.end(), DpuCounts{});
        ++shift_;
    }
    if (length == 0 || begin >> shift_ == (end - 1) >> shift_) {
        add(bins_[begin >> shift_], counts);
        return;
    }
    // Counters have 31 bits, so no product needs more than 62.
    DpuCounts before{};
    for (std::uint64_t bin = begin >> shift_; bin <= (end - 1) >> shift_; ++bin) {
        const std::uint64_t part = std::min((bin + 1) << shift_, end) - begin;
        for (std::size_t c = 0; c < counts.size(); ++c) {
            const std::uint64_t sum = counts[c] * part / length;
            bins_[bin][c] += sum - before[c];
            before[c] = sum;
        }
    }
}

void DpuTimes::lose(const Element& e) {
    if (losses_.size() == most_losses) {
        ++losses_left_out_;
        return;
    }
    losses_.push_back({e.offset, time_, time_, e.kind == ElementKind::lost ? e.value : 0, e.reason, e.kind});
}

void DpuTimes::close_service() {
    if (!open_) return;
    open_->end = time_;
    if (services_.size() < most_services)
        services_.push_back(*open_);
    else
        ++services_left_out_;
    open_.reset();
}

void DpuTimes::consume(const dpu::Batch& batch) {
    for (const Element& e : batch.elements) {
        if (e.kind == ElementKind::lost || e.kind == ElementKind::held || e.kind == ElementKind::enabled ||
            (e.kind == ElementKind::gap && e.reason != GapReason::padding && e.reason != GapReason::unsynchronised))
            lose(e);
        if (!e.has_reading()) continue;
        const dpu::Reading* const believed = readings_checked_.next(batch.readings[e.value]);
        if (believed == nullptr) {
            context_ = e.context;
            continue;
        }
        const dpu::Reading& r = *believed;
        DpuCounts counts{};
        std::copy(r.deltas.begin(), r.deltas.end(), counts.begin());
        interval(counts);
        for (; ended_losses_ < losses_.size(); ++ended_losses_) losses_[ended_losses_].end = time_;
        if (r.has(dpu::Reading::lossy)) open_.reset();
        if (e.kind != ElementKind::sample) {
            if (r.has(dpu::Reading::lossy)) context_.reset();
            if (!e.context.supervisor)
                close_service();
            else if (context_ && !context_->supervisor)
                open_ = Service{e.to, time_, time_};
        }
        context_ = e.context;
    }
}

void DpuTimes::finish() {
    if (const auto& values = readings_checked_.values(); final_ && values) {
        DpuCounts counts{};
        for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = dpu::counted((*values)[i], (*final_)[i]);
        interval(counts);
    }
    for (; ended_losses_ < losses_.size(); ++ended_losses_) losses_[ended_losses_].end = time_;
    close_service();
}

namespace {

using Severity = Finding::Severity;

class DpuProducer {
public:
    DpuProducer(const DpuCosts& costs, const DpuTimes* times, const DpuCode& code, const DpuSaid& said,
                const DpuAnswersOptions& options)
        : costs_(costs), times_(times), code_(code), said_(said), options_(options), sources_(out_), synthetic_(out_) {
        for (unsigned c = 0; c < dpu::counter_count; ++c)
            if (!said.events[c].empty() && said.counts(c)) counters_.push_back(c);
        // Answers have at least one metric. If no counter counts anything, that metric is 0 everywhere.
        nothing_ = counters_.empty();
        for (const auto& [owner, task] : costs.tasks()) add(sum_of_tasks_, task.sum);
        if (nothing_) counters_.push_back(0);
    }

    Answers make() {
        out_.unit = "DPU";
        out_.trace_bytes = said_.totals.bytes;
        for (const DpuCode::Image& image : code_.images()) {
            const auto slash = image.name.rfind('/');
            auto info = image::DebugInfo::open(image.path);
            const std::string id = info ? capture::hex_text(info->build_id()) : std::string();
            out_.images.push_back({image.name.substr(slash == image.name.npos ? 0 : slash + 1), image.path, id});
            if (info) out_.images.back().has_symbols = image::has_symbol_table(image.path, *info);
            debug_.push_back(info ? std::optional(std::move(*info)) : std::nullopt);
        }
        metrics();
        health();
        for (const char* view : {"tasks", "functions", "interrupts", "loops", "timeline", "data"})
            out_.trust.push_back(trust_in(view, said_, costs_));
        summary();
        calls();
        services();
        loops();
        tables();
        add_dpu_ratios(out_);
        if (times_ != nullptr) timeline();
        sort_findings(out_);
        return std::move(out_);
    }

private:
    void say(Severity severity, std::string what, std::string todo = {}) {
        out_.health.push_back({severity, std::move(what), std::move(todo), {}});
    }
    /// Each reading comes with a change of flow, so the owner of each interval is known.
    [[nodiscard]] bool knows_owners() const {
        return said_.mode == dpu::TraceMode::task || said_.mode == dpu::TraceMode::flow;
    }
    [[nodiscard]] Costs costs_of(const DpuCounts& counts) const {
        Costs out;
        for (const unsigned c : counters_) out.push_back(counts[c]);
        return out;
    }
    [[nodiscard]] std::string event(unsigned counter) const {
        return said_.events[counter].empty() ? std::string(dpu::counter_name(counter)) : said_.events[counter];
    }

    void metrics() {
        for (const unsigned c : counters_) {
            const std::string name = event(c);
            const bool cycles = c == said_.cycles || name.find("CYCLES") != name.npos ||
                                name.find("STALL") != name.npos || name.find("WAIT") != name.npos;
            Metric metric{name, cycles ? "cycles" : "count", knows_owners(), {}};
            if (nothing_)
                metric.note = "the counters of this capture count nothing";
            else if (!knows_owners())
                metric.note = "the total is exact; each interval belongs to the context of the samples at its ends";
            if (!said_.cycles_note.empty() && !nothing_)
                metric.note += fmt::format("{}cycles are {}", metric.note.empty() ? "" : "; ", said_.cycles_note);
            out_.metrics.push_back(std::move(metric));
        }
    }

    void health() {
        out_.cut = said_.cut || said_.missing_bytes != 0;
        out_.account = dpu_account(said_, costs_);
        for (const std::string& problem : said_.problems) say(Severity::warning, problem);
        std::vector<DpuFinding> found = dpu_losses(said_);
        for (DpuFinding& doubt : dpu_doubts(costs_, said_, counters_.front())) found.push_back(std::move(doubt));
        for (DpuFinding& each : found) {
            each.what.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(each.what.front())));
            out_.health.push_back({each.severity, std::move(each.what), std::move(each.todo),
                                   each.first ? std::optional(each.first->value) : std::nullopt});
        }
        if (std::string left_out = dpu_left_out(said_); !left_out.empty()) say(Severity::note, std::move(left_out));
        const auto reconciled = costs_.reconciled(sum_of_tasks_);
        for (const unsigned c : counters_)
            if (const DpuReconciled& r = reconciled[c]; r.residual() != 0)
                say(Severity::bad,
                    fmt::format("{} does not add up: {} more than the counter says", event(c), grouped(r.residual())),
                    "Damaged trace looks like readings, or registers are of another run; waymark packets shows the "
                    "entries");
        for (const std::string& rule : said_.rules)
            say(Severity::note, "Not all is counted: " + rule,
                "Count in trace mode, at once and everywhere, for totals");
        if (!knows_owners())
            say(Severity::note,
                said_.mode
                    ? fmt::format(
                          "Mode {}: which task an interval belongs to is estimated from samples; sums are exact",
                          said_.mode_text)
                    : std::string(
                          "The mode is not known, because DP_TC is missing: the task of each interval is estimated"),
                "Record with --mode task or flow to know");
        if (said_.mode == dpu::TraceMode::flow && costs_.returns_without_call() != 0)
            say(Severity::note, fmt::format("{} led to places that no open call returns to",
                                            counted(costs_.returns_without_call(), "return", "returns")));
        if (!said_.cycles)
            say(Severity::note,
                "No counter counts CYCLES: places in time are numbers of readings, and there are no rates",
                "Record with an event set that has CYCLES");
        if (!said_.cycles_note.empty()) say(Severity::note, fmt::format("Cycles are {}", said_.cycles_note));
        if (costs_.stays_left_out() != 0)
            say(Severity::note,
                fmt::format("{} do not fit on the timeline", counted(costs_.stays_left_out(), "stay", "stays")));
        if (!completeness(out_.account).strict && said_.problems.empty())
            say(Severity::good,
                is_part_of_run(out_.account)
                    ? "Nothing of what was traced was lost, and every counter adds up to its final value"
                    : "Nothing was lost, and every counter adds up to its final value");
    }

    void summary() {
        const auto figure = [&](std::string name, std::string value, std::string note = {}) {
            out_.summary.push_back({std::move(name), std::move(value), std::move(note)});
        };
        if (!said_.program.empty()) figure("program", said_.program);
        figure("mode", said_.mode ? said_.mode_text : "not known");
        figure("readings", grouped(costs_.readings()));
        for (const unsigned c : counters_)
            figure(event(c), grouped(costs_.total()[c]), std::string("counter ") + std::string(dpu::counter_name(c)));
        if (!said_.layout.empty()) figure("layout", said_.layout);
    }

    // ---- functions

    [[nodiscard]] std::string task_text(std::uint8_t id) const {
        const auto found = said_.tasks.find(id);
        return fmt::format("task {}{}", id, found == said_.tasks.end() ? "" : fmt::format(" ({})", found->second));
    }
    [[nodiscard]] std::optional<image::SourceLine> line_of(std::uint32_t address, std::size_t image) {
        if (image >= debug_.size() || !debug_[image]) return std::nullopt;
        return debug_[image]->line({address - code_.images()[image].load_bias});
    }
    Index function(const DpuCode::Function& f) {
        // Names in angle brackets are not code.
        if (f.address == 0) return synthetic_.of(f.name.empty() ? "[not known]" : f.name);
        const auto [at, fresh] = functions_.try_emplace(f, static_cast<Index>(out_.functions.size()));
        if (!fresh) return at->second;
        Function made;
        made.name = function_text(f);
        made.linkage_name = f.linkage_name;
        made.address = f.address;
        if (f.image != DpuCode::no_image) made.image = static_cast<Index>(f.image);
        if (const auto line = line_of(f.address, f.image)) {
            made.source = sources_.of(line->file);
            made.line = line->line;
        }
        out_.functions.push_back(std::move(made));
        return at->second;
    }

    void calls() {
        using Kind = CallNode::Kind;
        const auto node = [&](Index parent, Index function, Kind kind, std::uint64_t calls, const DpuCounts& self) {
            out_.calls.push_back({parent, function, kind, calls, costs_of(self)});
            return static_cast<Index>(out_.calls.size() - 1);
        };
        const Index root = node(none, none, Kind::root, 0, {});
        if (said_.mode != dpu::TraceMode::flow) {
            for (const auto& [who, task] : costs_.tasks()) {
                // Without readings the cost of tasks is not known, although the counters' first and last values may be.
                if (costs_.readings() == 0 && task.sum == DpuCounts{}) continue;
                node(root, synthetic_.of(owner_text(said_, who)), Kind::root, task.entered, task.sum);
            }
            return;
        }
        std::map<std::uint8_t, Index> tasks;
        std::vector<Index> nodes{root};
        for (std::size_t i = 1; i < costs_.paths().size(); ++i) {
            const DpuPath& path = costs_.paths()[i];
            Index parent = nodes[path.parent];
            if (path.parent == 0 && path.root) {
                const auto [at, fresh] = tasks.try_emplace(path.root->id, 0);
                if (fresh) at->second = node(root, synthetic_.of(task_text(path.root->id)), Kind::root, 0, {});
                parent = at->second;
            }
            const Kind kind = path.service                          ? Kind::interrupt
                              : path.parent == 0 && path.calls == 0 ? Kind::unsynchronised
                                                                    : Kind::call;
            nodes.push_back(node(parent, function(path.function), kind, path.calls, path.self));
        }
    }

    void services() {
        for (const auto& [entry, service] : costs_.services()) {
            ExceptionRow row;
            row.name = function_text(code_.function(entry));
            row.times = row.returned = service.stays.times;
            row.unit = "cycles";
            if (said_.cycles) {  // without them no time is known
                row.least = service.stays.least[*said_.cycles];
                row.most = service.stays.most[*said_.cycles];
                row.sum = service.stays.sum[*said_.cycles];
            }
            out_.exceptions.push_back(std::move(row));
        }
    }

    void loops() {
        for (const auto& [last, loop] : costs_.loops()) {
            Loop made;
            made.head = loop.start.value_or(last.address);
            made.tail = last.address;
            made.entries = loop.runs;
            made.iterations = loop.iterations();
            const Index where = function(code_.function(last));
            made.function = where;
            made.source = out_.functions[where].source;
            if (const auto line = line_of(static_cast<std::uint32_t>(made.head), code_.image(last))) {
                made.source = sources_.of(line->file);
                made.line = line->line;
            }
            out_.loops.push_back(std::move(made));
        }
        std::sort(out_.loops.begin(), out_.loops.end(),
                  [](const Loop& a, const Loop& b) { return std::tie(a.head, a.tail) < std::tie(b.head, b.tail); });
    }

    // ---- tables

    void tables() {
        const DpuTables all(costs_, code_, said_, counters_.front());
        const auto add = [&](DpuTable made) {
            if (made.table.empty()) return;
            if (made.left_out != 0) made.table.note += fmt::format("; {} more are omitted", grouped(made.left_out));
            out_.tables.push_back(std::move(made.table));
        };
        add(all.tasks());
        add(all.functions());
        add(all.interrupts());
        add(all.loops());
        add(all.data(options_.most_rows));
        out_.tables.push_back(all.reconciliation(sum_of_tasks_));
    }

    // ---- when

    void timeline() {
        Timeline& t = out_.timeline;
        t.axis.unit = said_.cycles ? "cycles" : "readings";
        t.axis.end = costs_.time();
        t.axis.note = said_.cycles ? "cycles since tracing began, by the counter that counts them"
                                   : "numbers of readings: no counter counts cycles";
        if (!knows_owners()) t.axis.note += "; who had the core is known at samples only";

        std::map<std::pair<std::uint8_t, bool>, Index> tracks;
        for (const DpuStay& stay : costs_.stays()) tracks[{stay.context.id, stay.context.supervisor}] = 0;
        for (auto& [who, track] : tracks) {
            track = static_cast<Index>(t.tracks.size());
            t.tracks.push_back({context_text(said_, {who.second, who.first}), none});
        }
        for (const DpuStay& stay : costs_.stays())
            if (stay.end > stay.begin)
                t.slices.push_back({stay.begin, stay.end, tracks[{stay.context.id, stay.context.supervisor}],
                                    synthetic_.of(context_text(said_, stay.context)), 0, 1});
        if (!times_->services().empty()) {
            const auto track = static_cast<Index>(t.tracks.size());
            t.tracks.push_back({"interrupts and system calls", none});
            for (const DpuTimes::Service& s : times_->services())
                if (s.end > s.begin)
                    t.slices.push_back({s.begin, s.end, track, function(code_.function(s.entry)), 0, 1});
        }
        std::stable_sort(t.slices.begin(), t.slices.end(), [](const Slice& a, const Slice& b) {
            return std::tie(a.track, a.begin) < std::tie(b.track, b.begin);
        });
        bound_slices(t, options_.most_slices);
        marks(tracks);
        series();
    }

    void marks(const std::map<std::pair<std::uint8_t, bool>, Index>& tracks) {
        Timeline& t = out_.timeline;
        std::optional<Index> own;
        const auto trace_track = [&] {
            if (!own) {
                own = static_cast<Index>(t.tracks.size());
                t.tracks.push_back({"trace", none});
            }
            return *own;
        };
        for (const DpuTimes::Loss& loss : times_->losses())
            t.marks.push_back({loss.begin, loss.end, trace_track(), TimelineMark::Kind::gap,
                               loss.entries != 0                   ? fmt::format("{} lost because the buffer was full",
                                                                                 counted(loss.entries, "entry", "entries"))
                               : loss.kind == ElementKind::held    ? std::string("tracing was held")
                               : loss.kind == ElementKind::enabled ? std::string("tracing was off")
                                                                   : std::string(name(loss.reason))});
        std::size_t rows = 0;
        for (const DpuDatum& d : costs_.data()) {
            if (rows++ == options_.most_rows) break;
            const auto track = d.context ? tracks.find({d.context->id, d.context->supervisor}) : tracks.end();
            t.marks.push_back({d.time, d.time, track == tracks.end() ? trace_track() : track->second,
                               TimelineMark::Kind::user_data, fmt::format("{:#010x}", d.value)});
        }
        std::stable_sort(t.marks.begin(), t.marks.end(), [](const TimelineMark& a, const TimelineMark& b) {
            return std::tie(a.track, a.begin) < std::tie(b.track, b.begin);
        });
        if (times_->losses_left_out() != 0)
            say(Severity::note,
                fmt::format("{} more are not on the timeline", counted(times_->losses_left_out(), "loss", "losses")));
        if (times_->services_left_out() != 0)
            say(Severity::note,
                fmt::format("{} more are not on the timeline",
                            counted(times_->services_left_out(), "interrupt or call", "interrupts and calls")));
    }

    /// Events per 1000 cycles; events per bin if no counter counts cycles.
    void series() {
        const std::uint64_t width = std::uint64_t{1} << times_->shift();
        for (const unsigned c : counters_) {
            if (nothing_ || c == said_.cycles) continue;
            Series s;
            s.name = event(c);
            s.unit = said_.cycles ? "per 1000 cycles"
                     : width == 1 ? "in a reading"
                                  : fmt::format("in {} readings", width);
            for (std::uint64_t bin = 0; bin < DpuTimes::most_bins && bin * width < times_->time(); ++bin) {
                const DpuCounts& counts = times_->bins()[bin];
                const double value = static_cast<double>(counts[c]);
                const double cycles = said_.cycles ? static_cast<double>(counts[*said_.cycles]) : 1000;
                s.points.push_back({bin * width, cycles == 0 ? 0 : value * 1000 / cycles});
            }
            out_.timeline.series.push_back(std::move(s));
        }
    }

    const DpuCosts& costs_;
    const DpuTimes* times_;
    const DpuCode& code_;
    const DpuSaid& said_;
    const DpuAnswersOptions& options_;
    Answers out_;
    SourceTable sources_;
    std::vector<unsigned> counters_;
    bool nothing_ = false;
    DpuCounts sum_of_tasks_{};
    std::vector<std::optional<image::DebugInfo>> debug_;  // by image
    SyntheticTable synthetic_;
    std::map<DpuCode::Function, Index> functions_;
};

}  // namespace

Answers answers_of_dpu(const DpuCosts& costs, const DpuTimes* times, const DpuCode& code, const DpuSaid& said,
                       const DpuAnswersOptions& options) {
    return DpuProducer(costs, times, code, said, options).make();
}

}  // namespace waymark::analysis
