/// Why trace was not permitted in a part of a recording, where the recorder saw it: authentication, a loss of power,
/// the OS Lock. A capture folder holds it as `not_permitted.txt` (docs/captures.md describes the format).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace waymark::capture {

struct Capture;

/// The name of the file in a capture folder.
inline constexpr std::string_view not_permitted_file = "not_permitted.txt";

/// What one reason kept out of the trace.
struct NotPermitted {
    std::string reason;                           ///< `NIDEN=0`, `no power`, `OS Lock`; several: with ` and ` between
    std::optional<std::uint64_t> instructions{};  ///< that ran; none: not known
    std::optional<std::uint64_t> ranges{};        ///< executions of blocks; known where `instructions` are
    friend bool operator==(const NotPermitted&, const NotPermitted&) = default;
};

/// The text of the file: each reason is a line, with its size if that is known.
[[nodiscard]] std::string not_permitted_text(const std::vector<NotPermitted>& reasons);
/// The reasons in that text, without sizes where it has version 1; none where it is no such text.
[[nodiscard]] std::vector<NotPermitted> read_not_permitted(std::string_view text);
/// Of the folder that this snapshot lies in; none: it is no snapshot that its folder names, or it has no such file.
[[nodiscard]] std::vector<NotPermitted> not_permitted(const Capture& snapshot);

}  // namespace waymark::capture
