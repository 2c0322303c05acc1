/// What a buffer without trace holds instead: memory that nobody wrote, a trace port that was idle, text, another kind
/// of file. Looked at before any protocol is: every protocol finds something in bytes that are all alike.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "waymark/core/types.h"
#include "waymark/doctor/sample.h"

namespace waymark::doctor {

/// Why there is no trace in a buffer.
struct NoTrace {
    std::string kind;  ///< of the finding: `erased`
    std::string found, cause, advice{};
};
/// Nothing: there may be some.
[[nodiscard]] std::optional<NoTrace> no_trace_in(const BufferSample& sample);

/// The bytes that digits in a text stand for, in one of the ways to read them.
struct DecodedText {
    std::string how;  ///< `words of 32 bits in hexadecimal digits, least significant byte first`
    std::vector<std::uint8_t> bytes;
};
/// The ways to read a text of hexadecimal digits or bits, the likeliest first: what xxd, hexdump, od and debuggers
/// print, .coe files and files for $readmemh. Empty: it is no such text.
[[nodiscard]] std::vector<DecodedText> decode_text(Bytes text);

/// Whether these are characters and no bytes of trace.
[[nodiscard]] bool is_text(Bytes bytes);

/// Reverses the bytes of each word; a last word that is not whole stays as it is.
void swap_words(std::vector<std::uint8_t>& bytes, std::size_t word_size);

}  // namespace waymark::doctor
