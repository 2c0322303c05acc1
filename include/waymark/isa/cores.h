/// The types of cores: the table of their names, profiles and identification (docs/architecture.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "waymark/core/result.h"

namespace waymark::isa {

/// The architecture profile of a core. Exception numbers and some packets depend on the profile, and no register of a
/// trace unit shows it.
enum class CoreProfile : std::uint8_t { a, r, m };

/// The profile of a core with this name (`Cortex-M33`, `arm,cortex-m33`) or architecture (`ARMv8.1-M`, `ARMv7E-M`);
/// nullopt if the name is not known. Case, and separators between letters and digits, are ignored. For a number that is
/// not in the table, the letter of the family gives the profile (`Cortex-A9999`).
[[nodiscard]] std::optional<CoreProfile> core_profile(std::string_view core);

/// The name of the core with these fields of MIDR; empty: not known.
[[nodiscard]] std::string_view core_name(std::uint8_t implementer, std::uint16_t part);

/// The names of the table, by family and number.
[[nodiscard]] const std::vector<std::string_view>& core_names();

/// The error for a core that core_profile() does not know: it lists the known names, the most similar first. `what`
/// begins the message: `--core`.
[[nodiscard]] Status check_core(std::string_view what, std::string_view core);

}  // namespace waymark::isa
