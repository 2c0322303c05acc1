/// What ran at each exception level, in each security state and execution state.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "waymark/analysis/flow_counts.h"
#include "waymark/answers/answers.h"
#include "waymark/flow/flow.h"

namespace waymark::analysis {

/// A state of the core, without its Context ID and VMID.
struct ExecutionLevel {
    flow::Security security{};
    std::optional<std::uint8_t> el{};  ///< 0 to 3; nothing: the trace says at most whether it is Hyp mode
    bool hyp{};
    bool aarch64{};
    friend auto operator<=>(const ExecutionLevel&, const ExecutionLevel&) = default;
};
[[nodiscard]] ExecutionLevel level_of(const flow::Context& context);

struct LevelSum {
    Work work;
    std::uint64_t entered{};  ///< times it was changed to, from another or from where none was known
    friend bool operator==(const LevelSum&, const LevelSum&) = default;
};

/// Takes the contexts of a stream, or of a part of one, with what was done up to each. What was done before the first
/// one belongs to the level at which the part before ended.
class FlowLevels {
public:
    void change(const flow::Context& context, const Work& done);
    /// All that was done so far is in the sums.
    void close(const Work& done);
    /// Takes in the part that comes next. Both are closed. `done`: with what was done in it.
    void join(const FlowLevels& next, const Work& done);

    [[nodiscard]] const std::map<ExecutionLevel, LevelSum>& sums() const { return sums_; }

private:
    std::optional<ExecutionLevel> first_, now_;
    Work before_, since_;  ///< before `first_`; up to here it is in the sums
    std::map<ExecutionLevel, LevelSum> sums_;
};

/// Rows of these sums, Secure states first. `cycles`: they were traced.
[[nodiscard]] std::vector<answers::LevelRow> level_rows(const std::map<ExecutionLevel, LevelSum>& sums, bool cycles);

}  // namespace waymark::analysis
