/// The reasons why trace was not permitted in a part of a recording, as the recorder saw them: authentication, a loss
/// of power, the OS Lock. A capture folder contains them as `not_permitted.txt` (docs/captures.md describes the
/// format).
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

/// The part of the run that is missing from the trace for one reason.
struct NotPermitted {
    std::string reason;                           ///< `NIDEN=0`, `no power`, `OS Lock`; several: with ` and ` between
    std::optional<std::uint64_t> instructions{};  ///< that ran; none: not known
    std::optional<std::uint64_t> ranges{};        ///< executions of blocks; known where `instructions` are
    friend bool operator==(const NotPermitted&, const NotPermitted&) = default;
};

/// The text of the file: each reason is a line, with its size if that is known.
[[nodiscard]] std::string not_permitted_text(const std::vector<NotPermitted>& reasons);
/// The reasons in that text, without sizes if it has version 1; empty if it is another text.
[[nodiscard]] std::vector<NotPermitted> read_not_permitted(std::string_view text);
/// The reasons of this snapshot. Empty if `snapshot` is not the snapshot of its folder, or if the folder has no such
/// file.
[[nodiscard]] std::vector<NotPermitted> not_permitted(const Capture& snapshot);

}  // namespace waymark::capture
