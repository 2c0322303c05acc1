/// Sums of captures that do not all count the same: one column for each metric and set of metrics (Metric::set), so
/// that more can be added; and what readers get of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/answers/answers.h"

namespace waymark::answers {

/// The metrics of a capture as Metric::set names them.
[[nodiscard]] std::string metric_set(const std::vector<Metric>& metrics);
/// Whether these are the columns of captures that do not all count the same.
[[nodiscard]] bool have_sets(const std::vector<Metric>& metrics);

/// The columns of such a sum.
struct MetricColumns {
    static constexpr std::size_t nowhere = ~std::size_t{0};
    struct Set {
        std::string name;
        std::uint64_t captures{};
        std::vector<std::size_t> columns{};
        /// Of a metric, a place in `metrics`; `nowhere`: the captures of this set do not count it.
        [[nodiscard]] std::size_t of(std::size_t metric) const {
            return metric < columns.size() ? columns[metric] : nowhere;
        }
    };
    std::vector<Metric> metrics;
    std::vector<Set> sets;
};
/// `order`: metrics that come first, where their order matters.
[[nodiscard]] MetricColumns metric_columns(const std::vector<Metric>& columns, std::vector<Metric> order = {});

/// One column a metric. What only some captures count is scaled to all of them, function by function and line by line,
/// by a metric that all count (CYCLES, else the first); where no capture that counts it ran the code, by the mean of
/// all code. Without such a metric it is the sum of those that count it. Such a metric is no longer exact, and says so.
/// `order`: as metric_columns has it. Answers in which all count the same stay as they are.
void scale_metrics(Answers& answers, std::vector<Metric> order = {});

/// `A0 CYCLES`, the name of an event that two counters of a capture count → `CYCLES`.
[[nodiscard]] std::string_view without_counter(std::string_view name);

}  // namespace waymark::answers
