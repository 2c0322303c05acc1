/// A Debug and Profiling Unit as a model, driven by a text instead of a program: events cycle by cycle
/// (docs/spec/dpu.md, 13.5).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/dpu/model.h"
#include "waymark/dpu/register_program.h"

namespace waymark::record {

/// One line of a stimulus: cycles, and the items of the first of them.
struct StimulusStep {
    std::uint64_t cycles = 1;  ///< more than one: no items and writes
    dpu::CoreContext context;  ///< in force, before the items
    std::vector<dpu::EonceItem> items;
    std::vector<dpu::RegisterWrite> writes;
    bool sample = false;                                           ///< SAMPLE of DP_TC is written
    bool in_debug = false;                                         ///< the core is in debug state
    std::vector<std::pair<dpu::EventWire, std::uint64_t>> events;  ///< each once, with its number of occurrences
    unsigned line{};                                               ///< of the text
};
/// Steps that are repeated `times` times: from `first` to before `end`.
struct StimulusRepeat {
    std::size_t first{}, end{};
    std::uint64_t times{};  ///< at least 2
};
struct DpuStimulus {
    std::vector<StimulusStep> steps;
    std::vector<StimulusRepeat> repeats;  ///< sorted by `end`; the inner before the outer
    std::vector<std::string> eonce;       ///< classes: `TCHOF`; empty: the classes that the modes need
    bool tcount = false, tcntext = false;
    std::vector<std::pair<std::uint32_t, std::string>> symbols, tasks;  ///< names for addresses and task IDs
    [[nodiscard]] std::uint64_t cycles() const;
};

/// Errors: `bad_format`, with the line, what was found and what is expected; `unsupported`: a value beyond the limits.
[[nodiscard]] Result<DpuStimulus> read_stimulus(std::string_view text);

/// Results of a run.
struct StimulusRun {
    dpu::ModelCounts counts;
    std::array<std::uint64_t, 2> interrupts{};  ///< rising edges of the interrupt lines
    std::uint64_t debug_requests = 0;
    std::vector<std::string> problems;  ///< the unit's complaints about writes, with the cycle
    std::uint64_t outside = 0;          ///< lines that went outside the buffer
};
/// Runs the program's writes and the stimulus, and makes a capture folder, new or empty. Errors: `usage`: the folder is
/// not empty; `unreadable`: it cannot be written; `unsupported`: a buffer of more than 256 MiB; as
/// ModelConfig::check(). After an error no file is left in the folder.
[[nodiscard]] Result<StimulusRun> run_stimulus(const dpu::RegisterProgram& program, const DpuStimulus& stimulus,
                                               const std::filesystem::path& folder);

}  // namespace waymark::record
