/// Every packet of STPv2: the transmitted fields (docs/spec/stm.md, 2). Formats are described here once; see
/// core/wire.h. A packet is an opcode of one to four nibbles and its fields.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <variant>

#include "waymark/core/wire.h"
#include "waymark/stm/codec.h"
#include "waymark/stm/config.h"

namespace waymark::stm {

using wire::PacketInfo;

/// Nibbles, the first one most significant; if there are several, the first is F.
struct Opcode {
    std::uint32_t value{};
    unsigned nibbles = 1;
};

/// Length in nibbles of the longest packet except ASYNC: D64TS.
inline constexpr std::size_t max_nibbles = 35;

/// Fields of a packet that is only an opcode, of one with a number, and of one with a number and a timestamp.
struct OpcodePacket {
    WM_INLINE static void fields(auto&, auto&, const Config& = {}) {}
    bool operator==(const OpcodePacket&) const = default;
};
template <class T, unsigned Nibbles>
struct NumberPacket {
    T value{};
    WM_INLINE static void fields(auto& w, auto& p, const Config& = {}) {
        w.field("value", p.value, NumberOf<Nibbles>{});
    }
    bool operator==(const NumberPacket&) const = default;
};
struct StampPacket {
    Stamp time{};
    WM_INLINE static void fields(auto& w, auto& p, const Config& = {}) { w.field("timestamp", p.time, StampField{}); }
    bool operator==(const StampPacket&) const = default;
};
template <class T, unsigned Nibbles>
struct NumberStampPacket {
    T value{};
    Stamp time{};
    WM_INLINE static void fields(auto& w, auto& p, const Config& = {}) {
        w.field("value", p.value, NumberOf<Nibbles>{});
        w.field("timestamp", p.time, StampField{});
    }
    bool operator==(const NumberStampPacket&) const = default;
};

/// A write of software, or a hardware event, with `Nibbles` of data; marked at the end of a message.
template <unsigned Nibbles, bool Marked, bool Timed>
struct Data
    : std::conditional_t<Timed, NumberStampPacket<std::uint64_t, Nibbles>, NumberPacket<std::uint64_t, Nibbles>> {
    static constexpr unsigned nibbles = Nibbles;
    static constexpr bool marked = Marked, timed = Timed;
    static constexpr unsigned index = Nibbles == 1 ? 0 : Nibbles == 2 ? 1 : Nibbles == 4 ? 2 : Nibbles == 8 ? 3 : 4;
    static constexpr PacketInfo info{.name = std::array<std::array<std::string_view, 4>, 5>{{
                                         {"D4", "D4TS", "D4M", "D4MTS"},
                                         {"D8", "D8TS", "D8M", "D8MTS"},
                                         {"D16", "D16TS", "D16M", "D16MTS"},
                                         {"D32", "D32TS", "D32M", "D32MTS"},
                                         {"D64", "D64TS", "D64M", "D64MTS"},
                                     }}[index][2 * Marked + Timed],
                                     .section = "2"};
    static constexpr Opcode opcode =
        Nibbles == 1 ? std::array<Opcode, 4>{{{0xc, 1}, {0xfc, 2}, {0xfd, 2}, {0xd, 1}}}[2 * Marked + Timed]
                     : std::array<Opcode, 4>{
                           {{3 + index, 1}, {0xf3 + index, 2}, {0xf7 + index, 2}, {7 + index, 1}}}[2 * Marked + Timed];
    bool operator==(const Data&) const = default;
};

/// Filler.
struct Null : OpcodePacket {
    static constexpr PacketInfo info{.name = "NULL", .section = "2"};
    static constexpr Opcode opcode{0x0, 1};
    bool operator==(const Null&) const = default;
};
struct NullTimed : StampPacket {
    static constexpr PacketInfo info{.name = "NULL_TS", .section = "2"};
    static constexpr Opcode opcode{0xf01, 3};
    bool operator==(const NullTimed&) const = default;
};
/// The master of the following packets; its channel is 0.
struct Master8 : NumberPacket<std::uint8_t, 2> {
    static constexpr PacketInfo info{.name = "M8", .section = "2"};
    static constexpr Opcode opcode{0x1, 1};
    bool operator==(const Master8&) const = default;
};
struct Master16 : NumberPacket<std::uint16_t, 4> {
    static constexpr PacketInfo info{.name = "M16", .section = "2"};
    static constexpr Opcode opcode{0xf1, 2};
    bool operator==(const Master16&) const = default;
};
/// The low bits of the channel, or all bits.
struct Channel8 : NumberPacket<std::uint8_t, 2> {
    static constexpr PacketInfo info{.name = "C8", .section = "2"};
    static constexpr Opcode opcode{0x3, 1};
    bool operator==(const Channel8&) const = default;
};
struct Channel16 : NumberPacket<std::uint16_t, 4> {
    static constexpr PacketInfo info{.name = "C16", .section = "2"};
    static constexpr Opcode opcode{0xf3, 2};
    bool operator==(const Channel16&) const = default;
};
/// Data of the current master were lost.
struct MasterError : NumberPacket<std::uint8_t, 2> {
    static constexpr PacketInfo info{.name = "MERR", .section = "2"};
    static constexpr Opcode opcode{0x2, 1};
    bool operator==(const MasterError&) const = default;
};
/// Data of any master were lost.
struct GlobalError : NumberPacket<std::uint8_t, 2> {
    static constexpr PacketInfo info{.name = "GERR", .section = "2"};
    static constexpr Opcode opcode{0xf2, 2};
    bool operator==(const GlobalError&) const = default;
};
/// The end of a message.
struct FlagPacket : OpcodePacket {
    static constexpr PacketInfo info{.name = "FLAG", .section = "2"};
    static constexpr Opcode opcode{0xfe, 2};
    bool operator==(const FlagPacket&) const = default;
};
struct FlagTimed : StampPacket {
    static constexpr PacketInfo info{.name = "FLAG_TS", .section = "2"};
    static constexpr Opcode opcode{0xe, 1};
    bool operator==(const FlagTimed&) const = default;
};
struct Trigger : NumberPacket<std::uint8_t, 2> {
    static constexpr PacketInfo info{.name = "TRIG", .section = "2"};
    static constexpr Opcode opcode{0xf06, 3};
    bool operator==(const Trigger&) const = default;
};
struct TriggerTimed : NumberStampPacket<std::uint8_t, 2> {
    static constexpr PacketInfo info{.name = "TRIG_TS", .section = "2"};
    static constexpr Opcode opcode{0xf07, 3};
    bool operator==(const TriggerTimed&) const = default;
};
/// The frequency of timestamps, in Hz.
struct Frequency : NumberPacket<std::uint32_t, 8> {
    static constexpr PacketInfo info{.name = "FREQ", .section = "2"};
    static constexpr Opcode opcode{0xf08, 3};
    bool operator==(const Frequency&) const = default;
};
struct FrequencyTimed : NumberStampPacket<std::uint32_t, 8> {
    static constexpr PacketInfo info{.name = "FREQ_TS", .section = "2"};
    static constexpr Opcode opcode{0xf09, 3};
    bool operator==(const FrequencyTimed&) const = default;
};
struct Frequency40 : NumberPacket<std::uint64_t, 10> {
    static constexpr PacketInfo info{.name = "FREQ_40", .section = "2"};
    static constexpr Opcode opcode{0xf0f0, 4};
    bool operator==(const Frequency40&) const = default;
};
struct Frequency40Timed : NumberStampPacket<std::uint64_t, 10> {
    static constexpr PacketInfo info{.name = "FREQ_40_TS", .section = "2"};
    static constexpr Opcode opcode{0xf0f1, 4};
    bool operator==(const Frequency40Timed&) const = default;
};
/// The form of timestamps; master and channel are 0 after it.
struct VersionPacket {
    static constexpr PacketInfo info{.name = "VERSION", .section = "2"};
    static constexpr Opcode opcode{0xf00, 3};
    std::uint8_t version = 3;
    WM_INLINE static void fields(auto& w, auto& p, const Config& = {}) {
        w.field("version", p.version, VersionField{});
    }
    bool operator==(const VersionPacket&) const = default;
};
/// A packet begins after it.
struct Async {
    static constexpr PacketInfo info{.name = "ASYNC", .section = "2"};
    static constexpr std::uint64_t least = 21;
    std::uint64_t ones = least;  ///< or more
    WM_INLINE static void fields(auto& w, auto& p, const Config& = {}) { w.field("ones", p.ones, OnesField{}); }
    bool operator==(const Async&) const = default;
};

/// All packets except ASYNC, in the order in which opcodes are tested.
using OpcodePackets =
    wire::PacketList<Data<8, false, false>, Data<8, true, false>, Data<8, false, true>, Data<8, true, true>, FlagPacket,
                     FlagTimed, Null, Channel8, Channel16, Master8, Data<16, false, false>, Data<16, true, false>,
                     Data<16, false, true>, Data<16, true, true>, Data<2, false, false>, Data<2, true, false>,
                     Data<2, false, true>, Data<2, true, true>, Data<4, false, false>, Data<4, true, false>,
                     Data<4, false, true>, Data<4, true, true>, Data<1, false, false>, Data<1, true, false>,
                     Data<1, false, true>, Data<1, true, true>, VersionPacket, Frequency, Trigger, TriggerTimed,
                     MasterError, GlobalError, NullTimed, Master16, FrequencyTimed, Frequency40, Frequency40Timed>;

template <class List>
struct PacketsOf;
template <class... P>
struct PacketsOf<wire::PacketList<P...>> {
    using List = wire::PacketList<P..., Async>;
    using Any = std::variant<P..., Async>;
};
using Packets = PacketsOf<OpcodePackets>::List;
using Packet = PacketsOf<OpcodePackets>::Any;

}  // namespace waymark::stm
