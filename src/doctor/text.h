/// Numbers in sentences.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string_view>

#include "waymark/pipeline/words.h"

namespace waymark::doctor {

using pipeline::counted;
using pipeline::grouped;

/// `is` or `are`.
inline std::string_view are(std::uint64_t number) { return number == 1 ? "is" : "are"; }

}  // namespace waymark::doctor
