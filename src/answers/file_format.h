/// What writer and reader of the answers file share: its layout is described by answers_document().
#pragma once

#include <zlib.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "waymark/answers/schema.h"
#include "waymark/core/types.h"

namespace waymark::answers {

inline constexpr std::array<std::uint8_t, 8> file_magic{0x89, 'W', 'M', 'A', 'N', 'S', '\r', '\n'};

enum class ColumnType : std::uint8_t { number, address, text, real, index, choice, maybe, list, shared };
inline constexpr std::array<std::string_view, 9> column_types{"number", "address", "text", "real",       "index",
                                                              "choice", "maybe",   "list", "shared text"};

using FileBuffer = std::vector<std::uint8_t>;

/// CRC-32 of the bytes; `before` is the checksum of the bytes that precede them.
inline std::uint32_t checksum(Bytes bytes, std::uint32_t before = 0) {
    // zlib counts in 32 bits.
    auto sum = static_cast<uLong>(before);
    while (!bytes.empty()) {
        const auto piece = bytes.first(std::min<std::size_t>(bytes.size(), std::size_t{1} << 30));
        sum = crc32(sum, piece.data(), static_cast<uInt>(piece.size()));
        bytes = bytes.subspan(piece.size());
    }
    return static_cast<std::uint32_t>(sum);
}

template <class T>
concept Scalar = std::integral<T> || std::same_as<T, std::string>;

/// A list of numbers or of texts is stored as a table with one column.
template <class W, class T>
void item_fields(W& w, T& value) {
    constexpr std::string_view what = "of the list";
    if constexpr (std::same_as<std::remove_const_t<T>, std::string>)
        w.text("value", value, what);
    else
        w.number("value", value, what);
}
template <class W, class Row>
void row_fields(W& w, Row& row) {
    if constexpr (Scalar<std::remove_const_t<Row>>)
        item_fields(w, row);
    else
        schema::fields(w, row);
}

}  // namespace waymark::answers
