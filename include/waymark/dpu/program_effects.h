/// Describes the effect of a register program on a unit.
#pragma once

#include <string>
#include <vector>

#include "waymark/dpu/config.h"
#include "waymark/dpu/register_program.h"

namespace waymark::dpu {

/// Sentences that describe what the unit counts and traces after the last write, each without capital letter and full
/// stop.
[[nodiscard]] std::vector<std::string> effects_of(const RegisterProgram& program);

/// The unit for the program. `classes`: classes that the EOnCE traces, `TCHOF`, `TINT`, `TEXEC`, `TMARK`, `TLOOP`,
/// `TSUB`, `TRTE`; nullopt: the classes that the program's modes need.
[[nodiscard]] ModelConfig config_for(const RegisterProgram& program, const std::vector<std::string>& classes);

}  // namespace waymark::dpu
