#include "waymark/answers/metric_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "waymark/answers/costs.h"
#include "waymark/core/numbers.h"

namespace waymark::answers {

namespace {

constexpr std::string_view counted_in = "counted in ";

class MetricScale {
    using Set = MetricColumns::Set;
    static constexpr std::size_t nowhere = MetricColumns::nowhere;

public:
    MetricScale(Answers& answers, MetricColumns columns)
        : a_(answers), metrics_(std::move(columns.metrics)), sets_(std::move(columns.sets)) {
        for (const Set& set : sets_) captures_ += set.captures;
        if (!a_.calls.empty())
            for (const CallNode& node : a_.calls) add(all_, node.self);
        else
            for (const Instruction& i : a_.instructions) add(all_, costs_of(i));
        all_.resize(a_.metrics.size());
    }

    void scale() {
        common_ = common_metric();
        for (std::size_t m = 0; m < metrics_.size(); ++m)
            if (captures_with(m) != captures_) say(metrics_[m], captures_with(m));
        for (CallNode& node : a_.calls) collapse(node.self);
        for (Instruction& i : a_.instructions) {
            i.costs = costs_of(i);
            collapse(i.costs);
        }
        for (Line& l : a_.lines) collapse(l.costs);
        for (Edge& e : a_.edges) collapse(e.inclusive);
        for (Loop& l : a_.loops) collapse(l.costs);
        for (LevelRow& l : a_.levels) collapse(l.costs);
        a_.metrics = std::move(metrics_);
        figures();
        trust();
    }

private:
    [[nodiscard]] std::uint64_t captures_with(std::size_t m) const {
        std::uint64_t out = 0;
        for (const Set& set : sets_) out += set.of(m) != nowhere ? set.captures : 0;
        return out;
    }
    /// The sum of metric `m` over the captures that count metric `in`.
    [[nodiscard]] std::uint64_t sum(const Costs& costs, std::size_t m, std::size_t in) const {
        std::uint64_t out = 0;
        for (const Set& set : sets_)
            if (set.of(in) != nowhere && set.of(m) != nowhere) out = saturating(out, cost_of(costs, set.of(m)));
        return out;
    }
    [[nodiscard]] std::optional<std::size_t> common_metric() const {
        std::optional<std::size_t> found;
        for (std::size_t m = 0; m < metrics_.size(); ++m) {
            if (captures_with(m) != captures_) continue;
            if (without_counter(metrics_[m].name) == "CYCLES") return m;
            if (!found) found = m;
        }
        return found;
    }
    /// If an instruction has no costs, its execution count is its cost in the first metric.
    [[nodiscard]] Costs costs_of(const Instruction& i) const {
        if (!i.costs.empty()) return i.costs;
        Costs out(a_.metrics.size());
        if (!out.empty()) out.front() = i.times;
        return out;
    }
    /// Replaces the columns of all sets by one column for each metric.
    void collapse(Costs& costs) const {
        if (costs.empty()) return;
        Costs out(metrics_.size());
        for (std::size_t m = 0; m < out.size(); ++m) {
            out[m] = sum(costs, m, m);
            if (!common_ || captures_with(m) == captures_) continue;
            const std::uint64_t whole = sum(costs, *common_, *common_);
            std::uint64_t of = out[m], part = sum(costs, *common_, m), to = whole;
            if (part == 0 && of != 0) {  // it cost nothing in the common metric: use the scale of the whole
                part = sum(all_, *common_, m);
                to = sum(all_, *common_, *common_);
            } else if (part == 0) {  // it ran only where nothing counts this
                of = sum(all_, m, m);
                part = sum(all_, *common_, m);
            }
            if (part != 0)
                out[m] = static_cast<std::uint64_t>(static_cast<long double>(of) * static_cast<long double>(to) /
                                                        static_cast<long double>(part) +
                                                    0.5L);
        }
        costs = std::move(out);
    }
    void say(Metric& metric, std::uint64_t captures) const {
        metric.exact = false;
        metric.note = fmt::format("{}{} of {} captures, ", counted_in, captures, captures_);
        metric.note += common_ ? fmt::format("and scaled to all of them by {}", metrics_[*common_].name)
                               : std::string("which have no metric in common: it is the sum of those captures alone");
    }
    /// Puts totals into the summary.
    void figures() {
        Costs all;
        for (const CallNode& node : a_.calls) add(all, node.self);
        for (std::size_t m = 0; m < a_.metrics.size() && !a_.calls.empty(); ++m) {
            const auto found = std::find_if(a_.summary.begin(), a_.summary.end(),
                                            [&](const Figure& f) { return f.name == a_.metrics[m].name; });
            if (found == a_.summary.end()) continue;
            found->value = grouped(cost_of(all, m));
            found->note = a_.metrics[m].note.empty() ? fmt::format("in {} captures", captures_) : a_.metrics[m].note;
        }
    }
    /// Scaled figures are no longer exact.
    void trust() {
        std::string names;
        for (const Metric& m : a_.metrics)
            if (m.note.starts_with(counted_in)) names += (names.empty() ? "" : ", ") + m.name;
        constexpr std::array<std::string_view, 5> without_costs{"loops", "data", "health", "coverage", "branches"};
        for (Trust& t : a_.trust)
            if (!names.empty() && std::find(without_costs.begin(), without_costs.end(), t.view) == without_costs.end())
                t.estimated += fmt::format("{}{}, which some captures count: {}", t.estimated.empty() ? "" : "; ",
                                           names, common_ ? "scaled to all" : "of those alone");
    }

    Answers& a_;
    std::vector<Metric> metrics_;
    std::vector<Set> sets_;
    std::uint64_t captures_ = 0;
    Costs all_;
    std::optional<std::size_t> common_;
};

}  // namespace

std::string_view without_counter(std::string_view name) {
    const bool counter =
        name.size() > 3 && (name[0] == 'A' || name[0] == 'B') && name[1] >= '0' && name[1] <= '2' && name[2] == ' ';
    return counter ? name.substr(3) : name;
}

std::string not_known_of_functions(const Answers& answers) {
    for (const Trust& t : answers.trust)
        if (t.view == "functions") return t.not_known;
    return {};
}

std::string metric_set(const std::vector<Metric>& metrics) {
    std::vector<std::string> names;
    for (const Metric& m : metrics) names.push_back(fmt::format("{} ({})", m.name, m.unit));
    std::sort(names.begin(), names.end());
    std::string out;
    for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
    return out;
}

bool have_sets(const std::vector<Metric>& metrics) {
    return std::any_of(metrics.begin(), metrics.end(), [&](const Metric& m) { return m.set != metrics.front().set; });
}

MetricColumns metric_columns(const std::vector<Metric>& columns, std::vector<Metric> order) {
    MetricColumns out{std::move(order), {}};
    for (Metric& m : out.metrics) {
        m.set.clear();
        m.captures = 0;
    }
    for (std::size_t c = 0; c < columns.size(); ++c) {
        const Metric& m = columns[c];
        auto set = std::find_if(out.sets.begin(), out.sets.end(), [&](const auto& s) { return s.name == m.set; });
        if (set == out.sets.end()) set = out.sets.insert(set, {m.set, m.captures, {}});
        const auto find = [&](auto&& same) {
            std::size_t at = 0;
            while (at < out.metrics.size() && (out.metrics[at].unit != m.unit || !same(out.metrics[at].name) ||
                                               set->of(at) != MetricColumns::nowhere))
                ++at;
            return at;
        };
        std::size_t at = find([&](const std::string& name) { return name == m.name; });
        // A capture may count one event with two counters; then the metric's name has the counter in it.
        if (at == out.metrics.size())
            at = find([&](const std::string& name) { return without_counter(name) == without_counter(m.name); });
        if (at == out.metrics.size()) {
            out.metrics.push_back(m);
            out.metrics.back().set.clear();
            out.metrics.back().captures = 0;
        } else {
            out.metrics[at].exact &= m.exact;
        }
        set->columns.resize(std::max(set->columns.size(), at + 1), MetricColumns::nowhere);
        set->columns[at] = c;
    }
    return out;
}

void scale_metrics(Answers& answers, std::vector<Metric> order) {
    if (!have_sets(answers.metrics)) {
        for (Metric& m : answers.metrics) {
            m.set.clear();
            m.captures = 0;
        }
        return;
    }
    MetricScale(answers, metric_columns(answers.metrics, std::move(order))).scale();
}

}  // namespace waymark::answers
