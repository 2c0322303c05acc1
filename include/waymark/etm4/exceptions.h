/// The meaning of exception types in Exception packets (docs/spec/etm4.md, section 9).
#pragma once

#include <cstdint>

#include "waymark/etm4/config.h"
#include "waymark/flow/exception.h"

namespace waymark::etm4 {

/// TYPE has ten bits.
inline constexpr std::uint32_t exception_types = 1024;

/// The exception type on a core of this profile; in an ETE, type 0x18 of an A profile core is a failed transaction.
/// Precondition: `type` is below exception_types.
[[nodiscard]] const flow::ExceptionType& exception_type(std::uint32_t type, const Config& config);

/// The type that a unit of an A profile core sends for an exception of this class, taken to AArch64
/// (docs/spec/etm4-registers.md, 2.13). A class without a type counts as a trap.
[[nodiscard]] std::uint32_t exception_type_of(flow::ExceptionClass kind);

}  // namespace waymark::etm4
