/// From what sinks kept of each stream to `Answers`: names, call tree, edges, and every instruction of the functions
/// that ran.
///
/// Whether an instruction that is not known to have run could have: for every stretch of lost flow, from the place
/// where it was lost to the place where it was regained,
///
/// - what can be reached from the first, by the static control flow of its function, without passing the second;
/// - what of the second's function leads to it, unless only something called was lost (flow came back to where a call
///   or an exception returns); if both are in one function and the second can be reached from the first, only what lies
///   on the way;
/// - all of whoever was seen to call the function of either, for flow may have passed through it.
///
/// and, where trace was lost rather than turned off, all that the functions of either and those callers may call, which
/// is everything as soon as they branch through a register.
///
/// Where the streams are a part of the run, everything could have run in the rest; of a part before them of which it is
/// known what ran (`ran_before`), that code and the ways of its branches.
///
/// All of that is `not_observed`, everything else that did not run is `not_executed`. Indirect branches other than
/// returns may lead to every instruction of their function. What was called and left while trace was turned off leaves
/// no sign, and is not counted among it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "waymark/analysis/flow_sink.h"
#include "waymark/analysis/flow_steps.h"
#include "waymark/analysis/flow_timeline.h"
#include "waymark/answers/answers.h"
#include "waymark/answers/steps.h"
#include "waymark/capture/ran_before.h"
#include "waymark/image/debug_info.h"
#include "waymark/image/memory_map.h"
#include "waymark/image/program_file.h"
#include "waymark/image/symbols.h"
#include "waymark/isa/decode_instr.h"

namespace waymark::analysis {

/// The decoded stream of one source in one buffer.
struct FlowStream {
    const FlowSink* sink{};  ///< finished
    std::string source;      ///< its name; streams with the same name form one source
    isa::DecodeOptions decode{};
    std::string buffer{};
    const FlowTimeline* timeline{};  ///< finished; null: no timeline was requested
    const FlowSteps* steps{};        ///< requires a timeline, from which it takes times; null: not requested
};

using ProgramFile = image::LoadedFile;

/// The process and thread of a Context ID.
struct ContextName {
    std::string process, thread;  ///< `sort[100]`, `worker[101]`
};

struct FlowAnswersOptions {
    std::vector<ProgramFile> files{};
    bool instructions = false;  ///< including blocks, branches, lines and loops
    /// Includes instructions of functions that were never seen to be entered, if their code is known. They are
    /// `not_executed`, or `not_observed` if flow was lost within the trace and returned elsewhere than in the caller.
    bool all_functions = false;
    bool inlined = false;  ///< with instructions: their inlined calls
    bool ranges = false;   ///< exact ranges and branches by image, which other functions fill (analysis/image_tables.h)
    bool cycles = false;   ///< cycles were traced
    /// The capture has other sources than these streams' sources: the call tree has a root for each source.
    bool several_sources = false;
    /// The streams cover a part of the run: any code could have run in the rest, so code that did not run is not
    /// observed.
    bool partial = false;
    /// Whether an address lies in a file of a program that ran at user level: no handler of an exception does. Null:
    /// none is known to.
    std::function<bool(std::uint64_t)> of_user_level{};
    bool lower_bounds = false;  ///< a part of the run is missing, so the results are lower bounds
    /// Number of stretches of the run in the streams, if the units did not trace between them: counts are then
    /// estimates. 0: the streams are not such stretches.
    std::uint64_t stretches = 0;
    bool sampled = false;  ///< the streams are samples of branches
    /// Rate of timestamps, in ticks per second; 0: not known.
    std::uint64_t ticks_per_second = 0;
    std::size_t most_slices = 200000;
    bool timestamps = true;  ///< use time for the timeline's axis if the trace has timestamps
    /// Names of Context IDs that are threads. Empty: they have no names.
    std::function<ContextName(std::uint32_t)> context_name{};
    answers::Steps* steps = nullptr;  ///< gets the steps of the streams
    /// Code that ran before the streams begin, by address. Borrowed; null: none is known, or see `partial`.
    const capture::RanBefore* ran_before = nullptr;
    FlowWindow window{};  ///< the window of timelines and steps
};

/// How often units stopped tracing for a while, by their own programming.
struct StretchesOff {
    std::uint64_t all{};
    /// Stretches that address filters do not explain, since the excluded code was traced at other times.
    std::uint64_t not_by_address{};
};
/// For streams with calls.
[[nodiscard]] StretchesOff stretches_off(const std::vector<FlowStream>& streams);

/// Fills `answers` except for `capture`, `unit`, `version`, `trace_bytes`, summary and health.
void fill_flow_answers(answers::Answers& answers, const std::vector<FlowStream>& streams,
                       const FlowAnswersOptions& options);

}  // namespace waymark::analysis
