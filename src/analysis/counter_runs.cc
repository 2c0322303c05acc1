#include "waymark/analysis/counter_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "waymark/analysis/dpu_ratios.h"
#include "waymark/answers/parts.h"
#include "waymark/core/numbers.h"

namespace waymark::analysis {

using namespace answers;

namespace {

/// `A0 CYCLES` → `CYCLES`.
std::string_view without_counter(std::string_view name) {
    const bool counter =
        name.size() > 3 && (name[0] == 'A' || name[0] == 'B') && name[1] >= '0' && name[1] <= '2' && name[2] == ' ';
    return counter ? name.substr(3) : name;
}

/// Figures of several runs of counters from what each of them counted.
class RunScale {
public:
    /// Metrics of `answers` are columns of runs: `column` says which of metric `m` in run `r` it is, or none.
    RunScale(Answers& answers, std::vector<Metric> metrics, std::vector<std::vector<std::size_t>> columns)
        : a_(answers), columns_(std::move(columns)) {
        a_.metrics = std::move(metrics);
        for (const CallNode& node : a_.calls) raw_.push_back(node.self);
        Costs all;
        for (const Costs& self : raw_) {
            all.resize(std::max(all.size(), self.size()));
            for (std::size_t i = 0; i < self.size(); ++i) all[i] += self[i];
        }
        all_ = std::move(all);
    }

    void scale() {
        common_ = common_metric();
        for (std::size_t m = 0; m < a_.metrics.size(); ++m)
            if (const std::size_t times = runs_with(m); times != columns_.size()) say(a_.metrics[m], times);
        for (std::size_t n = 0; n < a_.calls.size(); ++n) collapse(a_.calls[n].self);
        for (Instruction& i : a_.instructions) collapse(i.costs);
        for (Line& l : a_.lines) collapse(l.costs);
        for (Edge& e : a_.edges) collapse(e.inclusive);
        for (Loop& l : a_.loops) collapse(l.costs);
        figures();
        table();
        trust();
    }

private:
    static constexpr std::size_t nowhere = ~std::size_t{0};

    [[nodiscard]] bool counts(std::size_t run, std::size_t m) const { return columns_[run][m] != nowhere; }
    [[nodiscard]] std::size_t runs_with(std::size_t m) const {
        std::size_t out = 0;
        for (std::size_t r = 0; r < columns_.size(); ++r) out += counts(r, m) ? 1 : 0;
        return out;
    }
    [[nodiscard]] std::uint64_t value(const Costs& costs, std::size_t run, std::size_t m) const {
        return counts(run, m) && columns_[run][m] < costs.size() ? costs[columns_[run][m]] : 0;
    }
    /// Of metric `m`, in the runs that count metric `in`.
    [[nodiscard]] std::uint64_t sum(const Costs& costs, std::size_t m, std::size_t in) const {
        std::uint64_t out = 0;
        for (std::size_t r = 0; r < columns_.size(); ++r)
            if (counts(r, in)) out += value(costs, r, m);
        return out;
    }
    /// What all runs count: CYCLES, else the first.
    [[nodiscard]] std::optional<std::size_t> common_metric() const {
        std::optional<std::size_t> found;
        for (std::size_t m = 0; m < a_.metrics.size(); ++m) {
            if (runs_with(m) != columns_.size()) continue;
            if (without_counter(a_.metrics[m].name) == "CYCLES") return m;
            if (!found) found = m;
        }
        return found;
    }
    /// Columns of runs → metrics.
    void collapse(Costs& costs) const {
        if (costs.empty()) return;
        Costs out(a_.metrics.size());
        for (std::size_t m = 0; m < out.size(); ++m) {
            out[m] = sum(costs, m, m);
            if (!common_ || out[m] == 0 || runs_with(m) == columns_.size()) continue;
            std::uint64_t part = sum(costs, *common_, m), whole = sum(costs, *common_, *common_);
            if (part == 0) {  // it cost nothing of the common counter: scale as all do
                part = sum(all_, *common_, m);
                whole = sum(all_, *common_, *common_);
            }
            if (part != 0)
                out[m] = static_cast<std::uint64_t>(static_cast<long double>(out[m]) * static_cast<long double>(whole) /
                                                        static_cast<long double>(part) +
                                                    0.5L);
        }
        costs = std::move(out);
    }
    void say(Metric& metric, std::size_t times) const {
        metric.exact = false;
        metric.note = fmt::format("counted in {} of {} runs, ", times, columns_.size());
        metric.note += common_ ? fmt::format("and scaled to all of them by {}", a_.metrics[*common_].name)
                               : std::string("which have no counter in common: it is the sum of those runs alone");
    }
    /// Totals in the summary.
    void figures() {
        for (std::size_t m = 0; m < a_.metrics.size(); ++m) {
            std::uint64_t all = 0;
            for (const CallNode& node : a_.calls) all += m < node.self.size() ? node.self[m] : 0;
            const auto found = std::find_if(a_.summary.begin(), a_.summary.end(),
                                            [&](const Figure& f) { return f.name == a_.metrics[m].name; });
            if (found == a_.summary.end()) continue;
            found->value = grouped(all);
            found->note = a_.metrics[m].note.empty() ? fmt::format("in {} runs", columns_.size()) : a_.metrics[m].note;
        }
    }
    /// What is scaled is no longer exact.
    void trust() {
        std::string names;
        for (const Metric& m : a_.metrics)
            if (m.note.starts_with("counted in ")) names += (names.empty() ? "" : ", ") + m.name;
        for (Trust& t : a_.trust)
            if (!names.empty() && t.view != "loops" && t.view != "data" && t.view != "health")
                t.estimated +=
                    fmt::format("{}{}, which some runs count: scaled to all", t.estimated.empty() ? "" : "; ", names);
    }
    void table() {
        Table out{"runs",
                  "each figure in one run: the mean, least and most of those that counted it, and how far these "
                  "lie apart, of the mean",
                  {},
                  {}};
        out.columns = {Column::text("of"),     Column::text("metric"), Column::count("runs"),    Column::count("mean"),
                       Column::count("least"), Column::count("most"),  Column::count("spread %")};
        const auto add = [&](const std::string& of, std::size_t m, const std::vector<std::uint64_t>& values) {
            const auto [least, most] = std::minmax_element(values.begin(), values.end());
            if (values.empty() || *most == 0) return;
            long double mean = 0;
            for (const std::uint64_t v : values) mean += static_cast<long double>(v);
            mean /= static_cast<long double>(values.size());
            out.rows.push_back({of, a_.metrics[m].name, values.size(), fmt::format("{:.0f}", mean), *least, *most,
                                fmt::format("{:.2f}", 100 * static_cast<long double>(*most - *least) / mean)});
        };
        std::map<Index, std::vector<std::size_t>> nodes;
        for (std::size_t n = 1; n < a_.calls.size(); ++n) nodes[a_.calls[n].function].push_back(n);
        std::vector<std::pair<std::uint64_t, Index>> order;
        for (const auto& [f, own] : nodes) {
            std::uint64_t cost = 0;
            for (const std::size_t n : own)
                cost += a_.calls[n].self.empty() ? 0 : a_.calls[n].self[common_.value_or(0)];
            order.emplace_back(~cost, f);
        }
        std::sort(order.begin(), order.end());
        const auto of = [&](const std::vector<std::size_t>* own, const std::string& name) {
            for (std::size_t m = 0; m < a_.metrics.size(); ++m) {
                std::vector<std::uint64_t> values;
                for (std::size_t r = 0; r < columns_.size(); ++r) {
                    if (!counts(r, m)) continue;
                    std::uint64_t in_run = 0;
                    if (own != nullptr)
                        for (const std::size_t n : *own) in_run += value(raw_[n], r, m);
                    else
                        in_run = value(all_, r, m);
                    values.push_back(in_run);
                }
                add(name, m, values);
            }
        };
        of(nullptr, "all");
        constexpr std::size_t most_rows = 2000;
        for (const auto& [cost, f] : order) {
            if (out.rows.size() > most_rows) {
                out.note += "; the least are left out";
                break;
            }
            of(&nodes[f], f < a_.functions.size() ? a_.functions[f].name : std::string("?"));
        }
        a_.tables.push_back(std::move(out));
    }

    Answers& a_;
    std::vector<std::vector<std::size_t>> columns_;  // by run and metric
    std::vector<Costs> raw_;                         // by node of calls, before
    Costs all_;
    std::optional<std::size_t> common_;
};

}  // namespace

Answers merge_counter_runs(std::vector<Answers> runs) {
    // Each run's metrics get names of their own, so that merging keeps them apart.
    std::vector<Metric> metrics;
    std::vector<std::vector<std::size_t>> metric_of(runs.size());
    for (std::size_t r = 0; r < runs.size(); ++r) {
        std::vector<bool> taken(metrics.size());
        for (const Metric& m : runs[r].metrics) {
            const auto find = [&](auto&& same) {
                std::size_t at = 0;
                while (at < taken.size() && (taken[at] || metrics[at].unit != m.unit || !same(metrics[at].name))) ++at;
                return at;
            };
            std::size_t at = find([&](const std::string& name) { return name == m.name; });
            // One run may count an event twice, and call it after its counter.
            if (at == taken.size())
                at = find([&](const std::string& name) { return without_counter(name) == without_counter(m.name); });
            if (at == taken.size()) metrics.push_back(m);
            if (at < taken.size()) {
                taken[at] = true;
                metrics[at].exact &= m.exact;
            }
            metric_of[r].push_back(at < taken.size() ? at : metrics.size() - 1);
        }
        std::erase_if(runs[r].tables, [](const Table& t) { return t.title == "ratios"; });
        for (Table& table : runs[r].tables) table.title += " in " + runs[r].capture;
    }
    std::vector<std::vector<std::size_t>> columns(runs.size(),
                                                  std::vector<std::size_t>(metrics.size(), ~std::size_t{0}));
    std::size_t column = 0;
    for (std::size_t r = 0; r < runs.size(); ++r)
        for (std::size_t i = 0; i < runs[r].metrics.size(); ++i) {
            columns[r][metric_of[r][i]] = column++;
            runs[r].metrics[i].name = fmt::format("{}:{}", r, i);
        }
    // Tables of single runs do not add up: all are kept, each by the name of its run.
    std::vector<Table> tables;
    for (Answers& run : runs) {
        std::move(run.tables.begin(), run.tables.end(), std::back_inserter(tables));
        run.tables.clear();
    }
    Answers out = std::move(runs.front());
    for (std::size_t r = 1; r < runs.size(); ++r) merge(out, runs[r]);
    out.tables = std::move(tables);
    RunScale(out, std::move(metrics), std::move(columns)).scale();
    add_dpu_ratios(out);
    return out;
}

}  // namespace waymark::analysis
