/// append_number() of core/wire.h for a TextCursor, so that codecs print to either kind of text.
#pragma once

#include <cstdint>
#include <string>

#include "waymark/core/text_cursor.h"
#include "waymark/core/wire.h"

namespace waymark::wire {

WM_INLINE void append_number(TextCursor& out, std::uint64_t value) {
    if (value < 10)
        out.decimal(value);
    else
        out.hexadecimal(value);
}
WM_INLINE void append_decimal(TextCursor& out, std::uint64_t value) { out.decimal(value); }
inline void append_decimal(std::string& out, std::uint64_t value) { out += std::to_string(value); }

}  // namespace waymark::wire
