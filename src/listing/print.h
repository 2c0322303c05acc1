/// Private to this layer: text with values in it, and JSON.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>

#include "waymark/core/utf8.h"
#include "waymark/listing/text.h"

namespace waymark::listing {

/// The type that `print` passes to fmt for an argument of type T.
template <class T>
using Shown = std::conditional_t<std::same_as<std::remove_cvref_t<T>, Coloured>, std::string_view, T>;

/// A value for fmt: text, which may be a name, becomes a part of one line.
template <class T>
[[nodiscard]] decltype(auto) as_value(const T& value) {
    if constexpr (std::same_as<T, Coloured>)
        return std::string_view(value.text());
    else if constexpr (std::convertible_to<const T&, std::string_view>)
        return one_line(value);
    else
        return (value);
}
template <bool coloured, class... Values>
void print_values(TextSink& out, fmt::string_view format, const Values&... values) {
    const std::string text = fmt::vformat(format, fmt::make_format_args(values...));
    if constexpr (coloured)
        out.write_coloured(text);
    else
        out.write(text);
}
/// Line breaks of `format` itself are kept.
template <class... Args>
void print(TextSink& out, fmt::format_string<Shown<Args>...> format, Args&&... args) {
    print_values<(std::same_as<std::remove_cvref_t<Args>, Coloured> || ...)>(out, format, as_value(args)...);
}

/// JSON over several lines; invalid UTF-8 in strings becomes U+FFFD.
[[nodiscard]] inline std::string json_text(const nlohmann::ordered_json& value) {
    return value.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}
/// Prints a description as JSON, or as tab-separated values: a line for each leaf, with its path.
void print_document(TextSink& out, const nlohmann::ordered_json& document, LineFormat format);

}  // namespace waymark::listing
