/// Converts the results of sinks, one for each stream, to `Answers`: names, call tree, edges, and every instruction of
/// the functions that ran.
///
/// An instruction that is not known to have run may have run while flow was lost. For every stretch of lost flow, A is
/// the place where flow was lost, and B the place where it was regained. These instructions may have run:
///
/// - the instructions that the static control flow of A's function reaches from A without passing B;
/// - the instructions of B's function that lead to B, unless only a callee was lost (flow came back to where a call or
///   an exception returns). If A and B are in one function and B can be reached from A, only instructions on the way
///   count;
/// - all functions that were seen to call A's or B's function, since flow may have passed through them;
/// - if trace was lost, and not turned off, also everything that the functions of A and B and those callers may call.
///   As soon as one of them branches through a register, that is all code.
///
/// If the streams are a part of the run, all code could have run in the rest. If the code that ran before the streams
/// is known (`ran_before`), only that code and the ways of its branches could have run there.
///
/// These instructions are `not_observed`; all others that did not run are `not_executed`. Indirect branches other than
/// returns may lead to every instruction of their function. A function that was called and left while trace was turned
/// off leaves no trace, and is not included.
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
    bool m_profile = false;          ///< of the traced core
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
    /// Whether an address lies in a file of a program that ran at user level; such a file contains no handler of an
    /// exception. Null: no such file is known.
    std::function<bool(std::uint64_t)> of_user_level{};
    const answers::Account* account = nullptr;  ///< of the whole capture. Borrowed; null: nothing is missing
    /// Number of stretches of the run in the streams, if the units did not trace between them; shares are then
    /// estimates. 0: the streams were traced without such pauses.
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
