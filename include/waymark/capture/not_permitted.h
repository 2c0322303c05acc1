/// Why trace was not permitted in a part of a recording, where the recorder saw it: authentication, a loss of power,
/// the OS Lock. A capture folder holds it as `not_permitted.txt` (docs/captures.md describes the format).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace waymark::capture {

struct Capture;

/// The name of the file in a capture folder.
inline constexpr std::string_view not_permitted_file = "not_permitted.txt";

/// The text of the file: each reason, such as `NIDEN=0`, is a line.
[[nodiscard]] std::string not_permitted_text(const std::vector<std::string>& reasons);
/// The reasons in that text; none where it is no such text.
[[nodiscard]] std::vector<std::string> read_not_permitted(std::string_view text);
/// Of the folder that this snapshot lies in; none: it is no snapshot that its folder names, or it has no such file.
[[nodiscard]] std::vector<std::string> not_permitted(const Capture& snapshot);

}  // namespace waymark::capture
