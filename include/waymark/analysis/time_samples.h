/// Converts samples of the program counter to costs of instructions, lines and functions. Such samples only have an
/// address: they do not show calls or execution counts.
#pragma once

#include <cstdint>
#include <map>

#include "waymark/analysis/flow_answers.h"
#include "waymark/answers/answers.h"

namespace waymark::analysis {

struct PcSamples {
    std::map<std::uint64_t, std::uint64_t> at{};  ///< samples by address
    std::uint64_t asleep{};                       ///< the core slept
    std::uint64_t not_permitted{};                ///< samples that the core did not permit
    [[nodiscard]] std::uint64_t all() const;
};

/// Fills metrics, images, functions, instructions and lines. `isa`: instruction set of code whose symbols do not tell
/// it.
void fill_pc_samples(answers::Answers& answers, const PcSamples& samples, const image::Symbols& symbols,
                     const image::MemoryMap& memory, const FlowAnswersOptions& options, isa::Isa isa);

}  // namespace waymark::analysis
