/// Where a recording begins that leaves out what loads the program, on purpose.
#pragma once

#include <string_view>

namespace waymark::capture {

/// How the key `begins` of a buffer reads where a recording begins at a place of the program: the place, and a comment
/// in parentheses.
inline constexpr std::string_view begins_at_place = "where execution first reached ";

/// `begins` says that the recording began at main, so that it lacks what runs before, as it was to be.
[[nodiscard]] inline bool begins_at_main(std::string_view begins) {
    return begins.starts_with(begins_at_place) && begins.substr(begins_at_place.size()).starts_with("main (");
}

}  // namespace waymark::capture
