/// The meaning of exception numbers in branch packets (docs/spec/etmv3.md, section 4).
#pragma once

#include <cstdint>

#include "waymark/flow/exception.h"

namespace waymark::etm3 {

/// The field has nine bits. 0 means that the packet is an ordinary branch.
inline constexpr std::uint32_t exception_numbers = 512;

/// Precondition: `number` is below exception_numbers. `m_profile`: the core is a Cortex-M.
[[nodiscard]] const flow::ExceptionType& exception_type(std::uint32_t number, bool m_profile);

}  // namespace waymark::etm3
