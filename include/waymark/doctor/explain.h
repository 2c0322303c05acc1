/// Why trace units trace, or nothing, from registers as people have them: settings, files of registers, captures.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/register_value.h"
#include "waymark/core/result.h"
#include "waymark/flow/unit_program.h"
#include "waymark/protocol/explanation.h"

namespace waymark::doctor {

struct ExplainedSource {
    std::string source;  ///< its name in the capture; empty: the registers were given by themselves
    std::vector<RegisterValue> registers;
    protocol::UnitExplanation explanation;
    std::vector<std::string> ignored;  ///< names that are no registers of the unit, as they were written
};

/// The unit is that which has most of these registers. A name may be in small letters, and without its last R, as
/// Linux has it in sysfs (`trcconfig`); a later setting replaces an earlier one. `core`: the type of the traced core;
/// may be empty. Errors: `usage`: no unit that is explained has any of these registers, or a value or field is none of
/// its register.
[[nodiscard]] Result<ExplainedSource> explain_settings(const std::vector<flow::RegisterSetting>& settings,
                                                       std::string_view core);

/// Every source of a capture whose unit is explained, by the registers that the capture gives. Errors: as
/// open_capture(); `unsupported`: it has no such source.
[[nodiscard]] Result<std::vector<ExplainedSource>> explain_capture(const std::string& path,
                                                                   const std::function<void(const std::string&)>& note);

}  // namespace waymark::doctor
