/// Tables of the counts of a Debug and Profiling Unit, one for each view: `waymark dpu` prints them, and `Answers` of
/// the capture contain the same (docs/spec/dpu.md, section 12).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/analysis/dpu.h"
#include "waymark/analysis/dpu_answers.h"
#include "waymark/answers/table.h"

namespace waymark::analysis {

/// A table of one view. Its title is the view's name, its note a sentence about its rows.
struct DpuTable {
    answers::Table table{};
    std::size_t left_out{};          ///< number of omitted rows
    std::optional<DpuCounts> sum{};  ///< sum of all rows, if it must equal the counters' totals
    std::string empty{};             ///< why there are no rows
};

/// Makes the tables of a decoded trace. All inputs are borrowed.
class DpuTables {
public:
    /// Rows are sorted by counter `sorted_by`.
    DpuTables(const DpuCosts& costs, const DpuCode& code, const DpuSaid& said, unsigned sorted_by);

    // Returns at most `most` rows; 0: all.
    [[nodiscard]] DpuTable tasks(std::size_t most = 0) const;
    [[nodiscard]] DpuTable functions(std::size_t most = 0) const;
    [[nodiscard]] DpuTable paths(std::size_t most = 0) const;
    [[nodiscard]] DpuTable interrupts(std::size_t most = 0) const;
    [[nodiscard]] DpuTable timeline(std::size_t most = 0) const;
    [[nodiscard]] DpuTable loops(std::size_t most = 0) const;
    [[nodiscard]] DpuTable data(std::size_t most = 0) const;
    /// `names`: names of DpuSetup::ranges, in order. Overlapping ranges have no sum.
    [[nodiscard]] DpuTable ranges(const std::vector<std::string>& names, std::vector<DpuCodeRange> ranges) const;
    /// Figures derived from the counters, by task or by function.
    [[nodiscard]] DpuTable ratios(bool by_function) const;
    /// Entries, gaps and losses of the buffer.
    [[nodiscard]] DpuTable health() const;
    /// Compares rows that add up to `sum` with the counters' own values.
    [[nodiscard]] answers::Table reconciliation(const DpuCounts& sum) const;

    /// Says that a view needs a trace mode, which `option` of --mode records.
    [[nodiscard]] std::string needs(std::string_view mode, std::string_view option) const;
    /// Names from the root to a node of DpuCosts::paths, separated by `;` as in folded stacks.
    [[nodiscard]] std::string path_text(std::size_t path) const;

private:
    void counter_columns(std::vector<answers::Column>& columns) const;
    void counter_cells(std::vector<answers::Cell>& row, const DpuCounts& counts, bool known = true) const;
    void rate_columns(std::vector<answers::Column>& columns, bool for_readers) const;
    void rate_cells(std::vector<answers::Cell>& row, const DpuCounts& counts, bool known = true) const;
    [[nodiscard]] answers::Cell count(const DpuCounts& counts, unsigned counter, bool known = true) const;
    [[nodiscard]] answers::Cell share(const DpuCounts& counts, bool known) const;
    [[nodiscard]] std::string event(unsigned counter) const;

    const DpuCosts& costs_;
    const DpuCode& code_;
    const DpuSaid& said_;
    const unsigned key_;
    std::vector<unsigned> counters_;  ///< counters that count an event, connected or not
};

/// A function's name, such as `main`, or its address if it has none.
[[nodiscard]] std::string function_text(const DpuCode::Function& function);
/// A context with the capture's name for the task: `user 7 (codec)`.
[[nodiscard]] std::string context_text(const DpuSaid& said, const dpu::TaskContext& context);
/// The same, or `<unattributed>` for an unknown owner.
[[nodiscard]] std::string owner_text(const DpuSaid& said, const DpuOwner& owner);

}  // namespace waymark::analysis
