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

/// One derived figure: a sum of counts over another.
struct DpuRatio {
    std::string name;                       ///< `DC miss rate`, `load`
    std::string formula;                    ///< `DC_MISS / (DC_HIT + DC_MISS)`
    std::vector<std::size_t> above, below;  ///< places of the counts
    bool complement = false;                ///< 1 minus the quotient

    /// None: what it is divided by is 0.
    [[nodiscard]] std::optional<double> value(std::span<const std::uint64_t> counts) const;
};

/// The figures that counts of these names give, in a fixed order. A name is a metric's name: `CYCLES`, `A0 CYCLES`,
/// `DC_MISS (user)`; counts that are qualified differently are not put together.
[[nodiscard]] std::vector<DpuRatio> dpu_ratios(const std::vector<std::string>& names);

using DpuRatioRow = std::pair<std::string, answers::Costs>;
/// A column for each of `ratios` and one, called `of`, that names what a row is of. Rows without any ratio are omitted.
[[nodiscard]] answers::Table ratio_table(const std::string& of, const std::vector<DpuRatio>& ratios,
                                         const std::vector<DpuRatioRow>& rows);

/// Replaces the table `ratios` of answers by one made from their metrics: a row for all, and one for each task or
/// function. Without a ratio there is no table.
void add_dpu_ratios(answers::Answers& answers);

}  // namespace waymark::analysis
