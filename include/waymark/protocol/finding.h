/// A problem of a capture, or a fact that its user should know: the place, what was found, what was expected, the
/// reason, and what to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "waymark/core/types.h"

namespace waymark::protocol {

enum class Severity : std::uint8_t {
    error,    ///< decoding gives nothing, or flow that never happened, until this is put right
    warning,  ///< something is lost, or doubtful
    note,     ///< normal, but explains missing trace
};
[[nodiscard]] constexpr std::string_view name(Severity severity) {
    return severity == Severity::error ? "error" : severity == Severity::warning ? "warning" : "note";
}

struct CaptureFinding {
    Severity severity{};
    std::string kind;                ///< one word for each kind of problem: `context-id-size`
    std::string buffer, source;      ///< where; empty: the capture as a whole
    std::optional<Offset> offset{};  ///< place in the buffer of the first byte that shows it; none: it has no place
    std::string found, expected, cause, advice;
    friend bool operator==(const CaptureFinding&, const CaptureFinding&) = default;
};

}  // namespace waymark::protocol
