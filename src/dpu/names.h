/// Names of registers and of their fields and values, as people write them.
#pragma once

#include <algorithm>
#include <cctype>
#include <string_view>

namespace waymark::dpu {

/// In any case.
inline bool same_name(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](unsigned char x, unsigned char y) { return std::toupper(x) == std::toupper(y); });
}

}  // namespace waymark::dpu
