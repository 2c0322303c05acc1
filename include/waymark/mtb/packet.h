/// The packet of a Micro Trace Buffer (docs/spec/mtb.md, 1).
#pragma once

#include <cstdint>
#include <variant>

#include "waymark/core/wire.h"
#include "waymark/mtb/codec.h"
#include "waymark/mtb/config.h"

namespace waymark::mtb {

/// Addresses from here on are values such as EXC_RETURN, where no code can be.
inline constexpr std::uint32_t first_return_value = 0xf0000000;
/// Address from which the core fetches in lockup.
inline constexpr std::uint32_t lockup_address = 0xfffffffe;
/// Whether it is a value with which a return to a handler or to interrupted code begins.
[[nodiscard]] constexpr bool is_return_value(std::uint32_t address) {
    return address >= first_return_value && address != lockup_address;
}

/// Execution moved from one place to another, not in sequence.
struct JumpPacket {
    static constexpr wire::PacketInfo info{.name = "JUMP", .section = "1", .value = 0, .mask = 0, .max_bytes = 8};
    /// The address from which execution moved. A: not caused by an instruction there.
    FlaggedAddress source{};
    /// The address to which execution moved. S: tracing began with this packet.
    FlaggedAddress destination{};

    static void fields(auto& w, auto& p, const Config& = {}) {
        w.field("source", p.source, FlaggedAddressField<'A'>{});
        w.field("destination", p.destination, FlaggedAddressField<'S'>{});
    }
    [[nodiscard]] constexpr bool atomic() const { return source.flag; }
    [[nodiscard]] constexpr bool starts() const { return destination.flag; }
    bool operator==(const JumpPacket&) const = default;
};

using Packets = wire::PacketList<JumpPacket>;
using Packet = std::variant<JumpPacket>;

/// Whether, without knowing the program, the second packet can follow the first. The path between them runs forward, at
/// most `most_bytes`; a packet with S begins anew.
[[nodiscard]] constexpr bool can_follow(const JumpPacket& before, const JumpPacket& after,
                                        std::uint32_t most_bytes = 1U << 16) {
    if (after.starts()) return true;
    const std::uint32_t from = before.destination.address, to = after.source.address;
    if (from >= first_return_value) return from == to && after.atomic();
    return to >= from && to - from <= most_bytes;
}

}  // namespace waymark::mtb
