/// The registers of a Program Trace Macrocell for reading: docs/registers/ptm.md.
#pragma once

#include <span>

#include "waymark/core/register_reference.h"

namespace waymark::pft {

[[nodiscard]] UnitReference register_reference();
/// What each register and field means.
[[nodiscard]] std::span<const RegisterMeaning> register_meanings();

}  // namespace waymark::pft
