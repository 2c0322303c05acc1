/// Finds implausible readings of a Debug and Profiling Unit's counters. Counters count down continuously, so a damaged
/// value is visible in the differences around it: one of them is negative, which appears as 2^30 or more, or more
/// cycles were stalled than passed; and without that reading the differences are plausible (docs/spec/dpu.md, 12.1). A
/// difference of that size that no single reading explains is kept: the events may really have occurred.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "waymark/analysis/dpu.h"
#include "waymark/dpu/element.h"

namespace waymark::analysis {

/// Takes the elements of a whole trace, before `DpuCosts` and `DpuTimes` take them; the result is `DpuSetup::doubtful`.
/// Only a trace that `DpuCosts::wide` reports has doubtful readings. Memory grows only with the number of doubtful
/// readings, and is bounded.
///
/// Around an implausible difference, it searches for the fewest readings whose omission removes all such differences,
/// and leaves a difference about as small as usual. If no choice removes them all, all readings stay: a doubtful
/// reading that stays is reported by `DpuCosts::wide`, but a correct reading that is omitted would be lost. The first
/// and the last reading stay too if the values before or after them are not known. A counter with mostly large
/// differences is read too rarely for this test, so its readings are never doubted.
class DpuDoubts final : public dpu::ElementSink {
public:
    static constexpr std::size_t most_readings = std::size_t{1} << 20;

    explicit DpuDoubts(const DpuSetup& setup);
    void consume(const dpu::Batch& batch) override;
    /// The trace ends here.
    void finish();
    /// Numbers of doubtful readings, counting from 0, ascending; after `most_readings` none is added.
    [[nodiscard]] const std::vector<std::uint64_t>& readings() const { return doubtful_; }

private:
    struct Seen {
        std::uint64_t number{};
        std::optional<dpu::Counters> values{};  ///< nullopt: the values before the first reading are not known
    };
    void take(const Seen& seen);
    void judge(bool ended);
    [[nodiscard]] dpu::Counters usual() const;
    [[nodiscard]] bool fits(const Seen& before, const Seen& after, const dpu::Counters& most) const;
    [[nodiscard]] bool beyond(const dpu::Counters& before, const dpu::Counters& after) const;
    /// Whether the difference between this reading in the window and the next one is implausible.
    [[nodiscard]] bool is_step(std::size_t at) const;

    std::optional<dpu::Counters> final_;
    std::optional<unsigned> cycles_;
    std::uint8_t within_cycles_ = 0, rewritten_ = 0;
    std::uint64_t readings_ = 0;
    std::array<std::uint64_t, dpu::counter_count> large_{};  ///< number of large differences, by counter
    std::array<std::array<std::uint64_t, 32>, dpu::counter_count>
        sizes_{};  ///< number of other differences, by counter and number of bits
    std::uint64_t differences_ = 0;
    std::vector<Seen> window_;         ///< the first reading is trusted
    std::optional<std::size_t> step_;  ///< index of the reading before the first implausible difference in the window
    std::vector<std::uint64_t> doubtful_;
};

}  // namespace waymark::analysis
