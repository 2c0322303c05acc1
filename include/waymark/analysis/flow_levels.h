/// Work at each exception level, security state and execution state.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "waymark/analysis/flow_counts.h"
#include "waymark/answers/answers.h"
#include "waymark/flow/flow.h"

namespace waymark::analysis {

/// A state of the core, without its Context ID and VMID.
struct ExecutionLevel {
    flow::Security security{};
    std::optional<std::uint8_t> el{};  ///< 0 to 3; nullopt: the trace tells at most whether it is Hyp mode
    bool hyp{};
    bool aarch64{};
    bool m_profile{};  ///< of the core, which has modes: 0 is Thread mode, 3 Handler mode
    friend auto operator<=>(const ExecutionLevel&, const ExecutionLevel&) = default;
};
[[nodiscard]] ExecutionLevel level_of(const flow::Context& context);
/// `EL0` to `EL3`; of a core of the M profile `Thread mode`, `Handler mode`.
[[nodiscard]] std::string level_text(std::uint8_t el, bool m_profile);

struct LevelSum {
    Work work;
    std::uint64_t entered{};  ///< number of changes to it, from another level or from an unknown one
    friend bool operator==(const LevelSum&, const LevelSum&) = default;
};

/// Takes the contexts of a stream, or of a part of a stream, each with the work done before it. Work before the first
/// context belongs to the level in which the previous part ended.
class FlowLevels {
public:
    void change(const flow::Context& context, const Work& done);
    /// Begins with the first context. The work done before it is in no sum.
    void begin(const flow::Context& context, const Work& done);
    /// Adds all work so far to the sums.
    void close(const Work& done);
    /// Joins the next part. Both are closed. `done`: work including that part.
    void join(const FlowLevels& next, const Work& done);

    [[nodiscard]] const std::map<ExecutionLevel, LevelSum>& sums() const { return sums_; }

private:
    std::optional<ExecutionLevel> first_, now_;
    Work before_, since_;  ///< work before `first_`; work up to which the sums are complete
    std::map<ExecutionLevel, LevelSum> sums_;
};

/// The sums as rows, Secure states first. `cycles`: cycles were traced.
[[nodiscard]] std::vector<answers::LevelRow> level_rows(const std::map<ExecutionLevel, LevelSum>& sums, bool cycles);

}  // namespace waymark::analysis
