/// The beginning of a recording that deliberately omits the loading of the program.
#pragma once

#include <string_view>

namespace waymark::capture {

/// The text of the key `begins` in a buffer if a recording begins at a place of the program: the place, and a comment
/// in parentheses.
inline constexpr std::string_view begins_at_place = "where execution first reached ";

/// Whether `begins` states that the recording began at main, so that it deliberately lacks earlier code.
[[nodiscard]] inline bool begins_at_main(std::string_view begins) {
    return begins.starts_with(begins_at_place) && begins.substr(begins_at_place.size()).starts_with("main (");
}

}  // namespace waymark::capture
