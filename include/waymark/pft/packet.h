/// Every packet of Program Flow Trace v1.0 and v1.1: the transmitted fields, without state from earlier packets
/// (docs/spec/pft.md, section 2). Formats are described here once; see core/wire.h.
#pragma once

#include <cstdint>
#include <variant>

#include "waymark/core/wire.h"
#include "waymark/pft/codec.h"
#include "waymark/pft/config.h"

namespace waymark::pft {

using wire::bits;
using wire::fixed;
using wire::PacketInfo;

/// A-sync: marks a packet boundary in the byte stream.
struct ASync {
    static constexpr PacketInfo info{.name = "A-SYNC", .section = "2.2", .value = 0x00, .mask = 0xff, .max_bytes = 0};
    std::uint64_t zeros = 5;  ///< 5 or more

    static void fields(auto& w, auto& p, const Config&) { w.field("zeros", p.zeros, AsyncField{}); }
    bool operator==(const ASync&) const = default;
};

/// Outcomes of waypoint instructions.
struct Atom {
    static constexpr PacketInfo info{.name = "ATOM", .section = "2.4", .value = 0x80, .mask = 0x81, .max_bytes = 5};
    CycleAtom outcome;  ///< cycle-accurate: one atom and its cycles; else up to five atoms, cycles 0

    static void fields(auto& w, auto& p, const Config& c) {
        if (c.cycle_accurate)
            w.field("atom", p.outcome, CycleAtomField{});
        else
            w.field("atoms", p.outcome.atoms, AtomPattern{});
    }
    bool operator==(const Atom&) const = default;
};

/// A taken branch, or an exception: where execution continues.
struct BranchAddress {
    static constexpr PacketInfo info{
        .name = "BRANCH-ADDRESS", .section = "2.5", .value = 0x01, .mask = 0x01, .max_bytes = 12};
    Target target;
    std::uint32_t cycles{};
    std::uint8_t exception_3_0{}, exception_8_4{};
    bool more{};  ///< information byte 1 is there
    bool alt_isa{}, ns{}, hyp{};

    static void fields(auto& w, auto& p, const Config& c) {
        w.field("target", p.target, TargetField{.information_from_two_bytes = true, .jazelle = true});
        if (p.target.information) {
            // Bit 5 cancels in ETMv3 and has no known use in PFT (OQ9): tolerated.
            w.byte(bits<7>("C", p.more), bits<6>("AltISA", p.alt_isa), wire::should_be<5>(0),
                   bits<4, 1>("exception[3:0]", p.exception_3_0), bits<0>("NS", p.ns));
            if (p.more) w.byte(fixed<7, 6>(0), bits<5>("HYP", p.hyp), bits<4, 0>("exception[8:4]", p.exception_8_4));
        }
        if (c.cycle_accurate) w.field("cycles", p.cycles, CycleCount{});
    }
    [[nodiscard]] constexpr std::uint32_t exception() const { return exception_8_4 * 16U + exception_3_0; }
    bool operator==(const BranchAddress&) const = default;
};

/// The reason for an I-sync.
enum class ISyncReason : std::uint8_t { periodic, trace_enabled, overflow_restart, debug_exit };

/// I-sync: the whole state of the core at an instruction. Executes nothing.
struct ISync {
    static constexpr PacketInfo info{.name = "I-SYNC", .section = "2.6", .value = 0x08, .mask = 0xff, .max_bytes = 15};
    std::uint32_t address_31_1{}, cycles{}, context_id{};
    ISyncReason reason{};
    bool thumb{}, ns{}, alt_isa{}, hyp{};

    static void fields(auto& w, auto& p, const Config& c) {
        w.byte(fixed<7, 0>(0x08));
        w.word(bits<31, 1>("address[31:1]", p.address_31_1), bits<0>("T", p.thumb));
        w.byte(fixed<7>(0), bits<6, 5>("reason", p.reason), fixed<4>(0), bits<3>("NS", p.ns),
               bits<2>("AltISA", p.alt_isa), bits<1>("HYP", p.hyp), fixed<0>(1));
        if (c.cycle_accurate && p.reason != ISyncReason::periodic) w.field("cycles", p.cycles, CycleCount{.bit_7 = 1});
        w.le("context_id", p.context_id, c.context_id_bytes);
    }
    [[nodiscard]] constexpr Address address() const { return {std::uint64_t{address_31_1} << 1}; }
    [[nodiscard]] constexpr Isa isa() const { return !thumb ? Isa::a32 : alt_isa ? Isa::tee : Isa::t32; }
    bool operator==(const ISync&) const = default;
};

/// A timestamp; with all its bytes, a T-sync.
struct Timestamp {
    static constexpr PacketInfo info{
        .name = "TIMESTAMP", .section = "2.9", .value = 0x42, .mask = 0xfb, .max_bytes = 15};
    TimestampValue value;
    std::uint32_t cycles{};
    bool frequency_changed{};

    static void fields(auto& w, auto& p, const Config& c) {
        w.byte(fixed<7, 3>(0x08), bits<2>("R", p.frequency_changed), fixed<1, 0>(2));
        w.field("value", p.value, TimestampField{c.timestamp_bytes});
        if (c.cycle_accurate) w.field("cycles", p.cycles, CycleCount{});
    }
    bool operator==(const Timestamp&) const = default;
};

/// An instruction that became a waypoint because an exception follows it, or because the block is large.
struct WaypointUpdate {
    static constexpr PacketInfo info{
        .name = "WAYPOINT-UPDATE", .section = "2.7", .value = 0x72, .mask = 0xff, .max_bytes = 7};
    Target target;
    bool alt_isa{};

    static void fields(auto& w, auto& p, const Config&) {
        w.byte(fixed<7, 0>(0x72));
        w.field("target", p.target, TargetField{.information_from_two_bytes = false, .jazelle = false});
        if (p.target.information) w.byte(fixed<7>(0), bits<6>("AltISA", p.alt_isa), wire::should_be<5, 0>(0));
    }
    bool operator==(const WaypointUpdate&) const = default;
};

/// The current Context ID.
struct ContextId {
    static constexpr PacketInfo info{
        .name = "CONTEXT-ID", .section = "2.8", .value = 0x6e, .mask = 0xff, .max_bytes = 5};
    std::uint32_t context_id{};

    static void fields(auto& w, auto& p, const Config& c) {
        if (c.context_id_bytes == 0) return w.impossible();
        w.byte(fixed<7, 0>(0x6e));
        w.le("context_id", p.context_id, c.context_id_bytes);
    }
    bool operator==(const ContextId&) const = default;
};

/// The current VMID. v1.1.
struct Vmid {
    static constexpr PacketInfo info{.name = "VMID", .section = "2.8", .value = 0x3c, .mask = 0xff, .max_bytes = 2};
    std::uint8_t vmid{};

    static void fields(auto& w, auto& p, const Config&) {
        w.byte(fixed<7, 0>(0x3c));
        w.byte(bits<7, 0>("VMID", p.vmid));
    }
    bool operator==(const Vmid&) const = default;
};

/// The most recent waypoint instruction returned from an exception. v1.1.
struct ExceptionReturn {
    static constexpr PacketInfo info{
        .name = "EXCEPTION-RETURN", .section = "2.8", .value = 0x76, .mask = 0xff, .max_bytes = 1};

    static void fields(auto& w, auto&, const Config&) { w.byte(fixed<7, 0>(0x76)); }
    bool operator==(const ExceptionReturn&) const = default;
};

/// The trigger event.
struct Trigger {
    static constexpr PacketInfo info{.name = "TRIGGER", .section = "2.8", .value = 0x0c, .mask = 0xff, .max_bytes = 1};

    static void fields(auto& w, auto&, const Config&) { w.byte(fixed<7, 0>(0x0c)); }
    bool operator==(const Trigger&) const = default;
};

/// Filler.
struct Ignore {
    static constexpr PacketInfo info{.name = "IGNORE", .section = "2.8", .value = 0x66, .mask = 0xff, .max_bytes = 1};

    static void fields(auto& w, auto&, const Config&) { w.byte(fixed<7, 0>(0x66)); }
    bool operator==(const Ignore&) const = default;
};

/// All packet types, the most frequent first.
using Packets = wire::PacketList<Atom, BranchAddress, ISync, Timestamp, WaypointUpdate, ContextId, Vmid,
                                 ExceptionReturn, Trigger, Ignore, ASync>;
using Packet = std::variant<Atom, BranchAddress, ISync, Timestamp, WaypointUpdate, ContextId, Vmid, ExceptionReturn,
                            Trigger, Ignore, ASync>;

static_assert(wire::reserved_headers<Packets>() == 54, "section 2.1 counts 54 reserved headers");

}  // namespace waymark::pft
