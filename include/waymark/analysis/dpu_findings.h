/// Losses of a trace of the Debug and Profiling Unit, and implausible figures: every command and the doctor take their
/// sentences from here.
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
        no_room_unseen,  ///< the same, but the trace does not show where
        held,            ///< software held tracing (TMPDIS)
        off,             ///< tracing was off (EN = 0) for a part of the run
        unplaced,        ///< tracing was off, at an unknown place in the trace
        overwritten,     ///< the buffer wrapped
        cut_head,        ///< bytes before the first whole entry of a buffer that wrapped
        cut,             ///< the file of the buffer is shorter than the trace written
        gap,             ///< bytes that are not an entry
        incomplete,      ///< the unit still held trace
        ended,           ///< the recording ended before the run
        // doubts
        readings,     ///< implausible readings
        wide,         ///< differences of 2^30 or more
        wide_lossy,   ///< the same, where entries are missing
        beyond,       ///< more cycles were stalled than passed
        rewritten,    ///< the value of a counter was written while tracing was on
        next_to_gap,  ///< entries next to damage
        unmoved       ///< no counter moved
    };
    Kind kind{};
    answers::Finding::Severity severity{};
    std::string what;  ///< a sentence without capital letter and full stop
    std::string todo{};
    std::optional<Offset> first{};           ///< in the trace
    GapReason reason{};                      ///< of `gap` and `cut_head`
    std::uint64_t times = 1;                 ///< number of stretches, at least 1
    std::optional<std::uint64_t> bytes{};    ///< bytes of trace; absent: not known
    std::optional<std::uint64_t> records{};  ///< number of entries or readings; absent: not known
};

/// Trace that is missing for a part of the run: it was lost, or deliberately not traced.
[[nodiscard]] std::vector<DpuFinding> dpu_losses(const DpuSaid& said);
/// The events that IDFLT deliberately excludes, in one sentence; empty if there are none.
[[nodiscard]] std::string dpu_left_out(const DpuSaid& said);
/// How much of the run the trace covers, from `dpu_losses`, `dpu_doubts` and the exclusion by IDFLT.
[[nodiscard]] answers::Account dpu_account(const DpuSaid& said, const DpuCosts& costs);
/// Whether the trace contains everything that the unit was asked to trace, without doubtful parts.
[[nodiscard]] bool is_whole(const DpuSaid& said, const DpuCosts& costs);
/// Values in the trace that are impossible or implausible. `counter`: the counter whose counts the sentences state.
[[nodiscard]] std::vector<DpuFinding> dpu_doubts(const DpuCosts& costs, const DpuSaid& said, unsigned counter);

}  // namespace waymark::analysis
