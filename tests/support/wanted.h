/// The number of random programs or streams that a test tries.
#pragma once

#include <cstdlib>

namespace waymark {

/// The number in the environment variable WAYMARK_PROPERTY_PROGRAMS; without it, `usual`.
inline unsigned wanted(unsigned usual) {
    const char* const asked = std::getenv("WAYMARK_PROPERTY_PROGRAMS");
    return asked != nullptr ? static_cast<unsigned>(std::atoi(asked)) : usual;
}

}  // namespace waymark
