/// The result of comparing a recording with its truth.
#pragma once

#include <cstdint>

namespace waymark::verify {

/// For one source or thread, or for all: the worst, which comes last.
enum class Verdict : std::uint8_t { equal, not_compared, different };

}  // namespace waymark::verify
