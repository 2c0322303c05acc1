/// Every packet of the Statistical Profiling Extension, format 0: the transmitted fields (docs/spec/spe.md, section 4).
/// The programming of the unit does not change the meaning of bytes, so there is no configuration. Formats are
/// described here once; see core/wire.h.
#pragma once

#include <cstdint>
#include <variant>

#include "waymark/core/wire.h"
#include "waymark/spe/codec.h"

namespace waymark::spe {

using wire::bits;
using wire::fixed;
using wire::PacketInfo;

/// Meaning of an address packet's index; others are implementation defined (6, 7, 16 to 31) or reserved.
enum class AddressIndex : std::uint8_t { pc, branch_target, data_virtual, data_physical, previous_target };

/// An address with the bits that qualify it in its top byte (record.h separates them).
struct AddressPacket {
    static constexpr PacketInfo info{.name = "ADDRESS", .section = "4.2", .value = 0xb0, .mask = 0xf8, .max_bytes = 10};
    Index index;  ///< AddressIndex
    std::uint64_t address{};

    static void fields(auto& w, auto& p) {
        w.field("index", p.index, IndexedHeader<0xb0>{});
        w.le("address", p.address, 8);
    }
    bool operator==(const AddressPacket&) const = default;
};

/// Meaning of a counter packet's index; others are implementation defined (6, 7, 16 to 31) or reserved.
enum class CounterIndex : std::uint8_t { total, issue, translation, reserved, alternate_issue };

/// Cycles.
struct Counter {
    static constexpr PacketInfo info{.name = "COUNTER", .section = "4.3", .value = 0x98, .mask = 0xf8, .max_bytes = 4};
    Index index;  ///< CounterIndex
    std::uint16_t cycles{};

    static void fields(auto& w, auto& p) {
        w.field("index", p.index, IndexedHeader<0x98>{});
        w.le("cycles", p.cycles, 2);
    }
    bool operator==(const Counter&) const = default;
};

/// Events of the operation, one bit each (record.h names them).
struct Events {
    static constexpr PacketInfo info{.name = "EVENTS", .section = "4.5", .value = 0x42, .mask = 0xcf, .max_bytes = 9};
    Sized events;

    static void fields(auto& w, auto& p) { w.field("events", p.events, SizedField<0x42, 8>{}); }
    bool operator==(const Events&) const = default;
};

enum class OperationClass : std::uint8_t { other, load_store, branch, reserved };

/// The kind of the operation (record.h separates its parts).
struct OperationType {
    static constexpr PacketInfo info{
        .name = "OPERATION-TYPE", .section = "4.6", .value = 0x48, .mask = 0xfc, .max_bytes = 2};
    OperationClass kind{};
    std::uint8_t type{};

    static void fields(auto& w, auto& p) {
        w.byte(fixed<7, 2>(0x12), bits<1, 0>("class", p.kind));
        w.byte(bits<7, 0>("type", p.type));
    }
    bool operator==(const OperationType&) const = default;
};

/// The place where a load found its data, as a code of the implementation.
struct DataSource {
    static constexpr PacketInfo info{
        .name = "DATA-SOURCE", .section = "4.4", .value = 0x43, .mask = 0xef, .max_bytes = 3};
    Sized source;  ///< one or two bytes

    static void fields(auto& w, auto& p) { w.field("source", p.source, SizedField<0x43, 2>{}); }
    bool operator==(const DataSource&) const = default;
};

/// CONTEXTIDR_EL1 (index 0) or CONTEXTIDR_EL2 (1); 2 and 3 are reserved.
struct Context {
    static constexpr PacketInfo info{.name = "CONTEXT", .section = "4.4", .value = 0x64, .mask = 0xfc, .max_bytes = 5};
    std::uint8_t index{};
    std::uint32_t context{};

    static void fields(auto& w, auto& p) {
        w.byte(fixed<7, 2>(0x19), bits<1, 0>("index", p.index));
        w.le("context", p.context, 4);
    }
    bool operator==(const Context&) const = default;
};

/// The time of the sample, in ticks of the generic timer. Ends a record.
struct Timestamp {
    static constexpr PacketInfo info{
        .name = "TIMESTAMP", .section = "4.4", .value = 0x71, .mask = 0xff, .max_bytes = 9};
    std::uint64_t timestamp{};

    static void fields(auto& w, auto& p) {
        w.byte(fixed<7, 0>(0x71));
        w.le("timestamp", p.timestamp, 8);
    }
    bool operator==(const Timestamp&) const = default;
};

/// Ends a record without a timestamp.
struct End {
    static constexpr PacketInfo info{.name = "END", .section = "4.1", .value = 0x01, .mask = 0xff, .max_bytes = 1};

    static void fields(auto& w, auto&) { w.byte(fixed<7, 0>(0x01)); }
    bool operator==(const End&) const = default;
};

/// A run of zeros, within a record or between two.
struct Padding {
    static constexpr PacketInfo info{.name = "PADDING", .section = "4.1", .value = 0x00, .mask = 0xff, .max_bytes = 0};
    std::uint64_t bytes = 1;

    static void fields(auto& w, auto& p) { w.field("bytes", p.bytes, PaddingField{}); }
    bool operator==(const Padding&) const = default;
};

/// Skips to an aligned place: in drafts before Armv8.5 only, so an anomaly today.
struct Alignment {
    static constexpr PacketInfo info{
        .name = "ALIGNMENT", .section = "4.1", .value = 0x20, .mask = 0xf0, .max_bytes = 2};
    Skip skip;

    static void fields(auto& w, auto& p) { w.field("skip", p.skip, SkipField{}); }
    bool operator==(const Alignment&) const = default;
};

/// A well-formed packet that format 0 does not have. Its bytes are skipped, and stored here.
struct Unknown {
    static constexpr PacketInfo info{.name = "UNKNOWN", .section = "4.1", .value = 0xff, .mask = 0x00, .max_bytes = 10};
    Foreign packet;

    static void fields(auto& w, auto& p) { w.field("packet", p.packet, ForeignField{}); }
    bool operator==(const Unknown&) const = default;
};

/// Packets with separate header bytes, which for addresses and counters may follow a prefix; the most frequent first.
using NamedPackets =
    wire::PacketList<AddressPacket, Counter, Events, OperationType, Timestamp, DataSource, Context, End, Padding>;
/// All packets.
using Packets = wire::PacketList<AddressPacket, Counter, Events, OperationType, Timestamp, DataSource, Context, End,
                                 Padding, Alignment, Unknown>;
using Packet = std::variant<AddressPacket, Counter, Events, OperationType, Timestamp, DataSource, Context, End, Padding,
                            Alignment, Unknown>;

// Section 4.1: 33 header bytes have a name; 32 are prefixes, 30 reserved, and the size of the other 161 is known.
static_assert(wire::reserved_headers<NamedPackets>() == 32 + 30 + 161);

}  // namespace waymark::spe
