/// Sums of captures with different metrics: they have one column for each metric and set of metrics (Metric::set), so
/// that further captures can be added, and are converted for readers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/answers/answers.h"

namespace waymark::answers {

/// A capture's metrics in the notation of Metric::set.
[[nodiscard]] std::string metric_set(const std::vector<Metric>& metrics);
/// Whether these columns come from captures with different metrics.
[[nodiscard]] bool have_sets(const std::vector<Metric>& metrics);

/// The columns of such a sum.
struct MetricColumns {
    static constexpr std::size_t nowhere = ~std::size_t{0};
    struct Set {
        std::string name;
        std::uint64_t captures{};
        std::vector<std::size_t> columns{};
        /// For a metric, an index in `metrics`; `nowhere`: the captures of this set do not count it.
        [[nodiscard]] std::size_t of(std::size_t metric) const {
            return metric < columns.size() ? columns[metric] : nowhere;
        }
    };
    std::vector<Metric> metrics;
    std::vector<Set> sets;
};
/// `order`: metrics that come first, if their order matters.
[[nodiscard]] MetricColumns metric_columns(const std::vector<Metric>& columns, std::vector<Metric> order = {});

/// One column for each metric. A metric that only some captures count is scaled to all captures, by function and by
/// line, using a metric that all count (CYCLES, otherwise the first one). For code that did not run in any capture
/// counting it, the mean of all code is used. Without a common metric, the result is the sum over the captures that
/// count it. Such a metric is marked as not exact. `order`: as for metric_columns. Answers whose captures all have the
/// same metrics stay unchanged.
void scale_metrics(Answers& answers, std::vector<Metric> order = {});

/// The event's name without the counter's: `CYCLES` for `A0 CYCLES`, which is used if two counters of a capture count
/// one event.
[[nodiscard]] std::string_view without_counter(std::string_view name);

/// What a capture does not state of the costs of functions (Trust::not_known); empty: nothing. Captures whose sentences
/// differ do not divide their costs alike.
[[nodiscard]] std::string not_known_of_functions(const Answers& answers);

}  // namespace waymark::answers
