/// Texts that ini files of captures can hold.
#pragma once

#include <string_view>

#include "waymark/core/result.h"

namespace waymark::capture {

/// Refuses text that a reader would give back differently (`usage`). `file`: what it would be written to; `what`: what
/// the text is; `forbidden`: further characters that mean something in its place.
[[nodiscard]] Status check_value(std::string_view file, std::string_view what, std::string_view text,
                                 std::string_view forbidden = {});

}  // namespace waymark::capture
