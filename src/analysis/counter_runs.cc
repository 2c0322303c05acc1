#include "waymark/analysis/counter_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include "waymark/analysis/dpu_ratios.h"
#include "waymark/answers/costs.h"
#include "waymark/answers/metric_sets.h"

namespace waymark::analysis {

using namespace answers;

namespace {

/// The value of each figure in each single run. Runs that are added up form a set each.
Table table_of_runs(const Answers& sum, const MetricColumns& columns, bool by_function) {
    Table out{"runs",
              "each figure in one run: the mean, least and most of those that counted it, and how far these lie apart, "
              "of the mean",
              {},
              {}};
    out.columns = {Column::text("of"),     Column::text("metric"), Column::count("runs"),    Column::count("mean"),
                   Column::count("least"), Column::count("most"),  Column::count("spread %")};
    const auto add_rows = [&](const std::string& of, const Costs& costs) {
        for (std::size_t m = 0; m < columns.metrics.size(); ++m) {
            Costs values;
            for (const MetricColumns::Set& run : columns.sets)
                if (run.of(m) != MetricColumns::nowhere) values.push_back(cost_of(costs, run.of(m)));
            const auto [least, most] = std::minmax_element(values.begin(), values.end());
            if (values.empty() || *most == 0) continue;
            long double mean = 0;
            for (const std::uint64_t v : values) mean += static_cast<long double>(v);
            mean /= static_cast<long double>(values.size());
            out.rows.push_back({of, columns.metrics[m].name, values.size(), fmt::format("{:.0f}", mean), *least, *most,
                                fmt::format("{:.2f}", 100 * static_cast<long double>(*most - *least) / mean)});
        }
    };
    Costs all;
    std::map<Index, Costs> functions;
    for (std::size_t n = 0; n < sum.calls.size(); ++n) {
        add(all, sum.calls[n].self);
        if (n != 0) add(functions[sum.calls[n].function], sum.calls[n].self);
    }
    add_rows("all", all);
    if (!by_function) {
        out.note += "; functions are left out: not all runs show their costs";
        return out;
    }
    std::vector<std::pair<std::uint64_t, Index>> order;
    for (const auto& [function, costs] : functions) {
        std::uint64_t cost = 0;
        for (const MetricColumns::Set& run : columns.sets)
            if (run.of(0) != MetricColumns::nowhere) cost = saturating(cost, cost_of(costs, run.of(0)));
        order.emplace_back(~cost, function);
    }
    std::sort(order.begin(), order.end());
    constexpr std::size_t most_rows = 2000;
    for (const auto& [cost, function] : order) {
        if (out.rows.size() > most_rows) {
            out.note += "; the least are left out";
            break;
        }
        add_rows(function < sum.functions.size() ? sum.functions[function].name : std::string("?"),
                 functions[function]);
    }
    return out;
}

}  // namespace

Answers merge_counter_runs(std::vector<Answers> runs) {
    const bool divided_alike = std::all_of(runs.begin(), runs.end(), [&](const Answers& run) {
        return not_known_of_functions(run) == not_known_of_functions(runs.front());
    });
    // Each run becomes a set, so that merging keeps the runs apart.
    std::vector<Metric> order;
    std::vector<Table> tables;
    for (std::size_t r = 0; r < runs.size(); ++r) {
        for (Metric& m : runs[r].metrics) {
            const auto same = [&](const Metric& known) { return known.unit == m.unit && known.name == m.name; };
            const auto alike = [&](const Metric& known) {
                return known.unit == m.unit && without_counter(known.name) == without_counter(m.name);
            };
            if (std::none_of(order.begin(), order.end(), same) &&
                (r == 0 || std::none_of(order.begin(), order.end(), alike)))
                order.push_back(m);
            m.set = fmt::format("run {}", r);
            m.captures = 1;
        }
        // Tables of single runs cannot be added: all are kept, each under the name of its run.
        std::erase_if(runs[r].tables, [](const Table& t) { return t.title == "ratios"; });
        for (Table& table : runs[r].tables) table.title += " in " + runs[r].capture;
        std::move(runs[r].tables.begin(), runs[r].tables.end(), std::back_inserter(tables));
        runs[r].tables.clear();
    }
    Answers out = std::move(runs.front());
    for (std::size_t r = 1; r < runs.size(); ++r) merge(out, runs[r]);
    tables.push_back(table_of_runs(out, metric_columns(out.metrics, order), divided_alike));
    out.tables = std::move(tables);
    scale_metrics(out, std::move(order));
    add_dpu_ratios(out);
    return out;
}

}  // namespace waymark::analysis
