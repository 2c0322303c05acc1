/// Every packet of ETMv3: its contents on the wire, without state from earlier packets (docs/spec/etmv3.md, 2 to 6).
#pragma once

#include <cstdint>
#include <variant>

#include "waymark/core/wire.h"
#include "waymark/etm3/codec.h"
#include "waymark/etm3/config.h"

namespace waymark::etm3 {

using wire::bits;
using wire::fixed;
using wire::PacketInfo;

/// A-sync: marks a packet boundary in the byte stream.
struct ASync {
    static constexpr PacketInfo info{.name = "A-SYNC", .section = "6", .value = 0x00, .mask = 0xff, .max_bytes = 0};
    std::uint64_t zeros = 5;  ///< 5 or more

    static void fields(auto& w, auto& p, const Config&) { w.field("zeros", p.zeros, AsyncField{}); }
    bool operator==(const ASync&) const = default;
};

/// Outcomes of instructions, and cycles.
struct PHeader {
    static constexpr PacketInfo info{.name = "P-HEADER", .section = "3", .value = 0x80, .mask = 0x81, .max_bytes = 1};
    std::uint8_t header = 0x84;

    static void fields(auto& w, auto& p, const Config& c) {
        w.field("atoms", p.header, PHeaderField{c.cycle_accurate});
    }
    bool operator==(const PHeader&) const = default;
};

/// Where execution continues, why, and in which state.
struct BranchAddress {
    static constexpr PacketInfo info{
        .name = "BRANCH-ADDRESS", .section = "4", .value = 0x01, .mask = 0x01, .max_bytes = 8};
    SentTarget target;
    bool more{}, alt_isa{}, cancelled{}, ns{};  ///< from information byte 0
    std::uint8_t exception_3_0{};
    bool second_more{}, second_is_resume{};  ///< information byte 1, or 2 if byte 1 is omitted
    std::uint8_t second{}, third{};          ///< bits 5:0 of that byte; Resume, if byte 2 comes third

    static void fields(auto& w, auto& p, const Config& c) {
        w.field("target", p.target, SentTargetField{c.alternative_branches});
        if (!p.target.information) return;
        w.byte(bits<7>("C", p.more), bits<6>("AltISA", p.alt_isa), bits<5>("cancel", p.cancelled),
               bits<4, 1>("exception[3:0]", p.exception_3_0), bits<0>("NS", p.ns));
        if (!p.more) return;
        w.byte(bits<7>("C[1]", p.second_more), bits<6>("is resume", p.second_is_resume),
               bits<5, 0>("information[1]", p.second));
        if (!p.second_more) return;
        if (p.second_is_resume) return w.impossible();
        w.byte(fixed<7, 6>(1), wire::should_be<5, 4>(0), bits<3, 0>("resume", p.third));
    }
    [[nodiscard]] constexpr bool has_byte_1() const { return target.information && more && !second_is_resume; }
    [[nodiscard]] constexpr bool hyp() const { return has_byte_1() && (second & 0x20U) != 0; }
    /// 0: none.
    [[nodiscard]] constexpr std::uint32_t exception() const {
        if (target.old != 0) {
            // 0 reset, 1 IRQ, 4 Jazelle, 5 FIQ, 6 asynchronous data abort, 7 debug halt; others are reserved.
            constexpr std::uint8_t numbers[] = {8, 14, 6, 6, 5, 15, 4, 1};
            return numbers[target.old & 7U];
        }
        return target.information ? exception_3_0 + (has_byte_1() ? (second & 0x1fU) * 16U : 0U) : 0U;
    }
    [[nodiscard]] constexpr bool cancels() const {
        return target.old != 0 ? (target.old & 8U) != 0 : target.information && cancelled;
    }
    bool operator==(const BranchAddress&) const = default;
};

/// Why an I-sync was sent.
enum class ISyncReason : std::uint8_t { periodic, trace_enabled, overflow_restart, debug_exit };

/// I-sync: the complete state of the core at an instruction.
struct ISync {
    static constexpr PacketInfo info{.name = "I-SYNC", .section = "5", .value = 0x08, .mask = 0xff, .max_bytes = 20};
    static constexpr bool counted = false;
    std::uint32_t cycles{}, context_id{}, address{};
    ISyncReason reason{};
    bool in_progress{}, jazelle{}, ns{}, alt_isa{}, hyp{};
    SentTarget current;  ///< in_progress: the present instruction; `address` belongs to the load or store

    static void fields(auto& w, auto& p, const Config& c) {
        w.byte(fixed<7, 0>(0x08));
        rest(w, p, c);
    }
    static void rest(auto& w, auto& p, const Config& c) {
        w.le("context_id", p.context_id, c.context_id_bytes);
        w.byte(bits<7>("LSiP", p.in_progress), bits<6, 5>("reason", p.reason), bits<4>("J", p.jazelle),
               bits<3>("NS", p.ns), bits<2>("AltISA", p.alt_isa), bits<1>("HYP", p.hyp), fixed<0>(1));
        if (c.data_only) return;
        w.le("address", p.address, 4);
        if (p.in_progress) w.field("current", p.current, SentTargetField{false});
    }
    [[nodiscard]] constexpr Isa isa() const {
        return jazelle ? Isa::jazelle : (address & 1U) == 0 ? Isa::a32 : alt_isa ? Isa::tee : Isa::t32;
    }
    bool operator==(const ISync&) const = default;
};

/// An I-sync with the cycles since the last P-header.
struct ISyncCycles : ISync {
    static constexpr PacketInfo info{
        .name = "I-SYNC-CYCLES", .section = "5", .value = 0x70, .mask = 0xff, .max_bytes = 20};
    static constexpr bool counted = true;

    static void fields(auto& w, auto& p, const Config& c) {
        w.byte(fixed<7, 0>(0x70));
        w.field("cycles", p.cycles, ShortNumber{});
        rest(w, p, c);
    }
    bool operator==(const ISyncCycles&) const = default;
};

struct CycleCount {
    static constexpr PacketInfo info{
        .name = "CYCLE-COUNT", .section = "6", .value = 0x04, .mask = 0xff, .max_bytes = 6};
    std::uint32_t cycles{};

    static void fields(auto& w, auto& p, const Config& c) {
        if (!c.cycle_accurate) return w.impossible();
        w.byte(fixed<7, 0>(0x04));
        w.field("cycles", p.cycles, ShortNumber{});
    }
    bool operator==(const CycleCount&) const = default;
};

struct Timestamp {
    static constexpr PacketInfo info{.name = "TIMESTAMP", .section = "6", .value = 0x42, .mask = 0xfb, .max_bytes = 10};
    TimestampValue value;
    bool frequency_changed{};

    static void fields(auto& w, auto& p, const Config& c) {
        w.byte(fixed<7, 3>(0x08), bits<2>("R", p.frequency_changed), fixed<1, 0>(2));
        w.field("value", p.value, TimestampField{c.timestamp_bytes});
    }
    bool operator==(const Timestamp&) const = default;
};

struct ContextId {
    static constexpr PacketInfo info{.name = "CONTEXT-ID", .section = "6", .value = 0x6e, .mask = 0xff, .max_bytes = 5};
    std::uint32_t context_id{};

    static void fields(auto& w, auto& p, const Config& c) {
        if (c.context_id_bytes == 0) return w.impossible();
        w.byte(fixed<7, 0>(0x6e));
        w.le("context_id", p.context_id, c.context_id_bytes);
    }
    bool operator==(const ContextId&) const = default;
};

struct Vmid {
    static constexpr PacketInfo info{.name = "VMID", .section = "6", .value = 0x3c, .mask = 0xff, .max_bytes = 2};
    std::uint8_t vmid{};

    static void fields(auto& w, auto& p, const Config&) {
        w.byte(fixed<7, 0>(0x3c));
        w.byte(bits<7, 0>("VMID", p.vmid));
    }
    bool operator==(const Vmid&) const = default;
};

/// The last instruction was an exception return.
struct ExceptionReturn {
    static constexpr PacketInfo info{
        .name = "EXCEPTION-RETURN", .section = "6", .value = 0x76, .mask = 0xff, .max_bytes = 1};
    static void fields(auto& w, auto&, const Config&) { w.byte(fixed<7, 0>(0x76)); }
    bool operator==(const ExceptionReturn&) const = default;
};

/// M profile with data trace: the transfers that follow save state for an exception.
struct ExceptionEntry {
    static constexpr PacketInfo info{
        .name = "EXCEPTION-ENTRY", .section = "6", .value = 0x7e, .mask = 0xff, .max_bytes = 1};
    static void fields(auto& w, auto&, const Config&) { w.byte(fixed<7, 0>(0x7e)); }
    bool operator==(const ExceptionEntry&) const = default;
};

struct Trigger {
    static constexpr PacketInfo info{.name = "TRIGGER", .section = "6", .value = 0x0c, .mask = 0xff, .max_bytes = 1};
    static void fields(auto& w, auto&, const Config&) { w.byte(fixed<7, 0>(0x0c)); }
    bool operator==(const Trigger&) const = default;
};

/// Filler.
struct Ignore {
    static constexpr PacketInfo info{.name = "IGNORE", .section = "6", .value = 0x66, .mask = 0xff, .max_bytes = 1};
    static void fields(auto& w, auto&, const Config&) { w.byte(fixed<7, 0>(0x66)); }
    bool operator==(const Ignore&) const = default;
};

// ---- data packets (section 2). They do not concern flow.

/// Number of bytes of a value, by its SS field.
[[nodiscard]] constexpr unsigned value_bytes(unsigned ss) { return ss == 3 ? 4 : ss; }

/// A data transfer in order.
struct NormalData {
    static constexpr PacketInfo info{
        .name = "NORMAL-DATA", .section = "2", .value = 0x02, .mask = 0xd3, .max_bytes = 10};
    bool addressed{};
    std::uint8_t size{};
    SentDataAddress address;
    std::uint32_t value{};

    static void fields(auto& w, auto& p, const Config& c) {
        if (!c.data_value && !c.data_address) return w.impossible();
        w.byte(fixed<7, 6>(0), bits<5>("A", p.addressed), fixed<4>(0), bits<3, 2>("SS", p.size), fixed<1, 0>(2));
        if (p.addressed && c.data_address) w.field("address", p.address, SentDataAddressField{});
        if (c.data_value) w.le("value", p.value, value_bytes(p.size));
    }
    bool operator==(const NormalData&) const = default;
};

/// The value of a transfer for which an earlier placeholder has this tag.
struct OutOfOrderData {
    static constexpr PacketInfo info{
        .name = "OUT-OF-ORDER-DATA", .section = "2", .value = 0x00, .mask = 0x93, .max_bytes = 5};
    std::uint8_t tag = 1, size{};
    std::uint32_t value{};

    static void fields(auto& w, auto& p, const Config& c) {
        if (!c.data_value) return w.impossible();
        w.byte(fixed<7>(0), bits<6, 5>("tag", p.tag), fixed<4>(0), bits<3, 2>("SS", p.size), fixed<1, 0>(0));
        if (p.tag == 0) return w.impossible();
        w.le("value", p.value, value_bytes(p.size));
    }
    bool operator==(const OutOfOrderData&) const = default;
};

/// A transfer whose value comes later.
struct OutOfOrderPlaceholder {
    static constexpr PacketInfo info{
        .name = "OUT-OF-ORDER-PLACEHOLDER", .section = "2", .value = 0x50, .mask = 0xd3, .max_bytes = 6};
    bool addressed{};
    std::uint8_t tag = 1;
    SentDataAddress address;

    static void fields(auto& w, auto& p, const Config& c) {
        if (!c.data_value && !c.data_address) return w.impossible();
        w.byte(fixed<7, 6>(1), bits<5>("A", p.addressed), fixed<4>(1), bits<3, 2>("tag", p.tag), fixed<1, 0>(0));
        if (p.tag == 0) return w.impossible();
        if (p.addressed && c.data_address) w.field("address", p.address, SentDataAddressField{});
    }
    bool operator==(const OutOfOrderPlaceholder&) const = default;
};

/// The previous store exclusive did not store anything.
struct StoreFailed {
    static constexpr PacketInfo info{
        .name = "STORE-FAILED", .section = "2", .value = 0x50, .mask = 0xff, .max_bytes = 1};
    static void fields(auto& w, auto&, const Config& c) {
        if (!c.data_value) return w.impossible();
        w.byte(fixed<7, 0>(0x50));
    }
    bool operator==(const StoreFailed&) const = default;
};

/// The FIFO was nearly full: data packets are missing from here on.
struct DataSuppressed {
    static constexpr PacketInfo info{
        .name = "DATA-SUPPRESSED", .section = "2", .value = 0x62, .mask = 0xff, .max_bytes = 1};
    static void fields(auto& w, auto&, const Config& c) {
        if (!c.data_value && !c.data_address) return w.impossible();
        w.byte(fixed<7, 0>(0x62));
    }
    bool operator==(const DataSuppressed&) const = default;
};

/// A transfer that the filter excluded.
struct ValueNotTraced {
    static constexpr PacketInfo info{
        .name = "VALUE-NOT-TRACED", .section = "2", .value = 0x6a, .mask = 0xef, .max_bytes = 6};
    bool addressed{};
    SentDataAddress address;

    static void fields(auto& w, auto& p, const Config& c) {
        if (!c.data_value && !c.data_address) return w.impossible();
        w.byte(fixed<7, 5>(3), bits<4>("A", p.addressed), fixed<3, 0>(0xa));
        if (p.addressed && c.data_address) w.field("address", p.address, SentDataAddressField{});
    }
    bool operator==(const ValueNotTraced&) const = default;
};

/// All packets, the most frequent first. Packets whose header is a whole byte precede data packets, whose header masks
/// overlap them.
#define WM_ETM3_PACKETS                                                                                  \
    PHeader, BranchAddress, ISync, ISyncCycles, Timestamp, CycleCount, ContextId, Vmid, ExceptionReturn, \
        ExceptionEntry, Trigger, Ignore, ASync, StoreFailed, DataSuppressed, ValueNotTraced, NormalData, \
        OutOfOrderPlaceholder, OutOfOrderData
using Packets = wire::PacketList<WM_ETM3_PACKETS>;
using Packet = std::variant<WM_ETM3_PACKETS>;
#undef WM_ETM3_PACKETS

}  // namespace waymark::etm3
