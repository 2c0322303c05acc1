/// What users ask to have explained: names of registers, values, files of registers, or a capture.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/doctor/explain.h"
#include "waymark/doctor/register_reference.h"
#include "waymark/spe/explanation.h"

namespace waymark::doctor {

/// The registers that the arguments name. Empty: one of the arguments is not a register, but a file or a value. Errors:
/// `not_found`: a register has no such field.
[[nodiscard]] Result<std::vector<NamedRegister>> named_registers(const std::vector<std::string>& arguments);

/// Explains the units of a capture, or of `NAME=VALUE`, `NAME.FIELD=VALUE` and files of registers, also as `grep .`
/// prints files of sysfs. `cost`, `note`: for a capture, as of explain_capture(). Errors: `usage`, `not_found`: an
/// argument is none of these; the errors of explain_capture() and explain_registers().
[[nodiscard]] Result<std::vector<ExplainedSource>> explain_arguments(
    const std::vector<std::string>& arguments, std::string_view core, bool cost,
    const std::function<void(const std::string&)>& note);

/// The settings of a Statistical Profiling unit, from files and `NAME=VALUE`; `registers`: values by published name,
/// empty if not given. Errors: `usage`, `not_found`; the errors of reading.
[[nodiscard]] Result<spe::ExplainInput> profiler_settings(const std::vector<std::string>& arguments,
                                                          const std::map<std::string, std::string>& registers,
                                                          const spe::ExplainedUnit& unit);

}  // namespace waymark::doctor
