/// Names of registers, fields and values, as in documentation; and the properties of trace modes.
#pragma once

#include <algorithm>
#include <cctype>
#include <string_view>

#include "waymark/dpu/format.h"

namespace waymark::dpu {

/// Compares names, ignoring case.
inline bool same_name(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](unsigned char x, unsigned char y) { return std::toupper(x) == std::toupper(y); });
}

/// Whether entries of this mode contain the values of the counters.
constexpr bool has_readings(TraceMode mode) {
    return mode == TraceMode::task || mode == TraceMode::flow || mode == TraceMode::sw_sample ||
           mode == TraceMode::edca5;
}

}  // namespace waymark::dpu
