/// Samples of the program counter → costs of instructions, lines and functions. They have nothing but an address: who
/// called whom, and how often code ran, they do not show.
#pragma once

#include <cstdint>
#include <map>

#include "waymark/analysis/flow_answers.h"
#include "waymark/answers/answers.h"

namespace waymark::analysis {

struct PcSamples {
    std::map<std::uint64_t, std::uint64_t> at{};  ///< samples by address
    std::uint64_t asleep{};                       ///< the core slept
    std::uint64_t not_permitted{};                ///< the core did not permit to sample
    [[nodiscard]] std::uint64_t all() const;
};

/// Fills metrics, images, functions, instructions and lines. `isa`: of code without a symbol that says more.
void fill_pc_samples(answers::Answers& answers, const PcSamples& samples, const image::Symbols& symbols,
                     const image::MemoryMap& memory, const FlowAnswersOptions& options, isa::Isa isa);

}  // namespace waymark::analysis
