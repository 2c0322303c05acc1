#include "verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <vector>

#include "../options.h"
#include "input.h"
#include "waymark/analysis/dpu_findings.h"
#include "waymark/dpu/registers.h"
#include "waymark/record_dpu/dpu_truth.h"

namespace waymark::cli {

namespace {

using analysis::DpuCounts;
using record::DpuTruth;
using Context = DpuTruth::Context;

std::string text(const Context& c) { return fmt::format("{} {}", c.supervisor ? "supervisor" : "user", c.id); }
std::string text(const DpuTruth::Start& s) { return fmt::format("{} from {:#010x}", text(s.first), s.second); }

/// What the elements of a trace say, in the words of the truth.
class DpuSums final : public dpu::ElementSink {
public:
    struct Sum {
        std::uint64_t times = 0;
        DpuCounts counts{};
    };

    /// `begin`: the context and place in which the program began, unless that was overwritten. `filter`: what tasks had
    /// that it leaves out is nobody's.
    DpuSums(std::optional<dpu::TraceMode> mode, std::optional<Context> begin, std::optional<std::uint32_t> place,
            const analysis::DpuFilter& filter)
        : mode_(mode), filter_(filter), context_(begin), place_(place) {
        using enum dpu::TraceMode;
        by_task_ = mode == task || mode == flow;
        eonce_ = mode == eonce_raw || mode == eonce_comp;
        if (context_ && shown(*context_)) ++contexts[*context_].times;
    }

    void consume(const dpu::Batch& batch) override {
        for (const dpu::Element& e : batch.elements) {
            const bool known = e.has(dpu::Element::id_known) && e.has(dpu::Element::privilege_known);
            const Context context{e.context.supervisor, e.context.id};
            switch (e.kind) {
                case dpu::ElementKind::task_switch:
                case dpu::ElementKind::flow: change(e, batch.readings[e.value], context); break;
                case dpu::ElementKind::sample: read(batch.readings[e.value]); break;
                case dpu::ElementKind::pair: add_change(e.from, 1, e.to); break;
                case dpu::ElementKind::pc: add_change(e.from, 1, 0); break;
                case dpu::ElementKind::short_loop:
                case dpu::ElementKind::long_loop: add_change(e.from, e.value, 0); break;
                case dpu::ElementKind::user_data: user_data.emplace_back(e.context.id, e.value); break;
                case dpu::ElementKind::user_raw: user_data.emplace_back(std::nullopt, e.value); break;
                case dpu::ElementKind::lost:
                case dpu::ElementKind::held: missing_ = true; break;
                case dpu::ElementKind::gap:
                    missing_ |= e.reason != GapReason::padding && e.reason != GapReason::unsynchronised;
                    break;
                default: break;
            }
            if (eonce_ && known && !e.has(dpu::Element::doubtful) && context_ != context) {
                context_ = context;
                if (shown(context)) ++contexts[context].times;
            }
        }
    }
    /// What was counted after the last reading.
    void finish(const std::optional<dpu::Counters>& initial, const std::optional<dpu::Counters>& final) {
        const std::optional<dpu::Counters> from = values_ ? values_ : initial;
        if (!from || !final) return;
        for (unsigned i = 0; i < dpu::counter_count; ++i) {
            const std::uint64_t n = ((*from)[i] - (*final)[i]) & dpu::counter_mask;
            total[i] += n;
            pending_[i] += n;
        }
        end_interval();
    }

    DpuCounts total{};
    std::map<Context, Sum> contexts;  ///< times: stays
    std::map<DpuTruth::Start, Sum> intervals;
    std::map<std::uint32_t, DpuTruth::Change> changes;  ///< by source
    std::vector<std::pair<std::optional<std::uint8_t>, std::uint32_t>> user_data;

private:
    void read(const dpu::Reading& r) {
        values_ = r.values;
        if (r.has(dpu::Reading::lossy) || r.has(dpu::Reading::first)) missing_ = true;
        for (unsigned i = 0; i < dpu::counter_count; ++i) {
            total[i] += r.deltas[i];
            pending_[i] += r.deltas[i];
        }
    }
    void change(const dpu::Element& e, const dpu::Reading& r, const Context& context) {
        read(r);
        end_interval();
        add_change(e.from, 1, e.to);
        if (context_ != context && shown(context)) ++contexts[context].times;
        context_ = context;
        place_ = e.to;
    }
    void end_interval() {
        if (by_task_ && context_ && !missing_ && shown(*context_)) {
            analysis::add(contexts[*context_].counts, pending_);
            if (place_ && mode_ == dpu::TraceMode::flow) {
                Sum& sum = intervals[{*context_, *place_}];
                ++sum.times;
                analysis::add(sum.counts, pending_);
            }
        }
        pending_ = {};
        missing_ = false;
    }
    [[nodiscard]] bool shown(const Context& c) const {
        return filter_.matches(dpu::Context{c.supervisor, c.id}) == true;
    }
    void add_change(std::uint32_t source, std::uint64_t times, std::uint32_t destination) {
        DpuTruth::Change& to = changes[source];
        to.times += times;
        to.destinations += destination;
    }

    std::optional<dpu::TraceMode> mode_;
    analysis::DpuFilter filter_;
    bool by_task_ = false, eonce_ = false;
    std::optional<Context> context_;
    std::optional<std::uint32_t> place_;
    std::optional<dpu::Counters> values_;
    DpuCounts pending_{};
    bool missing_ = false;
};

class DpuVerification {
public:
    DpuVerification(const DpuInput& input, const DpuTruth& truth, Output& out)
        : input_(input), truth_(truth), out_(out) {}

    Status run() {
        const auto& trace = input_.trace();
        constexpr std::uint64_t all = std::uint64_t{1} << 32;
        if (trace.ring_known) {
            const auto order = dpu::reading_order(trace.vtb, all);
            if (!order) return fail(order.error());
            overwritten_ = order->overwritten;
        }
        std::optional<Context> begin;
        if (const auto& c = trace.periods.front().start.context; c && !overwritten_) begin = {c->supervisor, c->id};
        const analysis::DpuSetup setup = input_.setup();
        filter_ = setup.filters.front();
        if (setup.filters.size() > 1)
            notes_.emplace_back("what tasks had is not compared: IDFLT or what it compares with changed on the way");
        else if (filter_.on)
            notes_.emplace_back("IDFLT: of tasks that match, all is compared; what others had is <filtered>");
        tasks_compared_ = setup.filters.size() == 1;
        DpuSums decoded(
            input_.mode(), begin,
            truth_.first && !overwritten_ && truth_.traced ? std::optional(truth_.first->second) : std::nullopt,
            filter_);
        const auto done = pipeline::decode_dpu(trace, input_.trace_bytes(), decoded);
        if (!done) return fail(done.error());
        std::optional<dpu::Counters> initial, final;
        if (!overwritten_) initial = trace.periods.front().start.counters;
        if (input_.capture().final) {
            final.emplace();
            std::copy(input_.capture().final->begin(), input_.capture().final->end(), final->begin());
        }
        decoded.finish(initial, final);
        if (!DpuInput::tells(done->totals)) {
            say("error", "nothing to compare: nothing was decoded: " + input_.why_nothing());
            return static_cast<Status>(cli::not_compared);
        }
        lost_ = done->totals.lost != 0 || done->totals.holds != 0;
        const bool cut = done->cut || input_.missing_bytes() != 0;
        damaged_ = cut || done->totals.doubtful != 0 || damage(done->totals) != 0;
        compare(decoded, done->totals);
        conclude(done->totals);
        warn_of_trace();
        if (cut) return unreadable;
        if (different_ != 0 || damaged_) return nothing;
        return compared_ == 0 ? static_cast<Status>(cli::not_compared) : cli::decoded;
    }

private:
    /// All was traced and is there, so that both sides are the same; else the trace may hold less.
    [[nodiscard]] bool whole() const { return truth_.traced && !lost_ && !overwritten_ && !damaged_; }
    /// A filter leaves out part of what is not counted by task.
    [[nodiscard]] bool all_flow() const { return whole() && !filter_.on && tasks_compared_; }
    [[nodiscard]] bool matches(const Context& c) const {
        return filter_.matches(dpu::Context{c.supervisor, c.id}) == true;
    }

    std::uint64_t damage(const dpu::Totals& t) const {
        return t.lost_bytes() - (overwritten_ ? t.gap_bytes[static_cast<std::size_t>(GapReason::unsynchronised)] : 0);
    }

    /// What decoding found missing or doubtful, as every view says it.
    void warn_of_trace() const {
        analysis::DpuSetup setup = input_.setup();
        const analysis::DpuCode no_names;
        const auto sums = doctor::add_up(input_.trace(), input_.trace_bytes(), setup, no_names);
        if (!sums) return;  // what could not be read was reported
        const analysis::DpuSaid said = input_.said(setup, sums->decoded);
        for (const analysis::DpuFinding& each : analysis::dpu_losses(said)) say("warning", each.what);
        for (const analysis::DpuFinding& each : analysis::dpu_doubts(*sums->costs, said, said.first_counter()))
            say("warning", each.what);
    }
    void difference(const std::string& what, std::uint64_t executed, std::uint64_t decoded) {
        constexpr std::uint64_t most = 10;
        if (different_++ < most) differences_.push_back({what, executed, decoded});
    }
    /// Of one figure; `exact`: else it may be less.
    void check(const std::string& what, std::uint64_t executed, std::uint64_t decoded, bool exact) {
        ++compared_;
        if (exact ? executed != decoded : decoded > executed) difference(what, executed, decoded);
    }
    void row(const std::string& name, std::uint64_t executed, std::uint64_t decoded) {
        out_.print("  {:<26} {:>20} {:>20}{}\n", name, grouped(executed), grouped(decoded),
                   executed == decoded ? "" : "  *");
    }
    void check_counts(const std::string& what, const record::Happened& executed, const DpuCounts& decoded, bool exact) {
        for (unsigned c = 0; c < dpu::counter_count; ++c)
            if (truth_.counters[c])
                check(fmt::format("{}: {}", what, input_.event_name(c)), executed.count[*truth_.counters[c]],
                      decoded[c], exact);
    }

    void compare(const DpuSums& d, const dpu::Totals& totals) {
        out_.print("capture {}\n  mode {}, {}\n", input_.capture().path.string(), input_.mode_text(),
                   truth_.complete ? "the whole run of the program" : "a part of the program's run: " + truth_.ended);
        out_.print("  {:<26} {:>20} {:>20}\n", "", "executed", "decoded");
        for (unsigned c = 0; c < dpu::counter_count; ++c) {
            const auto wire = input_.event(c);
            if (!truth_.counters[c]) {
                const bool in_truth = wire && std::find(record::truth_wires.begin(), record::truth_wires.end(),
                                                        *wire) != record::truth_wires.end();
                if (wire && wire != dpu::EventWire::none)
                    notes_.push_back(fmt::format("{} {} is not compared: {}", dpu::counter_name(c), name(*wire),
                                                 in_truth ? "it did not count from the first instruction to the last"
                                                          : "the truth does not count it"));
                continue;
            }
            const std::uint64_t executed = truth_.total.count[*truth_.counters[c]];
            row(input_.event_name(c), executed, d.total[c]);
            // Losses cost entries, not counts: the next reading has them.
            check("in all: " + input_.event_name(c), executed, d.total[c],
                  !overwritten_ && !damaged_ && truth_.counted);
        }
        using enum dpu::TraceMode;
        const auto mode = input_.mode();
        if (tasks_compared_ && (mode == task || mode == flow)) compare_contexts(d, true);
        if (tasks_compared_ && (mode == eonce_raw || mode == eonce_comp)) compare_contexts(d, false);
        if (tasks_compared_ && mode == flow) compare_intervals(d);
        if (mode == flow || mode == eonce_raw || mode == eonce_comp) compare_changes(d);
        if (mode == sw_sample || mode == edca5)
            notes_.emplace_back("costs of tasks are not compared: samples do not record tasks");
        compare_user_data(d, totals);
    }

    void compare_contexts(const DpuSums& d, bool counts) {
        std::uint64_t executed = 0, decoded = 0;
        std::uint64_t tasks = 0;
        for (const auto& [context, truth] : truth_.contexts) {
            if (!matches(context)) continue;
            ++tasks;
            const auto found = d.contexts.find(context);
            const DpuSums::Sum sum = found == d.contexts.end() ? DpuSums::Sum{} : found->second;
            check("stays of " + text(context), truth.times, sum.times, whole());
            if (counts) check_counts(text(context), truth.happened, sum.counts, whole());
            executed += truth.times;
            decoded += sum.times;
        }
        for (const auto& [context, sum] : d.contexts)
            if (!truth_.contexts.contains(context)) check("stays of " + text(context), 0, sum.times, true);
        row("tasks, in both privileges", tasks, d.contexts.size());
        row("stays", executed, decoded);
    }
    void compare_intervals(const DpuSums& d) {
        std::uint64_t executed = 0, decoded = 0;
        std::uint64_t places = 0;
        for (const auto& [start, truth] : truth_.intervals) {
            if (!matches(start.first)) continue;
            ++places;
            const auto found = d.intervals.find(start);
            const DpuSums::Sum sum = found == d.intervals.end() ? DpuSums::Sum{} : found->second;
            check("times " + text(start), truth.times, sum.times, whole());
            check_counts(text(start), truth.happened, sum.counts, whole());
            executed += truth.times;
            decoded += sum.times;
        }
        for (const auto& [start, sum] : d.intervals)
            if (!truth_.intervals.contains(start)) check("times " + text(start), 0, sum.times, true);
        row("places where calls led", places, d.intervals.size());
        row("intervals between them", executed, decoded);
    }
    /// By source: how often it changed the flow, and where to. A loop's entry does not contain where it jumps.
    void compare_changes(const DpuSums& d) {
        const bool places = input_.mode() != dpu::TraceMode::eonce_comp;
        std::map<std::uint32_t, DpuTruth::Change> all;
        std::uint64_t executed = 0, decoded = 0;
        for (const auto& [key, change] : truth_.changes) {
            all[key.second].times += change.times;
            if (key.first != "short-loop" && key.first != "mark") all[key.second].destinations += change.destinations;
            executed += change.times;
        }
        for (const auto& [source, truth] : all) {
            const auto found = d.changes.find(source);
            const DpuTruth::Change seen = found == d.changes.end() ? DpuTruth::Change{} : found->second;
            check(fmt::format("changes of flow at {:#010x}", source), truth.times, seen.times, all_flow());
            if (places && all_flow())
                check(fmt::format("sum of destinations of {:#010x}", source), truth.destinations, seen.destinations,
                      true);
        }
        for (const auto& [source, seen] : d.changes) {
            decoded += seen.times;
            if (!all.contains(source)) check(fmt::format("changes of flow at {:#010x}", source), 0, seen.times, true);
        }
        row("changes of flow", executed, decoded);
    }
    void compare_user_data(const DpuSums& d, const dpu::Totals&) {
        const auto tc = from_value<dpu::DpTc>(input_.value("DP_TC").value_or(0));
        const auto mode = input_.mode();
        const bool traced =
            mode == dpu::TraceMode::user || mode == dpu::TraceMode::user_raw || tc.uden || !d.user_data.empty();
        if (!traced) return;
        row("user data", truth_.user_data.size(), d.user_data.size());
        const auto same = [](const auto& decoded, const auto& executed) {
            return decoded.second == executed.second && (!decoded.first || *decoded.first == executed.first);
        };
        if (whole()) {
            check("user data", truth_.user_data.size(), d.user_data.size(), true);
            for (std::size_t i = 0; i < std::min(truth_.user_data.size(), d.user_data.size()); ++i)
                if (!same(d.user_data[i], truth_.user_data[i]))
                    difference(fmt::format("user datum {}", i), truth_.user_data[i].second, d.user_data[i].second);
            return;
        }
        // Some may be missing, but what is there is in order.
        auto at = truth_.user_data.begin();
        for (const auto& datum : d.user_data) {
            at = std::find_if(at, truth_.user_data.end(), [&](const auto& executed) { return same(datum, executed); });
            ++compared_;
            if (at == truth_.user_data.end())
                return difference("a user datum the program did not write then", 0, datum.second);
            ++at;
        }
    }

    void conclude(const dpu::Totals& totals) {
        for (const auto& d : differences_)
            out_.print("  {}: executed {}, decoded {}\n", d.what, grouped(d.executed), grouped(d.decoded));
        if (different_ > differences_.size())
            out_.print("  … and {} more\n", grouped(different_ - differences_.size()));
        for (const std::string& note : notes_) out_.print("  {}\n", note);
        if (!truth_.traced)
            out_.write("  the unit traced only part of the run: what is decoded must not be more than what executed\n");
        if (totals.lost != 0)
            out_.print("  {} found no room in the unit: what is decoded must not be more than what executed\n",
                       counted(totals.lost, "entry", "entries"));
        if (totals.holds != 0)
            out_.print("  tracing was held {}: what is decoded must not be more than what executed\n",
                       counted(totals.holds, "time"));
        if (overwritten_)
            out_.write("  older trace was overwritten: what is decoded must not be more than what executed\n");
        if (damaged_) out_.write("  the trace is damaged or cut: 'waymark dpu health' shows where\n");
        if (compared_ == 0)
            out_.print("{}: there was nothing that could be compared\n",
                       different_ != 0 || damaged_ ? "DIFFERENT" : "NOT COMPARED");
        else
            out_.print("{}: {} compared{}\n",
                       different_ != 0 || damaged_ ? "DIFFERENT"
                       : whole()                   ? "equal"
                                                   : "equal as far as the trace goes",
                       counted(compared_, "figure"),
                       different_ == 0 ? std::string() : fmt::format(", {} differ", grouped(different_)));
    }

    struct Difference {
        std::string what;
        std::uint64_t executed, decoded;
    };
    const DpuInput& input_;
    const DpuTruth& truth_;
    Output& out_;
    analysis::DpuFilter filter_;
    bool tasks_compared_ = true;
    bool overwritten_ = false, lost_ = false, damaged_ = false;
    std::uint64_t compared_ = 0, different_ = 0;
    std::vector<Difference> differences_;
    std::vector<std::string> notes_;
};

}  // namespace

Status verify_dpu(const std::string& folder, const std::string& output) {
    const auto input = DpuInput::open(folder);
    if (!input) return fail(input.error());
    const auto truth = record::read_dpu_truth(input->capture().path.parent_path());
    if (!truth) {
        const Status status = fail(truth.error());
        return truth.error().code == Errc::not_found ? static_cast<Status>(not_compared) : status;
    }
    warn(*input);
    auto out = Output::open(output, {folder});
    if (!out) return fail(out.error());
    const Status status = DpuVerification(*input, *truth, *out).run();
    return out->close() == decoded ? status : unreadable;
}

}  // namespace waymark::cli
