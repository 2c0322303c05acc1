/// What comparing a recording with its truth comes to.
#pragma once

#include <cstdint>

namespace waymark::verify {

/// Of one source or thread, or of all: the worst, which comes last.
enum class Verdict : std::uint8_t { equal, not_compared, different };

}  // namespace waymark::verify
