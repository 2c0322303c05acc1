/// A stretch of a stream that could not be decoded, and the reason. Damaged or missing bytes never throw and never
/// vanish: each stretch becomes one `Gap` that reaches every report. The bytes of a stream are exactly its packets plus
/// its gaps.
#pragma once

#include <cstdint>
#include <string_view>

#include "waymark/core/types.h"

namespace waymark {

enum class GapReason : std::uint8_t {
    unsynchronised,     ///< before the first synchronisation point; normal at the beginning of a buffer that wrapped
    padding,            ///< filler that is not trace, such as the zeros after the end of a raw capture
    reserved_header,    ///< a byte that begins no packet of this protocol, and everything skipped after it
    malformed_packet,   ///< a packet with an impossible field, and everything skipped after it
    incomplete_packet,  ///< the stream ends inside a packet, or inside a record of several
    framing,            ///< the frame layer lost bytes here; packets that were cut in two cannot be joined
    missing,            ///< trace that was generated is not in the capture here
    stopped,            ///< the unit was stopped here and started again; nothing is missing that it sent
};

/// Whether trace is lost there, or may be.
[[nodiscard]] constexpr bool is_loss(GapReason reason) {
    return reason != GapReason::padding && reason != GapReason::stopped;
}

/// Bytes [first, end) of a stream.
struct Gap {
    Offset first, end;
    GapReason reason{};

    [[nodiscard]] constexpr std::uint64_t bytes() const { return end - first; }
    friend constexpr bool operator==(const Gap&, const Gap&) = default;
};

[[nodiscard]] constexpr std::string_view name(GapReason reason) {
    switch (reason) {
        case GapReason::unsynchronised: return "unsynchronised";
        case GapReason::padding: return "padding";
        case GapReason::reserved_header: return "reserved header";
        case GapReason::malformed_packet: return "malformed packet";
        case GapReason::incomplete_packet: return "incomplete packet";
        case GapReason::framing: return "framing";
        case GapReason::missing: return "missing trace";
        case GapReason::stopped: return "stopped";
    }
    return "unknown";
}
inline constexpr unsigned gap_reasons = 8;

}  // namespace waymark
