/// The meaning of exception numbers in branch packets of an A or R profile core (docs/spec/pft.md, section 2.5).
#pragma once

#include <cstdint>

#include "waymark/flow/exception.h"

namespace waymark::pft {

/// The branch packet's field has nine bits. 0 means that the packet is an ordinary branch.
inline constexpr std::uint32_t exception_numbers = 512;

/// Precondition: `number` is below exception_numbers.
[[nodiscard]] const flow::ExceptionType& exception_type(std::uint32_t number);

/// The number that a macrocell sends for this class; 13, "generic", if the class has no number.
[[nodiscard]] std::uint32_t exception_number(flow::ExceptionClass kind);

/// The address of the exception's vector in a Linux kernel.
[[nodiscard]] std::uint64_t linux_vector(flow::ExceptionClass kind);

}  // namespace waymark::pft
