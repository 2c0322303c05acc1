/// The result of comparing a recording with its truth.
#pragma once

#include <cstdint>

namespace waymark::verify {

/// The verdict for one source or thread, or for all: then it is the worst one, which comes last.
enum class Verdict : std::uint8_t { equal, not_compared, different };

}  // namespace waymark::verify
