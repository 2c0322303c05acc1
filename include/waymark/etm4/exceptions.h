/// What the exception types of Exception packets mean (docs/spec/etm4.md, section 9).
#pragma once

#include <cstdint>

#include "waymark/etm4/config.h"
#include "waymark/flow/exception.h"

namespace waymark::etm4 {

/// TYPE has ten bits.
inline constexpr std::uint32_t exception_types = 1024;

/// On a core of this profile; in an ETE, type 0x18 of an A profile core is a failed transaction. Precondition: `type`
/// is below exception_types.
[[nodiscard]] const flow::ExceptionType& exception_type(std::uint32_t type, const Config& config);

}  // namespace waymark::etm4
