/// Figures derived from counters of a Debug and Profiling Unit: miss rates, stall shares, load, use of the bus
/// (docs/spec/dpu.md, 12.2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "waymark/answers/answers.h"

namespace waymark::analysis {

/// One derived figure: a sum of counts divided by another.
struct DpuRatio {
    std::string name;                       ///< such as `DC miss rate`, `load`
    std::string formula;                    ///< such as `DC_MISS / (DC_HIT + DC_MISS)`
    std::vector<std::size_t> above, below;  ///< indices of the counts
    bool complement = false;                ///< 1 minus the quotient

    /// nullopt if the divisor is 0.
    [[nodiscard]] std::optional<double> value(std::span<const std::uint64_t> counts) const;
};

/// The figures that can be derived from counts with these names, in a fixed order. A name is the name of a metric:
/// `CYCLES`, `A0 CYCLES`, `DC_MISS (user)`; counts with different qualifiers are not combined.
[[nodiscard]] std::vector<DpuRatio> dpu_ratios(const std::vector<std::string>& names);

using DpuRatioRow = std::pair<std::string, answers::Costs>;
/// A column for each of `ratios`, and a column `of` with the subject of the row. Rows without any ratio are omitted.
[[nodiscard]] answers::Table ratio_table(const std::string& of, const std::vector<DpuRatio>& ratios,
                                         const std::vector<DpuRatioRow>& rows);

/// Replaces the table `ratios` of answers by one that is computed from their metrics: a row for the total, and one for
/// each task or function. Without ratios there is no table.
void add_dpu_ratios(answers::Answers& answers);

}  // namespace waymark::analysis
