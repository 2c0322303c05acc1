#include "waymark/record_dpu/dpu_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "waymark/core/numbers.h"
#include "waymark/dpu/registers.h"

namespace waymark::record {

namespace {

std::string text(const DpuTruth::Context& c) {
    return fmt::format("{} {}", c.supervisor ? "supervisor" : "user", c.id);
}
std::string text(const DpuTruth::Start& s) { return fmt::format("{} from {:#010x}", text(s.first), s.second); }
const DpuTruth::Context& context_of(const DpuTruth::Context& c) { return c; }
const DpuTruth::Context& context_of(const DpuTruth::Start& s) { return s.first; }

}  // namespace

class DpuComparison::Inside {
public:
    Inside(const DpuTruth& truth, Setup setup) : truth_(truth), setup_(std::move(setup)) {
        using enum dpu::TraceMode;
        by_task_ = setup_.mode == task || setup_.mode == flow;
        eonce_ = setup_.mode == eonce_raw || setup_.mode == eonce_comp;
        if (setup_.filter_changed)
            out_.notes.emplace_back(
                "the costs of tasks are not compared: IDFLT, or an ID that it compares with, changed during the run");
        else if (setup_.filtered)
            out_.notes.emplace_back("IDFLT: of tasks that match, all is compared; what others had is <filtered>");
        if (setup_.overwritten) return;
        if (truth.first && truth.traced) place_ = truth.first->second;
        if (setup_.context) enter({setup_.context->supervisor, setup_.context->id});
    }

    void consume(const dpu::Batch& batch) {
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
                case dpu::ElementKind::user_data: user_data_.emplace_back(e.context.id, e.value); break;
                case dpu::ElementKind::user_raw: user_data_.emplace_back(std::nullopt, e.value); break;
                case dpu::ElementKind::lost:
                case dpu::ElementKind::held:
                case dpu::ElementKind::enabled: missing_ = true; break;
                case dpu::ElementKind::gap:
                    missing_ |= e.reason != GapReason::padding && e.reason != GapReason::unsynchronised;
                    break;
                default: break;
            }
            if (eonce_ && known && !e.has(dpu::Element::doubtful)) enter(context);
        }
    }

    DpuCompared finish(const dpu::Totals& totals, bool cut) {
        // Uses the counts after the last reading.
        if (!values_ && !setup_.overwritten) values_ = setup_.initial;
        if (values_ && setup_.final) {
            for (unsigned i = 0; i < dpu::counter_count; ++i) {
                const std::uint64_t n = ((*values_)[i] - (*setup_.final)[i]) & dpu::counter_mask;
                total_[i] += n;
                pending_[i] += n;
            }
            end_interval();
        }
        lost_ = totals.lost != 0 || totals.holds != 0 || totals.offs != 0;
        const std::uint64_t of_overwriting =
            setup_.overwritten ? totals.gap_bytes[static_cast<std::size_t>(GapReason::unsynchronised)] : 0;
        damaged_ = cut || totals.doubtful != 0 || totals.lost_bytes() != of_overwriting;

        using enum dpu::TraceMode;
        const auto mode = setup_.mode;
        compare_counters();
        if (!setup_.filter_changed) {
            if (by_task_ || eonce_)
                compare_sums(truth_.contexts, contexts_, "stays of ", by_task_, "tasks, in both privileges", "stays");
            if (mode == flow)
                compare_sums(truth_.intervals, intervals_, "times ", true, "places where calls led",
                             "intervals between them");
        }
        if (mode == flow || eonce_) compare_changes();
        if (mode == sw_sample || mode == edca5)
            out_.notes.emplace_back("costs of tasks are not compared: samples do not record tasks");
        compare_user_data();

        constexpr std::string_view not_more = "the decoded number must not be greater than the executed one";
        if (!truth_.traced) out_.notes.push_back(fmt::format("the unit traced only part of the run: {}", not_more));
        if (totals.lost != 0)
            out_.notes.push_back(
                fmt::format("{} found no room in the unit: {}", counted(totals.lost, "entry", "entries"), not_more));
        if (totals.holds != 0)
            out_.notes.push_back(fmt::format("tracing was held {}: {}", counted(totals.holds, "time"), not_more));
        if (totals.offs != 0)
            out_.notes.push_back(
                fmt::format("tracing was off (EN = 0) {}: {}", counted(totals.offs, "time"), not_more));
        if (setup_.overwritten) out_.notes.push_back(fmt::format("older trace was overwritten: {}", not_more));
        if (damaged_) out_.notes.emplace_back("the trace is damaged or cut: 'waymark dpu health' shows where");
        out_.damaged = damaged_;
        out_.whole = whole();
        return std::move(out_);
    }

private:
    using Counts = std::array<std::uint64_t, dpu::counter_count>;
    struct Sum {
        std::uint64_t times = 0;
        Counts counts{};
        void add(const Counts& more) {
            for (std::size_t c = 0; c < more.size(); ++c) counts[c] += more[c];
        }
    };
    using Context = DpuTruth::Context;

    [[nodiscard]] bool matches(const Context& c) const { return setup_.matches({c.supervisor, c.id}); }
    [[nodiscard]] bool whole() const { return truth_.traced && !lost_ && !setup_.overwritten && !damaged_; }
    /// Whether the views of flow contain all costs: a filter excludes a part of the costs that are not counted by task.
    [[nodiscard]] bool all_flow() const { return whole() && !setup_.filtered && !setup_.filter_changed; }
    void enter(const Context& context) {
        if (context_ != context && matches(context)) ++contexts_[context].times;
        context_ = context;
    }
    void read(const dpu::Reading& r) {
        values_ = r.values;
        if (r.has(dpu::Reading::lossy) || r.has(dpu::Reading::first)) missing_ = true;
        for (unsigned i = 0; i < dpu::counter_count; ++i) {
            total_[i] += r.deltas[i];
            pending_[i] += r.deltas[i];
        }
    }
    void change(const dpu::Element& e, const dpu::Reading& r, const Context& context) {
        read(r);
        end_interval();
        add_change(e.from, 1, e.to);
        enter(context);
        place_ = e.to;
    }
    void end_interval() {
        if (by_task_ && context_ && !missing_ && matches(*context_)) {
            contexts_[*context_].add(pending_);
            if (place_ && setup_.mode == dpu::TraceMode::flow) {
                Sum& sum = intervals_[{*context_, *place_}];
                ++sum.times;
                sum.add(pending_);
            }
        }
        pending_ = {};
        missing_ = false;
    }
    void add_change(std::uint32_t source, std::uint64_t times, std::uint32_t destination) {
        DpuTruth::Change& to = changes_[source];
        to.times += times;
        to.destinations += destination;
    }

    void difference(const std::string& what, std::uint64_t executed, std::uint64_t decoded) {
        constexpr std::uint64_t most = 10;
        if (out_.different++ < most) out_.differences.push_back({what, executed, decoded});
    }
    /// Compares one figure. If `exact` is false, the trace may show less.
    void check(const std::string& what, std::uint64_t executed, std::uint64_t decoded, bool exact) {
        ++out_.compared;
        if (exact ? executed != decoded : decoded > executed) difference(what, executed, decoded);
    }
    void check_counts(const std::string& what, const Happened& executed, const Counts& decoded, bool exact) {
        for (unsigned c = 0; c < dpu::counter_count; ++c)
            if (truth_.counters[c])
                check(fmt::format("{}: {}", what, setup_.event_names[c]), executed.count[*truth_.counters[c]],
                      decoded[c], exact);
    }

    void compare_counters() {
        for (unsigned c = 0; c < dpu::counter_count; ++c) {
            const auto wire = setup_.events[c];
            if (!truth_.counters[c]) {
                const bool in_truth =
                    wire && std::find(truth_wires.begin(), truth_wires.end(), *wire) != truth_wires.end();
                if (wire && wire != dpu::EventWire::none) {
                    out_.notes.push_back(fmt::format(
                        "{} {} is not compared: {}", dpu::counter_name(c), name(*wire),
                        in_truth ? "it did not count during the whole run" : "the truth does not count it"));
                    ++out_.counters_left_out;
                }
                continue;
            }
            const std::uint64_t executed = truth_.total.count[*truth_.counters[c]];
            out_.sums.push_back({setup_.event_names[c], executed, total_[c]});
            // Losses remove entries, not counts: the next reading includes the counts.
            check("in all: " + setup_.event_names[c], executed, total_[c],
                  !setup_.overwritten && !damaged_ && truth_.counted);
        }
    }

    template <class Key>
    void compare_sums(const std::map<Key, DpuTruth::Counted>& truth, const std::map<Key, Sum>& decoded,
                      const char* times, bool counts, const char* places, const char* sum) {
        std::uint64_t there = 0, executed_times = 0, decoded_times = 0;
        for (const auto& [key, executed] : truth) {
            if (!matches(context_of(key))) continue;
            ++there;
            const auto found = decoded.find(key);
            const Sum seen = found == decoded.end() ? Sum{} : found->second;
            check(times + text(key), executed.times, seen.times, whole());
            if (counts) check_counts(text(key), executed.happened, seen.counts, whole());
            executed_times += executed.times;
            decoded_times += seen.times;
        }
        for (const auto& [key, seen] : decoded)
            if (!truth.contains(key)) check(times + text(key), 0, seen.times, true);
        out_.sums.push_back({places, there, decoded.size()});
        out_.sums.push_back({sum, executed_times, decoded_times});
    }

    /// Compares changes of flow by source: their number and targets. A loop's entry does not contain its target.
    void compare_changes() {
        const bool places = setup_.mode != dpu::TraceMode::eonce_comp;
        std::map<std::uint32_t, DpuTruth::Change> all;
        std::uint64_t executed = 0, decoded = 0;
        for (const auto& [key, change] : truth_.changes) {
            all[key.second].times += change.times;
            if (key.first != "short-loop" && key.first != "mark") all[key.second].destinations += change.destinations;
            executed += change.times;
        }
        for (const auto& [source, truth] : all) {
            const auto found = changes_.find(source);
            const DpuTruth::Change seen = found == changes_.end() ? DpuTruth::Change{} : found->second;
            check(fmt::format("changes of flow at {:#010x}", source), truth.times, seen.times, all_flow());
            if (places && all_flow())
                check(fmt::format("sum of destinations of {:#010x}", source), truth.destinations, seen.destinations,
                      true);
        }
        for (const auto& [source, seen] : changes_) {
            decoded += seen.times;
            if (!all.contains(source)) check(fmt::format("changes of flow at {:#010x}", source), 0, seen.times, true);
        }
        out_.sums.push_back({"changes of flow", executed, decoded});
    }

    void compare_user_data() {
        const bool traced = setup_.mode == dpu::TraceMode::user || setup_.mode == dpu::TraceMode::user_raw ||
                            setup_.user_data || !user_data_.empty();
        if (!traced) return;
        out_.sums.push_back({"user data", truth_.user_data.size(), user_data_.size()});
        const auto same = [](const auto& decoded, const auto& executed) {
            return decoded.second == executed.second && (!decoded.first || *decoded.first == executed.first);
        };
        if (whole()) {
            check("user data", truth_.user_data.size(), user_data_.size(), true);
            for (std::size_t i = 0; i < std::min(truth_.user_data.size(), user_data_.size()); ++i)
                if (!same(user_data_[i], truth_.user_data[i]))
                    difference(fmt::format("user datum {}", i), truth_.user_data[i].second, user_data_[i].second);
            return;
        }
        // Some data may be missing, but the data in the trace are in order.
        auto at = truth_.user_data.begin();
        for (const auto& datum : user_data_) {
            at = std::find_if(at, truth_.user_data.end(), [&](const auto& executed) { return same(datum, executed); });
            ++out_.compared;
            if (at == truth_.user_data.end())
                return difference("a user datum the program did not write then", 0, datum.second);
            ++at;
        }
    }

    const DpuTruth& truth_;
    const Setup setup_;
    bool by_task_ = false, eonce_ = false;

    // The decoded values.
    std::optional<Context> context_;
    std::optional<std::uint32_t> place_;
    std::optional<dpu::Counters> values_;
    Counts pending_{};
    bool missing_ = false;
    Counts total_{};
    std::map<Context, Sum> contexts_;  // times: stays
    std::map<DpuTruth::Start, Sum> intervals_;
    std::map<std::uint32_t, DpuTruth::Change> changes_;  // by source
    std::vector<std::pair<std::optional<std::uint8_t>, std::uint32_t>> user_data_;

    bool lost_ = false, damaged_ = false;
    DpuCompared out_;
};

DpuComparison::DpuComparison(const DpuTruth& truth, Setup setup)
    : inside_(std::make_unique<Inside>(truth, std::move(setup))) {}
DpuComparison::~DpuComparison() = default;
void DpuComparison::consume(const dpu::Batch& batch) { inside_->consume(batch); }
DpuCompared DpuComparison::finish(const dpu::Totals& totals, bool cut) { return inside_->finish(totals, cut); }

}  // namespace waymark::record
