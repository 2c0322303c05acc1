/// Every packet of ITM and DWT, with its contents on the wire (docs/spec/itm.md, 1 and 2). Formats are described here
/// once; see core/wire.h.
#pragma once

#include <cstdint>
#include <variant>

#include "waymark/core/wire.h"
#include "waymark/itm/codec.h"
#include "waymark/itm/config.h"

namespace waymark::itm {

using wire::bits;
using wire::fixed;
using wire::PacketInfo;

/// Payload size for the size code `code`, bits 1:0 of a header; code 0 is not a size.
[[nodiscard]] WM_INLINE constexpr unsigned payload_bytes(std::uint8_t code) { return code == 3 ? 4 : code; }

/// A write of software to a stimulus port.
struct Stimulus {
    static constexpr PacketInfo info{.name = "STIMULUS", .section = "2", .value = 0x00, .mask = 0x04, .max_bytes = 5};
    std::uint8_t port{};  ///< port number in the current page
    std::uint8_t size = 1;
    std::uint32_t data{};

    WM_INLINE static void fields(auto& w, auto& p, const Config& = {}) {
        w.byte(bits<7, 3>("port", p.port), fixed<2>(0), bits<1, 0>("size", p.size));
        if (p.size == 0) return w.impossible();
        w.le("data", p.data, payload_bytes(p.size));
    }
    bool operator==(const Stimulus&) const = default;
};

/// A packet of the DWT.
struct HardwareSource {
    static constexpr PacketInfo info{
        .name = "HARDWARE-SOURCE", .section = "2", .value = 0x04, .mask = 0x04, .max_bytes = 5};
    std::uint8_t discriminator{};
    std::uint8_t size = 1;
    std::uint32_t data{};

    WM_INLINE static void fields(auto& w, auto& p, const Config& = {}) {
        w.byte(bits<7, 3>("discriminator", p.discriminator), fixed<2>(1), bits<1, 0>("size", p.size));
        if (p.size == 0) return w.impossible();
        w.le("data", p.data, payload_bytes(p.size));
    }
    bool operator==(const HardwareSource&) const = default;
};

/// Whether a timestamp, or the preceding packets, were sent late.
enum class Relation : std::uint8_t { synchronous, timestamp_delayed, packets_delayed, both_delayed };

/// Cycles since the previous local timestamp.
struct LocalTimestamp {
    static constexpr PacketInfo info{
        .name = "LOCAL-TIMESTAMP", .section = "2", .value = 0xc0, .mask = 0xcf, .max_bytes = 5};
    Relation relation{};
    Number delta;

    WM_INLINE static void fields(auto& w, auto& p, const Config& = {}) {
        w.byte(fixed<7, 6>(3), bits<5, 4>("relation", p.relation), fixed<3, 0>(0));
        w.field("delta", p.delta, NumberField<1, 4>{});
    }
    bool operator==(const LocalTimestamp&) const = default;
};

/// A timestamp in one byte: synchronous, 1 to 6.
struct ShortTimestamp {
    static constexpr PacketInfo info{
        .name = "SHORT-TIMESTAMP", .section = "1", .value = 0x00, .mask = 0x8f, .max_bytes = 1};
    std::uint8_t delta = 1;

    WM_INLINE static void fields(auto& w, auto& p, const Config& = {}) {
        w.byte(fixed<7>(0), bits<6, 4>("delta", p.delta), fixed<3, 0>(0));
        if (p.delta == 0 || p.delta == 7) return w.impossible();
    }
    bool operator==(const ShortTimestamp&) const = default;
};

/// The low bits of the global timestamp.
struct GlobalTimestamp1 {
    static constexpr PacketInfo info{
        .name = "GLOBAL-TIMESTAMP-1", .section = "2", .value = 0x94, .mask = 0xff, .max_bytes = 5};
    Number bits_27_0;

    WM_INLINE static void fields(auto& w, auto& p, const Config& = {}) {
        w.byte(fixed<7, 0>(0x94));
        w.field("bits", p.bits_27_0, NumberField<1, 4>{});
    }
    [[nodiscard]] constexpr std::uint32_t time() const { return bits_27_0.value & 0x3ff'ffffU; }
    /// Number of low bits of the time that the packet replaces.
    [[nodiscard]] constexpr unsigned width() const { return bits_27_0.bytes == 4 ? 26U : 7U * bits_27_0.bytes; }
    [[nodiscard]] constexpr bool clock_changed() const { return (bits_27_0.value >> 26 & 1U) != 0; }
    /// Whether the bits above changed too: a GLOBAL-TIMESTAMP-2 follows.
    [[nodiscard]] constexpr bool wrapped() const { return (bits_27_0.value >> 27 & 1U) != 0; }
    bool operator==(const GlobalTimestamp1&) const = default;
};

/// Bits of the global timestamp from 26 up.
struct GlobalTimestamp2 {
    static constexpr PacketInfo info{
        .name = "GLOBAL-TIMESTAMP-2", .section = "2", .value = 0xb4, .mask = 0xff, .max_bytes = 7};
    Number high{.value = 0, .bytes = 4};

    WM_INLINE static void fields(auto& w, auto& p, const Config& = {}) {
        w.byte(fixed<7, 0>(0xb4));
        w.field("high", p.high, NumberField<4, 6, 2>{});
    }
    bool operator==(const GlobalTimestamp2&) const = default;
};

/// If it has no further bytes and comes from a software source: the page of stimulus ports. Other extensions are
/// reserved.
struct Extension {
    static constexpr PacketInfo info{.name = "EXTENSION", .section = "2", .value = 0x08, .mask = 0x0b, .max_bytes = 5};
    bool more{}, hardware{};
    std::uint8_t low{};
    Number high;

    WM_INLINE static void fields(auto& w, auto& p, const Config& = {}) {
        w.byte(bits<7>("more", p.more), bits<6, 4>("low", p.low), fixed<3>(1), bits<2>("hardware", p.hardware),
               fixed<1, 0>(0));
        if (p.more) w.field("high", p.high, NumberField<1, 4>{});
    }
    bool operator==(const Extension&) const = default;
};

/// Packets before it were lost.
struct Overflow {
    static constexpr PacketInfo info{.name = "OVERFLOW", .section = "2", .value = 0x70, .mask = 0xff, .max_bytes = 1};
    WM_INLINE static void fields(auto& w, auto&, const Config& = {}) { w.byte(fixed<7, 0>(0x70)); }
    bool operator==(const Overflow&) const = default;
};

/// A packet begins after it.
struct Sync {
    static constexpr PacketInfo info{.name = "SYNC", .section = "2", .value = 0x00, .mask = 0xff, .max_bytes = 0};
    std::uint64_t zeros = 5;  ///< 5 or more

    WM_INLINE static void fields(auto& w, auto& p, const Config& = {}) { w.field("zeros", p.zeros, SyncField{}); }
    bool operator==(const Sync&) const = default;
};

/// All packet types. A header belongs to the first type whose info matches: source packets come last.
using Packets = wire::PacketList<Overflow, ShortTimestamp, LocalTimestamp, GlobalTimestamp1, GlobalTimestamp2,
                                 Extension, HardwareSource, Stimulus, Sync>;
using Packet = std::variant<Overflow, ShortTimestamp, LocalTimestamp, GlobalTimestamp1, GlobalTimestamp2, Extension,
                            HardwareSource, Stimulus, Sync>;

/// Whether a nonzero header begins no packet, which is the case for 18 of 256.
[[nodiscard]] WM_INLINE constexpr bool is_reserved(std::uint8_t header) {
    if ((header & 3U) != 0) return false;
    if ((header & 0xfU) == 4) return header != 0x94 && header != 0xb4;
    return (header & 0xcfU) == 0x80;
}

/// Whether the DWT never sends such a packet: a reserved discriminator, size or value.
[[nodiscard]] WM_INLINE constexpr bool is_reserved(const HardwareSource& p) {
    const unsigned bytes = payload_bytes(p.size);
    switch (p.discriminator) {
        case 0: return bytes != 1 || (p.data & 0xc0U) != 0 || p.data == 0;
        case 1: return bytes != 2 || (p.data & 0xce00U) != 0 || (p.data >> 12 & 3U) == 0;
        case 2: return bytes == 2 || (bytes == 1 && p.data != 0 && p.data != 0xff);
        case 3: return bytes != 1;
        default: break;
    }
    if (p.discriminator < 8 || p.discriminator > 23) return true;
    if (p.discriminator >= 16) return false;
    const bool address = (p.discriminator & 1U) != 0;
    if (address) return bytes == 1;
    return bytes == 2 || (bytes == 1 && p.data != 1);
}

}  // namespace waymark::itm
