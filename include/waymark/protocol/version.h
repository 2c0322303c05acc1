/// The version in the name of a source type.
#pragma once

#include <cstddef>
#include <string_view>

namespace waymark::protocol {

/// Whether `type` contains no version, or a version up to `last_minor`: `ETM3`, `ETM3.5`.
[[nodiscard]] constexpr bool is_version_up_to(std::string_view type, unsigned last_minor) {
    const std::size_t dot = type.find('.');
    if (dot == std::string_view::npos) return true;
    return dot + 2 == type.size() && type[dot + 1] >= '0' && static_cast<unsigned>(type[dot + 1] - '0') <= last_minor;
}

}  // namespace waymark::protocol
