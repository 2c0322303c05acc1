/// Bytes that programs write as text in other forms than columns of digits: lists of a language, tables, base64,
/// characters.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "contents.h"

namespace waymark::doctor {

/// The numbers between brackets as Python, JSON, C and Java write them, `[0, 128, 23]`, `(0, 128, 23)` or
/// `{0, 128, 23}`, in decimal digits, also as the longest list of an object of JSON: bytes, with or without a sign, or
/// words of 16, 32 or 64 bits, the least significant byte first. nullopt: the text has no brackets with at least 16
/// numbers.
[[nodiscard]] std::optional<DecodedText> numbers_in_brackets(std::string_view text);

/// The reason why the numbers of a list are neither bytes nor words, such as `number 301 of the list is 300 and does
/// not fit into a byte`. Empty: the text is not a list of numbers, or numbers_in_brackets() reads it.
[[nodiscard]] std::string why_no_list(std::string_view text);

/// The decimal numbers that gdb prints after addresses (`x/64db`, `x/16dw`), in the same sizes. nullopt: a line has
/// another form. Without addresses, as in the output of `od -An -tu1`, only bytes are read, and at least one must be
/// above 99: others may be hexadecimal.
[[nodiscard]] std::optional<DecodedText> decimal_columns(std::string_view text);

/// The bytes of Python's literals, `b'\x00\x80'` and `bytearray(b"...")`, and of strings of C, `"\x00\200"`, where a
/// fourth of the bytes or more are escapes. nullopt: the text is no such literal of at least 16 bytes.
[[nodiscard]] std::optional<DecodedText> bytes_literal(std::string_view text);

/// The bytes of a table of comma-separated values with a heading, as logic analysers write it: of the only column whose
/// fields are all bytes with the prefix 0x. nullopt: the text is no such table of at least 16 rows.
[[nodiscard]] std::optional<DecodedText> column_of_table(std::string_view text);

/// The bytes of base64, in one line or in lines of one width, with the ordinary alphabet or the one for names of files
/// (RFC 4648), also as the longest string of an object of JSON. nullopt: the text is something else, or has fewer than
/// 64 bytes.
[[nodiscard]] std::optional<DecodedText> base64(std::string_view text);

/// The bytes of uuencode: lines that begin with a character for their length, between `begin 644 NAME` and `end`.
[[nodiscard]] std::optional<DecodedText> uuencoded(std::string_view text);

/// The bytes of `od -c`: an octal address in each line, and cells of four characters, each a character, an escape or
/// three octal digits. Lines may lack the spaces at their end.
[[nodiscard]] std::optional<DecodedText> cells_of_od(std::string_view text);

}  // namespace waymark::doctor
