/// What a register program does to a unit, in words.
#pragma once

#include <string>
#include <vector>

#include "waymark/dpu/config.h"
#include "waymark/dpu/register_program.h"

namespace waymark::dpu {

/// What the unit counts and traces after the last write, a sentence each, without its capital and its end.
[[nodiscard]] std::vector<std::string> effects_of(const RegisterProgram& program);

/// The unit that the program is for: an EOnCE that traces these classes, `TCHOF`, `TINT`, `TEXEC`, `TMARK`, `TLOOP`,
/// `TSUB`, `TRTE`; none: what the modes of the program need.
[[nodiscard]] ModelConfig config_for(const RegisterProgram& program, const std::vector<std::string>& classes);

}  // namespace waymark::dpu
