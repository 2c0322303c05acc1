/// printf formats whose arguments are packed bytes (docs/spec/sys-t.md, 5).
#pragma once

#include <string>
#include <string_view>

#include "waymark/core/types.h"

namespace waymark::syst {

struct Formatted {
    std::string text;
    std::string problem;  ///< why the rest of the format is in the text unchanged; empty: all was formatted
};

/// `word`: number of bytes of a long and a pointer, 4 or 8. Formats and bytes come from outside and may be wrong.
[[nodiscard]] Formatted format_packed(std::string_view format, Bytes arguments, unsigned word);

}  // namespace waymark::syst
