/// The packet of a Micro Trace Buffer (docs/spec/mtb.md, 1).
#pragma once

#include <cstdint>
#include <variant>

#include "waymark/core/wire.h"
#include "waymark/mtb/codec.h"
#include "waymark/mtb/config.h"

namespace waymark::mtb {

/// Addresses from here on are values such as EXC_RETURN: no code is there.
inline constexpr std::uint32_t first_return_value = 0xf0000000;
/// Where the core fetches from in lockup.
inline constexpr std::uint32_t lockup_address = 0xfffffffe;
/// The value that a return to a handler of exceptions or to interrupted code begins with.
[[nodiscard]] constexpr bool is_return_value(std::uint32_t address) {
    return address >= first_return_value && address != lockup_address;
}

/// Execution went from one place to another, not in sequence.
struct JumpPacket {
    static constexpr wire::PacketInfo info{.name = "JUMP", .section = "1", .value = 0, .mask = 0, .max_bytes = 8};
    /// Where it went from. A: not by an instruction there.
    FlaggedAddress source{};
    /// Where it went to. S: tracing began with this packet.
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

/// What two packets say of each other, without a program: the second one can follow the first. The way between them
/// runs forward, and `most_bytes` at most; a packet with S begins anew.
[[nodiscard]] constexpr bool can_follow(const JumpPacket& before, const JumpPacket& after,
                                        std::uint32_t most_bytes = 1U << 16) {
    if (after.starts()) return true;
    const std::uint32_t from = before.destination.address, to = after.source.address;
    if (from >= first_return_value) return from == to && after.atomic();
    return to >= from && to - from <= most_bytes;
}

}  // namespace waymark::mtb
