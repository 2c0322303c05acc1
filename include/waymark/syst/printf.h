/// printf formats whose arguments are packed bytes (docs/spec/sys-t.md, 5).
#pragma once

#include <string>
#include <string_view>

#include "waymark/core/types.h"

namespace waymark::syst {

struct Formatted {
    std::string text;
    std::string problem;  ///< why the rest of the format stands in the text as it is; empty: all was formatted
};

/// `word`: bytes of a long and a pointer, 4 or 8. Formats and bytes are foreign: neither is trusted.
[[nodiscard]] Formatted format_packed(std::string_view format, Bytes arguments, unsigned word);

}  // namespace waymark::syst
