/// Recognises buffers without trace: memory that was never written, an idle trace port, text, another kind of file.
/// This check comes before any protocol is tried: every protocol finds something in bytes that are all alike.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "waymark/core/types.h"
#include "waymark/doctor/sample.h"

namespace waymark::doctor {

/// The reason why a buffer contains no trace.
struct NoTrace {
    std::string kind;  ///< kind of the finding, such as `erased`
    std::string found, cause, advice{};
};
/// nullopt: the buffer may contain trace.
[[nodiscard]] std::optional<NoTrace> no_trace_in(const BufferSample& sample);

/// The end of a buffer that repeats a few bytes, with which memory is filled before a sink writes to it. Zeros, which
/// every protocol skips, and syncs of an idle port are none.
struct Fill {
    std::size_t begin{};
    std::vector<std::uint8_t> repeated;
};
[[nodiscard]] std::optional<Fill> fill_at_the_end(const std::vector<std::uint8_t>& bytes);

/// A few bytes as hexadecimal digits: `DE AD`.
[[nodiscard]] std::string hex_bytes(const std::vector<std::uint8_t>& bytes, std::size_t n);

/// The bytes that digits in a text stand for, in one possible reading.
struct DecodedText {
    std::string how;  ///< description, such as `words of 32 bits in hexadecimal digits, least significant byte first`
    std::vector<std::uint8_t> bytes;
    std::string lacks{};  ///< sentence about bytes that the text does not have; empty: none is known to be missing
};
/// The possible readings of a text of hexadecimal digits or bits, the most likely first: output of xxd, hexdump, od and
/// debuggers, .coe files and files for $readmemh; and of lists of a language, and base64. Empty if the text has another
/// form.
[[nodiscard]] std::vector<DecodedText> decode_text(Bytes text);

/// Reverses the bytes of each word; an incomplete last word is unchanged.
void swap_words(std::vector<std::uint8_t>& bytes, std::size_t word_size);
/// Exchanges the halves of each word; an incomplete last word is unchanged.
void swap_halves(std::vector<std::uint8_t>& bytes, std::size_t word_size);
/// Reverses the bits of each byte.
void swap_bits(std::vector<std::uint8_t>& bytes, std::size_t);
void invert(std::vector<std::uint8_t>& bytes, std::size_t);

}  // namespace waymark::doctor
