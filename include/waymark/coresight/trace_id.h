/// Trace source IDs: the seven bits by which a CoreSight formatter identifies the source of bytes (docs/spec/pft.md,
/// 6.1).
#pragma once

#include <compare>
#include <cstdint>
#include <string_view>

namespace waymark::coresight {

/// A trace source ID, 0x00 to 0x7F. The ATID of the trace bus: `ETMTRACEIDR` of a macrocell holds the same number.
struct TraceId {
    std::uint8_t value{};

    friend constexpr auto operator<=>(TraceId, TraceId) = default;
};

inline constexpr TraceId null_id{0x00};     ///< its bytes are padding
inline constexpr TraceId flush_id{0x7B};    ///< its byte marks the end of a flush
inline constexpr TraceId trigger_id{0x7D};  ///< its byte marks a trigger: 0x00, or the ID of the source that triggered
inline constexpr TraceId forbidden_id{0x7F};  ///< never sent: its ID byte would imitate a sync packet
inline constexpr unsigned trace_ids = 128;

enum class TraceIdClass : std::uint8_t {
    null,       ///< 0x00
    source,     ///< 0x01 to 0x6F: available for trace sources
    reserved,   ///< 0x70 to 0x7A, 0x7C, 0x7E, and numbers of more than seven bits
    flush,      ///< 0x7B
    trigger,    ///< 0x7D
    forbidden,  ///< 0x7F
};

[[nodiscard]] constexpr bool is_source(TraceId id) { return id.value >= 0x01 && id.value <= 0x6F; }

[[nodiscard]] constexpr TraceIdClass classify(TraceId id) {
    if (is_source(id)) return TraceIdClass::source;
    if (id == null_id) return TraceIdClass::null;
    if (id == flush_id) return TraceIdClass::flush;
    if (id == trigger_id) return TraceIdClass::trigger;
    if (id == forbidden_id) return TraceIdClass::forbidden;
    return TraceIdClass::reserved;
}

[[nodiscard]] constexpr std::string_view name(TraceIdClass kind) {
    switch (kind) {
        case TraceIdClass::null: return "null";
        case TraceIdClass::source: return "source";
        case TraceIdClass::reserved: return "reserved";
        case TraceIdClass::flush: return "flush";
        case TraceIdClass::trigger: return "trigger";
        case TraceIdClass::forbidden: return "forbidden";
    }
    return "unknown";
}

}  // namespace waymark::coresight
