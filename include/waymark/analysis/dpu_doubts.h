/// Which readings of a Debug and Profiling Unit's counters cannot be true. Counters count down and on, so a damaged
/// value stands out by the differences around it: one of them is negative, which reads as one of 2^30 or more, or more
/// was stalled than there were cycles, and without that reading they fit (docs/spec/dpu.md, 12.1). A difference of that
/// size that no reading explains stays as it is: so much may have happened.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "waymark/analysis/dpu.h"
#include "waymark/dpu/element.h"

namespace waymark::analysis {

/// Takes the elements of a whole trace, before `DpuCosts` and `DpuTimes` do: what it finds is `DpuSetup::doubtful`.
/// Only a trace that `DpuCosts::wide` reports has any. Memory grows with what is doubted alone, and is bounded.
///
/// Around a difference that cannot be, it looks for the fewest readings without which no such difference is left and
/// what takes its place is about as small as usual. Where nothing explains all, all stays: to keep a doubtful reading,
/// which `DpuCosts::wide` reports, is better than to lose a true one. So do the first and the last reading of all
/// where the values before and after them are not known. Counters most of whose differences are large are read too
/// seldom for anything to stand out; they raise no doubt.
class DpuDoubts final : public dpu::ElementSink {
public:
    static constexpr std::size_t most_readings = std::size_t{1} << 20;

    explicit DpuDoubts(const DpuSetup& setup);
    void consume(const dpu::Batch& batch) override;
    /// The trace ends here.
    void finish();
    /// Numbers of readings from 0, ascending; beyond `most_readings` none are doubted.
    [[nodiscard]] const std::vector<std::uint64_t>& readings() const { return doubtful_; }

private:
    struct Seen {
        std::uint64_t number{};
        std::optional<dpu::Counters> values{};  ///< none: what came before the first reading is not known
    };
    void take(const Seen& seen);
    void judge(bool ended);
    [[nodiscard]] dpu::Counters usual() const;
    [[nodiscard]] bool fits(const Seen& before, const Seen& after, const dpu::Counters& most) const;
    [[nodiscard]] bool beyond(const dpu::Counters& before, const dpu::Counters& after) const;
    /// What lies between this reading in the window and the next cannot be.
    [[nodiscard]] bool is_step(std::size_t at) const;

    std::optional<dpu::Counters> final_;
    std::optional<unsigned> cycles_;
    std::uint8_t within_cycles_ = 0, rewritten_ = 0;
    std::uint64_t readings_ = 0;
    std::array<std::uint64_t, dpu::counter_count> large_{};                  ///< differences so large, by counter
    std::array<std::array<std::uint64_t, 32>, dpu::counter_count> sizes_{};  ///< the others, by counter and bits
    std::uint64_t differences_ = 0;
    std::vector<Seen> window_;         ///< the first is believed
    std::optional<std::size_t> step_;  ///< of the first difference in the window that cannot be: the reading before it
    std::vector<std::uint64_t> doubtful_;
};

}  // namespace waymark::analysis
