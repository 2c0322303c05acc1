/// Checks texts for ini files of captures.
#pragma once

#include <string_view>

#include "waymark/core/result.h"

namespace waymark::capture {

/// Refuses text that would be read back differently (`usage`). `file`: the file to be written; `what`: the text's name
/// in the message; `forbidden`: further characters that are special at its place.
[[nodiscard]] Status check_value(std::string_view file, std::string_view what, std::string_view text,
                                 std::string_view forbidden = {});

}  // namespace waymark::capture
