/// Loops in a compressed trace of the DPU (mode EONCE_COMP): number of runs and of backward jumps. A run whose entry an
/// interrupt, an inner loop or a call splits in two counts as one run (docs/spec/dpu.md, 5.4).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "waymark/analysis/dpu_code.h"
#include "waymark/dpu/element.h"
#include "waymark/dpu/loop_starts.h"

namespace waymark::analysis {

struct DpuLoop {
    bool is_short = false;
    /// Runs from entry to exit. Runs without a backward jump leave no entry in the trace.
    std::uint64_t runs = 0;
    std::uint64_t jumps = 0;  ///< backward jumps in all runs
    /// Minimum and maximum number of iterations of one run.
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max(), most = 0;
    std::optional<std::uint32_t> start{};
    /// A run may have been counted as part of the previous one: the true number of runs may be larger, but not smaller.
    bool uncertain = false;
    [[nodiscard]] std::uint64_t iterations() const { return jumps + runs; }
};

class DpuLoops {
public:
    using Place = DpuCode::Place;

    /// `code` is borrowed.
    explicit DpuLoops(const DpuCode& code) : code_(code) {}
    /// Elements of the trace, in order.
    void take(const dpu::Element& element);
    /// Trace is missing: earlier runs may have ended, and may have begun again.
    void lose();
    void finish();
    /// By last address of the loop.
    [[nodiscard]] const std::map<Place, DpuLoop>& loops() const { return loops_; }
    [[nodiscard]] bool uncertain() const;

private:
    /// A run that may continue.
    struct Open {
        Place last;
        std::optional<std::uint32_t> start;
        std::uint64_t jumps = 0;
        bool inside = true;       ///< its body runs; otherwise code that was called from `left_at`
        bool sure = true;         ///< it certainly still runs
        std::uint32_t left_at{};  ///< the presumed call
        [[nodiscard]] bool has(std::uint32_t address) const {
            return address <= last.address && (!start || address >= *start);
        }
    };
    using Stack = std::vector<Open>;
    struct Seen {
        DpuLoop loop;
        bool compressed = false;  ///< the trace has a loop entry, not only pairs with a backward jump
        bool dropped = false;     ///< some of its runs were dropped and may continue
    };

    void run(const dpu::Element& element, std::uint64_t jumps);
    void pair(const dpu::Element& element);
    void passes(Stack& stack, std::uint32_t address);
    void close(const Open& open);
    void close_all(Stack& stack);
    [[nodiscard]] std::optional<std::uint32_t> start_of(const Place& last);

    const DpuCode& code_;
    std::map<Place, Seen> seen_;
    std::map<Place, DpuLoop> loops_;
    std::map<std::pair<bool, std::uint8_t>, Stack> stacks_;  ///< by context
    std::map<std::uint32_t, dpu::LoopStarts> starts_;        ///< by layer of the last address
    std::optional<dpu::TaskContext> context_;
};

}  // namespace waymark::analysis
