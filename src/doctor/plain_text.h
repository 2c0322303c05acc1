/// The characters of a text that any program saved.
#pragma once

#include <optional>
#include <string>

#include "waymark/core/types.h"

namespace waymark::doctor {

/// The text in UTF-8 with `\n` at the end of each line: without a byte order mark, from UTF-16 too, without the colours
/// of a terminal, the tags of a page, the marks of a quotation, and the time that the Linux kernel or a terminal
/// program puts before a line. nullopt: the bytes are no text.
[[nodiscard]] std::optional<std::string> plain_text(Bytes bytes);

}  // namespace waymark::doctor
