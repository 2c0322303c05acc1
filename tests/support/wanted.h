/// How many random programs or streams a test tries.
#pragma once

#include <cstdlib>

namespace waymark {

/// WAYMARK_PROPERTY_PROGRAMS in the environment, else `usual`.
inline unsigned wanted(unsigned usual) {
    const char* const asked = std::getenv("WAYMARK_PROPERTY_PROGRAMS");
    return asked != nullptr ? static_cast<unsigned>(std::atoi(asked)) : usual;
}

}  // namespace waymark
