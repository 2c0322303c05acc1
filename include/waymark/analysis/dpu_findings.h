/// What a trace of the Debug and Profiling Unit lost, and which of its figures cannot be true: every command and the
/// doctor take their sentences from here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "waymark/analysis/dpu.h"
#include "waymark/analysis/dpu_answers.h"
#include "waymark/answers/answers.h"
#include "waymark/core/gap.h"
#include "waymark/core/types.h"

namespace waymark::analysis {

struct DpuFinding {
    enum class Kind : std::uint8_t {
        // losses
        no_room,         ///< entries found no room in the trace write buffer
        no_room_unseen,  ///< the same, and the trace does not say where
        held,            ///< software held tracing (TMPDIS)
        off,             ///< tracing was off (EN = 0) for a part of the run
        unplaced,        ///< tracing was off, nobody knows where in the trace
        overwritten,     ///< the buffer wrapped
        cut,             ///< the file of the buffer is shorter than what was written
        gap,             ///< bytes that are no entry
        incomplete,      ///< the unit still held trace
        ended,           ///< the recording ended before the run did
        // doubts
        readings,     ///< readings that cannot be true
        wide,         ///< differences of 2^30 or more
        wide_lossy,   ///< the same where entries are missing
        beyond,       ///< more was stalled than there were cycles
        rewritten,    ///< the value of a counter was written while tracing was on
        next_to_gap,  ///< entries next to damage
        unmoved       ///< no counter moved
    };
    Kind kind{};
    answers::Finding::Severity severity{};
    std::string what;  ///< a sentence without its capital and its end
    std::string todo{};
    std::optional<Offset> first{};           ///< in the trace
    GapReason reason{};                      ///< of `gap`
    std::uint64_t times = 1;                 ///< stretches, at least 1
    std::optional<std::uint64_t> bytes{};    ///< of trace; absent: not known
    std::optional<std::uint64_t> records{};  ///< entries or readings; absent: not known
};

/// What is missing from the trace: it was lost, or not traced on purpose, for a part of the run.
[[nodiscard]] std::vector<DpuFinding> dpu_losses(const DpuSaid& said);
/// What IDFLT leaves out on purpose, in one sentence; empty: nothing.
[[nodiscard]] std::string dpu_left_out(const DpuSaid& said);
/// How much of the run the trace is: from `dpu_losses`, `dpu_doubts` and what IDFLT leaves out.
[[nodiscard]] answers::Account dpu_account(const DpuSaid& said, const DpuCosts& costs);
/// The trace has everything that the unit was asked to trace, and no doubt about any part.
[[nodiscard]] bool is_whole(const DpuSaid& said, const DpuCosts& costs);
/// What there is but cannot be so, or hardly. `counter`: whose counts sentences give.
[[nodiscard]] std::vector<DpuFinding> dpu_doubts(const DpuCosts& costs, const DpuSaid& said, unsigned counter);

}  // namespace waymark::analysis
