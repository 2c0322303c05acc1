/// Every packet of the ETMv4.0 to 4.6 and ETE 1.0 to 1.3 instruction trace stream: the transmitted fields, without
/// state from earlier packets (docs/spec/etm4.md, sections 2 to 12). Formats are described here once; see core/wire.h.
///
/// A packet that only some trace units have has a function `allowed(config)`; `needs` states the condition in words.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <variant>

#include "waymark/core/wire.h"
#include "waymark/etm4/codec.h"
#include "waymark/etm4/config.h"

namespace waymark::etm4 {

using wire::bits;
using wire::fixed;
using wire::PacketInfo;

/// A packet that is only its header.
struct OneByte {
    static void fields(auto& w, auto& p, const Config&) {
        w.byte(fixed<7, 0>(std::remove_cvref_t<decltype(p)>::info.value));
    }
    bool operator==(const OneByte&) const = default;
};
/// The same after a byte 0.
struct TwoBytes {
    static void fields(auto& w, auto& p, const Config& c) {
        w.byte(fixed<7, 0>(0x00));
        OneByte::fields(w, p, c);
    }
    bool operator==(const TwoBytes&) const = default;
};

// ---- section 3: two bytes, of which the first is 0. `info.value` is the second byte.

/// A-sync: eleven zeros and 0x80 mark a packet boundary in the byte stream.
struct ASync {
    static constexpr PacketInfo info{.name = "A-SYNC", .section = "3", .value = 0x00, .mask = 0xff, .max_bytes = 12};

    static void fields(auto& w, auto&, const Config&) {
        for (unsigned n = 0; n < 11; ++n) w.byte(fixed<7, 0>(0x00));
        w.byte(fixed<7, 0>(0x80));
    }
    bool operator==(const ASync&) const = default;
};

/// Trace is lost from here on, until tracing begins again: uncommitted elements will never be committed.
struct Discard : TwoBytes {
    static constexpr PacketInfo info{.name = "DISCARD", .section = "3", .value = 0x03, .mask = 0xff, .max_bytes = 2};
};

/// Like Discard, because the trace unit's buffer was full.
struct Overflow : TwoBytes {
    static constexpr PacketInfo info{.name = "OVERFLOW", .section = "3", .value = 0x05, .mask = 0xff, .max_bytes = 2};
};

/// The branch future cache of an Armv8.1-M core was emptied.
struct BranchFutureFlush : TwoBytes {
    static constexpr PacketInfo info{
        .name = "BRANCH-FUTURE-FLUSH", .section = "3", .value = 0x07, .mask = 0xff, .max_bytes = 2};
    static constexpr std::string_view needs = "an ETMv4.5 or later of an M profile core";
    static constexpr bool allowed(const Config& c) {
        return c.profile == CoreProfile::m && c.version >= 0x45 && !c.ete();
    }
};

// ---- sections 4 and 5

/// The state that a reader needs to begin here. All compression state starts again.
struct TraceInfo {
    static constexpr PacketInfo info{
        .name = "TRACE-INFO", .section = "4", .value = 0x01, .mask = 0xff, .max_bytes = 30};
    std::uint8_t sections{};
    std::uint32_t info_section{}, key{}, speculation{}, threshold{}, window{};

    static void fields(auto& w, auto& p, const Config&) {
        w.byte(fixed<7, 0>(0x01));
        w.field("PLCTL", p.sections, PlctlField{});
        if (p.has_info()) w.field("INFO", p.info_section, number_field);
        if (p.has_key()) w.field("KEY", p.key, number_field);
        if (p.has_speculation()) w.field("SPEC", p.speculation, number_field);
        if (p.has_threshold()) w.field("CYCT", p.threshold, number_field);
        if (p.has_window()) w.field("WNDW", p.window, number_field);
    }
    [[nodiscard]] constexpr bool has_info() const { return (sections & 1U) != 0; }
    [[nodiscard]] constexpr bool has_key() const { return (sections & 2U) != 0; }
    [[nodiscard]] constexpr bool has_speculation() const { return (sections & 4U) != 0; }
    [[nodiscard]] constexpr bool has_threshold() const { return (sections & 8U) != 0; }
    [[nodiscard]] constexpr bool has_window() const { return (sections & 16U) != 0; }

    [[nodiscard]] constexpr bool cycle_counting() const { return (info_section & 1U) != 0; }
    [[nodiscard]] constexpr unsigned conditional() const { return info_section >> 1 & 7U; }
    [[nodiscard]] constexpr bool p0_loads() const { return (info_section >> 4 & 1U) != 0; }
    [[nodiscard]] constexpr bool p0_stores() const { return (info_section >> 5 & 1U) != 0; }
    [[nodiscard]] constexpr bool in_transaction() const { return (info_section >> 6 & 1U) != 0; }
    bool operator==(const TraceInfo&) const = default;
};

/// A timestamp; with N, also the cycles since the last Cycle Count.
struct Timestamp {
    static constexpr PacketInfo info{.name = "TIMESTAMP", .section = "5", .value = 0x02, .mask = 0xfe, .max_bytes = 13};
    TimestampValue value;
    std::uint32_t cycles{};
    bool has_cycles{};

    static void fields(auto& w, auto& p, const Config&) {
        w.byte(fixed<7, 1>(1), bits<0>("N", p.has_cycles));
        w.field("value", p.value, TimestampField{});
        if (p.has_cycles) w.field("cycles", p.cycles, cycle_field);
    }
    bool operator==(const Timestamp&) const = default;
};

/// The place to which the next timestamp refers.
struct TimestampMarker : OneByte {
    static constexpr PacketInfo info{
        .name = "TIMESTAMP-MARKER", .section = "5", .value = 0x88, .mask = 0xff, .max_bytes = 1};
    static constexpr std::string_view needs = "ETMv4.6 or an ETE";
    static constexpr bool allowed(const Config& c) { return c.version >= 0x46; }
};

/// Tracing begins here: earlier code does not lead here.
struct TraceOn : OneByte {
    static constexpr PacketInfo info{.name = "TRACE-ON", .section = "5", .value = 0x04, .mask = 0xff, .max_bytes = 1};
};

/// Return from a function of another security state.
struct FunctionReturn : OneByte {
    static constexpr PacketInfo info{
        .name = "FUNCTION-RETURN", .section = "5", .value = 0x05, .mask = 0xff, .max_bytes = 1};
    static constexpr std::string_view needs = "an ETMv4.2 or later of an M profile core";
    static constexpr bool allowed(const Config& c) {
        return c.profile == CoreProfile::m && c.version >= 0x42 && !c.ete();
    }
};

/// Cycles, and with commit mode 0 the number of committed P0 elements. Format 1.
struct CycleCountF1 {
    static constexpr PacketInfo info{
        .name = "CYCLE-COUNT-F1", .section = "5", .value = 0x0e, .mask = 0xfe, .max_bytes = 9};
    std::uint32_t commit{}, count{};
    bool unknown{};

    static void fields(auto& w, auto& p, const Config& c) {
        w.byte(fixed<7, 1>(7), bits<0>("U", p.unknown));
        if (!c.commit_mode_1) w.field("commit", p.commit, number_field);
        if (!p.unknown) w.field("count", p.count, cycle_field);
    }
    bool operator==(const CycleCountF1&) const = default;
};

/// Format 2: AAAA is the commit count minus 1; with F, the count is relative to MAXSPEC.
struct CycleCountF2 {
    static constexpr PacketInfo info{
        .name = "CYCLE-COUNT-F2", .section = "5", .value = 0x0c, .mask = 0xfe, .max_bytes = 2};
    std::uint8_t commit{}, count{};
    bool from_maximum{};

    static void fields(auto& w, auto& p, const Config&) {
        w.byte(fixed<7, 1>(6), bits<0>("F", p.from_maximum));
        w.byte(bits<7, 4>("AAAA", p.commit), bits<3, 0>("BBBB", p.count));
    }
    bool operator==(const CycleCountF2&) const = default;
};

/// Format 3.
struct CycleCountF3 {
    static constexpr PacketInfo info{
        .name = "CYCLE-COUNT-F3", .section = "5", .value = 0x10, .mask = 0xf0, .max_bytes = 1};
    std::uint8_t commit{}, count{};

    static void fields(auto& w, auto& p, const Config&) {
        w.byte(fixed<7, 4>(1), bits<3, 2>("AA", p.commit), bits<1, 0>("BB", p.count));
    }
    bool operator==(const CycleCountF3&) const = default;
};

/// The unit's events that occurred: bit n is event n.
struct Event {
    static constexpr PacketInfo info{.name = "EVENT", .section = "5", .value = 0x70, .mask = 0xf0, .max_bytes = 1};
    static constexpr bool is_header(std::uint8_t b) { return b >= 0x71 && b <= 0x7f; }
    std::uint8_t events = 1;

    static void fields(auto& w, auto& p, const Config&) { w.field("events", p.events, HeaderField{0x70, 0xfffeU}); }
    bool operator==(const Event&) const = default;
};

/// Filler.
struct Ignore : OneByte {
    static constexpr PacketInfo info{.name = "IGNORE", .section = "5", .value = 0x70, .mask = 0xff, .max_bytes = 1};
    static constexpr std::string_view needs = "version 4.3 or later";
    static constexpr bool allowed(const Config& c) { return c.version >= 0x43; }
};

// ---- section 6

/// Exception level, security state and identifiers, as Context and Address with Context packets carry them.
struct ContextFields {
    std::uint32_t vmid{}, context_id{};
    std::uint8_t el{};
    bool has_context_id{}, has_vmid{}, ns{}, sf{}, nse{};

    static void payload(auto& w, auto& p, const Config& c) {
        w.byte(bits<7>("P", p.has_context_id), bits<6>("V", p.has_vmid), bits<5>("NS", p.ns), bits<4>("SF", p.sf),
               bits<3>("NSE", p.nse), wire::should_be<2>(0), bits<1, 0>("EL", p.el));
        if (p.has_vmid) w.le("VMID", p.vmid, c.vmid_bytes);
        if (p.has_context_id) w.le("context_id", p.context_id, c.context_id_bytes);
    }
    bool operator==(const ContextFields&) const = default;
};

/// The context of the instructions that follow; without a payload, the same as before.
struct Context : ContextFields {
    static constexpr PacketInfo info{.name = "CONTEXT", .section = "6", .value = 0x80, .mask = 0xfe, .max_bytes = 10};
    bool has_payload{};

    static void fields(auto& w, auto& p, const Config& c) {
        w.byte(fixed<7, 1>(0x40), bits<0>("payload", p.has_payload));
        if (p.has_payload) ContextFields::payload(w, p, c);
    }
    bool operator==(const Context&) const = default;
};

/// Where execution continues. Compressed by its low bits against the most recent address.
struct ShortAddress {
    static constexpr PacketInfo info{
        .name = "ADDRESS-SHORT", .section = "6", .value = 0x94, .mask = 0xfc, .max_bytes = 3};
    static constexpr bool is_header(std::uint8_t b) { return b == 0x95 || b == 0x96; }
    SentAddress address{.value = 0, .bytes = 1};

    static void fields(auto& w, auto& p, const Config&) { w.field("address", p.address, ShortAddressField{0x95}); }
    bool operator==(const ShortAddress&) const = default;
};

/// Where execution continues: 32 or 64 bits.
struct LongAddress {
    static constexpr PacketInfo info{
        .name = "ADDRESS-LONG", .section = "6", .value = 0x98, .mask = 0xf8, .max_bytes = 9};
    static constexpr bool is_header(std::uint8_t b) { return b == 0x9a || b == 0x9b || b == 0x9d || b == 0x9e; }
    SentAddress address;

    static void fields(auto& w, auto& p, const Config&) { w.field("address", p.address, LongAddressField{0x9a, 3}); }
    bool operator==(const LongAddress&) const = default;
};

/// Where execution continues: one of the three most recent addresses.
struct ExactMatchAddress {
    static constexpr PacketInfo info{
        .name = "ADDRESS-EXACT-MATCH", .section = "6", .value = 0x90, .mask = 0xfc, .max_bytes = 1};
    static constexpr bool is_header(std::uint8_t b) { return b >= 0x90 && b <= 0x92; }
    std::uint8_t entry{};

    static void fields(auto& w, auto& p, const Config&) { w.field("entry", p.entry, HeaderField{0x90, 7U}); }
    bool operator==(const ExactMatchAddress&) const = default;
};

/// A context, and the address at which execution continues in it.
struct AddressWithContext : ContextFields {
    static constexpr PacketInfo info{
        .name = "ADDRESS-CONTEXT", .section = "6", .value = 0x80, .mask = 0xf8, .max_bytes = 18};
    static constexpr bool is_header(std::uint8_t b) { return b == 0x82 || b == 0x83 || b == 0x85 || b == 0x86; }
    SentAddress address;

    static void fields(auto& w, auto& p, const Config& c) {
        w.field("address", p.address, LongAddressField{0x82, 3});
        ContextFields::payload(w, p, c);
    }
    bool operator==(const AddressWithContext&) const = default;
};

// ---- section 7

/// Outcomes of P0 instructions, oldest first. The atoms decide the format: no two formats represent the same atoms.
struct Atom {
    static constexpr PacketInfo info{.name = "ATOM", .section = "7", .value = 0xc0, .mask = 0xc0, .max_bytes = 1};
    Atoms atoms;

    static void fields(auto& w, auto& p, const Config&) { w.field("atoms", p.atoms, AtomField{}); }
    bool operator==(const Atom&) const = default;
};

// ---- section 8

/// The oldest P0 elements were architecturally executed.
struct Commit {
    static constexpr PacketInfo info{.name = "COMMIT", .section = "8", .value = 0x2d, .mask = 0xff, .max_bytes = 6};
    std::uint32_t count{};

    static void fields(auto& w, auto& p, const Config&) {
        w.byte(fixed<7, 0>(0x2d));
        w.field("count", p.count, number_field);
    }
    bool operator==(const Commit&) const = default;
};

/// The newest P0 elements did not happen; with M, also the newest remaining one was mispredicted. Format 1.
struct CancelF1 {
    static constexpr PacketInfo info{.name = "CANCEL-F1", .section = "8", .value = 0x2e, .mask = 0xfe, .max_bytes = 6};
    std::uint32_t count{};
    bool mispredict{};

    static void fields(auto& w, auto& p, const Config&) {
        w.byte(fixed<7, 1>(0x17), bits<0>("M", p.mispredict));
        w.field("count", p.count, number_field);
    }
    bool operator==(const CancelF1&) const = default;
};

/// Format 2: atoms, one cancelled P0 element, and a misprediction. AA: 0 no atom, 1 E, 2 EE, 3 N.
struct CancelF2 {
    static constexpr PacketInfo info{.name = "CANCEL-F2", .section = "8", .value = 0x34, .mask = 0xfc, .max_bytes = 1};
    std::uint8_t atoms{};

    static void fields(auto& w, auto& p, const Config&) { w.byte(fixed<7, 2>(0x0d), bits<1, 0>("AA", p.atoms)); }
    bool operator==(const CancelF2&) const = default;
};

/// Format 3: with A an atom E, then CC + 2 cancelled P0 elements, and a misprediction.
struct CancelF3 {
    static constexpr PacketInfo info{.name = "CANCEL-F3", .section = "8", .value = 0x38, .mask = 0xf8, .max_bytes = 1};
    std::uint8_t count{};
    bool atom{};

    static void fields(auto& w, auto& p, const Config&) {
        w.byte(fixed<7, 3>(0x07), bits<2, 1>("CC", p.count), bits<0>("A", p.atom));
    }
    bool operator==(const CancelF3&) const = default;
};

/// Atoms, the newest of which had the other outcome. AA has the same meaning as in Cancel format 2.
struct Mispredict {
    static constexpr PacketInfo info{.name = "MISPREDICT", .section = "8", .value = 0x30, .mask = 0xfc, .max_bytes = 1};
    std::uint8_t atoms{};

    static void fields(auto& w, auto& p, const Config&) { w.byte(fixed<7, 2>(0x0c), bits<1, 0>("AA", p.atoms)); }
    bool operator==(const Mispredict&) const = default;
};
/// The atoms that AA of a Mispredict or Cancel format 2 packet adds; count 0 for none.
[[nodiscard]] constexpr Atoms speculation_atoms(std::uint8_t aa) {
    constexpr std::array<Atoms, 4> atoms{Atoms{0, 0}, Atoms{1, 1}, Atoms{2, 3}, Atoms{1, 0}};
    return atoms[aa & 3U];
}

// ---- section 9

/// An exception; the next address packet has the return address. In an ETE, PE Reset and Transaction Failure are
/// exceptions too and have the header of an unknown address.
struct Exception {
    static constexpr PacketInfo info{.name = "EXCEPTION", .section = "9", .value = 0x06, .mask = 0xff, .max_bytes = 3};
    std::uint8_t type_4_0{}, type_9_5{};
    bool more{}, e1{}, e0{}, fault_pending{};

    static void fields(auto& w, auto& p, const Config& c) {
        w.byte(fixed<7, 0>(0x06));
        w.byte(bits<7>("C", p.more), bits<6>("E1", p.e1), bits<5, 1>("type[4:0]", p.type_4_0), bits<0>("E0", p.e0));
        if (p.more)
            w.byte(wire::should_be<7, 6>(0), bits<5>("P", p.fault_pending), bits<4, 0>("type[9:5]", p.type_9_5));
        else if (p.address_unknown(c))
            w.byte(fixed<7, 0>(0x70));
    }
    [[nodiscard]] constexpr unsigned type() const { return type_9_5 * 32U + type_4_0; }
    /// Whether no address packet belongs to the exception.
    [[nodiscard]] constexpr bool address_unknown(const Config& c) const {
        return is_pe_reset(c) || is_transaction_failure(c);
    }
    [[nodiscard]] constexpr bool is_pe_reset(const Config& c) const { return c.ete() && type() == 0; }
    [[nodiscard]] constexpr bool is_transaction_failure(const Config& c) const {
        return c.ete() && !more && type_4_0 == 0x18;
    }
    /// Whether the next address is also the target of the branch before: E is 10.
    [[nodiscard]] constexpr bool at_branch_target() const { return e1 && !e0; }
    bool operator==(const Exception&) const = default;
};

/// The core returned from an exception.
struct ExceptionReturn : OneByte {
    static constexpr PacketInfo info{
        .name = "EXCEPTION-RETURN", .section = "9", .value = 0x07, .mask = 0xff, .max_bytes = 1};
    static constexpr std::string_view needs = "an ETMv4; an ETE has none";
    static constexpr bool allowed(const Config& c) { return !c.ete(); }
};

// ---- section 10

/// A number of instructions whose path was not traced in full, and where execution continues.
struct Q {
    static constexpr PacketInfo info{.name = "Q", .section = "10", .value = 0xa0, .mask = 0xf0, .max_bytes = 10};
    static constexpr std::uint32_t types = 0b1001'1100'0110'0111;  // 0 1 2 5 6 A B C F
    static constexpr bool is_header(std::uint8_t b) { return (b & 0xf0U) == 0xa0 && (types >> (b & 0xfU) & 1U) != 0; }
    static constexpr std::string_view needs = "a trace unit with Q elements (TRCIDR0.QSUPP)";
    static constexpr bool allowed(const Config& c) { return c.q_elements; }
    SentAddress address{.value = 0, .bytes = 1};  ///< types 5, 6, A and B
    std::uint32_t count{};                        ///< number of instructions; in all types except F
    std::uint8_t type{};                          ///< 0 to 2: entry of the address history

    static void fields(auto& w, auto& p, const Config&) {
        w.field("type", p.type, HeaderField{0xa0, types});
        if (p.has_short_address())
            w.field("address", p.address, AddressBytes{.is1 = p.type == 6, .bytes = 0});
        else if (p.has_long_address())
            w.field("address", p.address, AddressBytes{.is1 = p.type == 0xb, .bytes = 4});
        if (p.has_count()) w.field("count", p.count, number_field);
    }
    [[nodiscard]] constexpr bool has_entry() const { return type <= 2; }
    [[nodiscard]] constexpr bool has_short_address() const { return type == 5 || type == 6; }
    [[nodiscard]] constexpr bool has_long_address() const { return type == 0xa || type == 0xb; }
    [[nodiscard]] constexpr bool has_count() const { return type != 0xf; }
    bool operator==(const Q&) const = default;
};

// ---- section 11

/// A taken P0 instruction at this address was executed, and no earlier P0 instruction was taken.
struct ShortSourceAddress {
    static constexpr PacketInfo info{
        .name = "SOURCE-ADDRESS-SHORT", .section = "11", .value = 0xb4, .mask = 0xfe, .max_bytes = 3};
    static constexpr std::string_view needs = "an ETE";
    static constexpr bool allowed(const Config& c) { return c.ete(); }
    SentAddress address{.value = 0, .bytes = 1};

    static void fields(auto& w, auto& p, const Config&) { w.field("address", p.address, ShortAddressField{0xb4}); }
    bool operator==(const ShortSourceAddress&) const = default;
};

/// A Source Address with 32 or 64 bits.
struct LongSourceAddress {
    static constexpr PacketInfo info{
        .name = "SOURCE-ADDRESS-LONG", .section = "11", .value = 0xb0, .mask = 0xf0, .max_bytes = 9};
    static constexpr bool is_header(std::uint8_t b) { return b >= 0xb6 && b <= 0xb9; }
    static constexpr std::string_view needs = "an ETE";
    static constexpr bool allowed(const Config& c) { return c.ete(); }
    SentAddress address;

    static void fields(auto& w, auto& p, const Config&) { w.field("address", p.address, LongAddressField{0xb6, 2}); }
    bool operator==(const LongSourceAddress&) const = default;
};

/// A Source Address that is one of the three most recent addresses.
struct ExactMatchSourceAddress {
    static constexpr PacketInfo info{
        .name = "SOURCE-ADDRESS-EXACT-MATCH", .section = "11", .value = 0xb0, .mask = 0xfc, .max_bytes = 1};
    static constexpr bool is_header(std::uint8_t b) { return b >= 0xb0 && b <= 0xb2; }
    static constexpr std::string_view needs = "an ETE";
    static constexpr bool allowed(const Config& c) { return c.ete(); }
    std::uint8_t entry{};

    static void fields(auto& w, auto& p, const Config&) { w.field("entry", p.entry, HeaderField{0xb0, 7U}); }
    bool operator==(const ExactMatchSourceAddress&) const = default;
};

/// The outermost transaction began.
struct TransactionStart : OneByte {
    static constexpr PacketInfo info{
        .name = "TRANSACTION-START", .section = "11", .value = 0x0a, .mask = 0xff, .max_bytes = 1};
    static constexpr std::string_view needs = "an ETE";
    static constexpr bool allowed(const Config& c) { return c.ete(); }
};

/// The outermost transaction succeeded.
struct TransactionCommit : OneByte {
    static constexpr PacketInfo info{
        .name = "TRANSACTION-COMMIT", .section = "11", .value = 0x0b, .mask = 0xff, .max_bytes = 1};
    static constexpr std::string_view needs = "an ETE";
    static constexpr bool allowed(const Config& c) { return c.ete(); }
};

/// A value that the program passed to the trace unit, and the exception level.
struct Instrumentation {
    static constexpr PacketInfo info{
        .name = "INSTRUMENTATION", .section = "11", .value = 0x09, .mask = 0xff, .max_bytes = 10};
    static constexpr std::string_view needs = "an ETE 1.3 or later";
    static constexpr bool allowed(const Config& c) { return c.version >= 0x53; }
    std::uint64_t value{};
    std::uint8_t el{};

    static void fields(auto& w, auto& p, const Config&) {
        w.byte(fixed<7, 0>(0x09));
        w.byte(wire::should_be<7, 2>(0), bits<1, 0>("EL", p.el));
        w.le("value", p.value, 8);
    }
    bool operator==(const Instrumentation&) const = default;
};

// ---- section 12 and data trace markers. An ETE has none of them.

/// Properties shared by all packets of conditional trace.
struct ConditionalPacket {
    static constexpr std::string_view needs = "an ETMv4 that traces conditional instructions (TRCCONFIGR.COND)";
    static constexpr bool allowed(const Config& c) { return c.conditional != 0 && !c.ete(); }
    bool operator==(const ConditionalPacket&) const = default;
};

/// A conditional instruction and its key.
struct ConditionalInstructionF1 : ConditionalPacket {
    static constexpr PacketInfo info{
        .name = "CONDITIONAL-INSTRUCTION-F1", .section = "12", .value = 0x6c, .mask = 0xff, .max_bytes = 6};
    std::uint32_t key{};

    static void fields(auto& w, auto& p, const Config&) {
        w.byte(fixed<7, 0>(0x6c));
        w.field("key", p.key, number_field);
    }
    bool operator==(const ConditionalInstructionF1&) const = default;
};

/// One conditional instruction (TT 0: next key, 1: same key), or two (2).
struct ConditionalInstructionF2 : ConditionalPacket {
    static constexpr PacketInfo info{
        .name = "CONDITIONAL-INSTRUCTION-F2", .section = "12", .value = 0x40, .mask = 0xfc, .max_bytes = 1};
    static constexpr bool is_header(std::uint8_t b) { return b >= 0x40 && b <= 0x42; }
    std::uint8_t kind{};

    static void fields(auto& w, auto& p, const Config&) { w.field("TT", p.kind, HeaderField{0x40, 7U}); }
    bool operator==(const ConditionalInstructionF2&) const = default;
};

/// Several conditional instructions: `count`, and one more with F.
struct ConditionalInstructionF3 : ConditionalPacket {
    static constexpr PacketInfo info{
        .name = "CONDITIONAL-INSTRUCTION-F3", .section = "12", .value = 0x6d, .mask = 0xff, .max_bytes = 2};
    std::uint8_t count{};
    bool final_differs{};

    static void fields(auto& w, auto& p, const Config&) {
        w.byte(fixed<7, 0>(0x6d));
        w.byte(wire::should_be<7>(0), bits<6, 1>("count", p.count), bits<0>("F", p.final_differs));
    }
    bool operator==(const ConditionalInstructionF3&) const = default;
};

/// Keys begin anew.
struct ConditionalFlush : ConditionalPacket {
    static constexpr PacketInfo info{
        .name = "CONDITIONAL-FLUSH", .section = "12", .value = 0x43, .mask = 0xff, .max_bytes = 1};

    static void fields(auto& w, auto&, const Config&) { w.byte(fixed<7, 0>(0x43)); }
    bool operator==(const ConditionalFlush&) const = default;
};

/// The result of one conditional instruction.
struct ConditionalResultF1 : ConditionalPacket {
    static constexpr PacketInfo info{
        .name = "CONDITIONAL-RESULT-F1", .section = "12", .value = 0x6e, .mask = 0xfe, .max_bytes = 7};
    KeyedResult result;
    bool ci0{};

    static void fields(auto& w, auto& p, const Config&) {
        w.byte(fixed<7, 1>(0x37), bits<0>("CI0", p.ci0));
        w.field("result", p.result, KeyedResultField{});
    }
    bool operator==(const ConditionalResultF1&) const = default;
};

/// Format 1 with two results.
struct ConditionalResultsF1 : ConditionalPacket {
    static constexpr PacketInfo info{
        .name = "CONDITIONAL-RESULTS-F1", .section = "12", .value = 0x68, .mask = 0xfc, .max_bytes = 13};
    KeyedResult first, second;
    bool ci1{}, ci0{};

    static void fields(auto& w, auto& p, const Config&) {
        w.byte(fixed<7, 2>(0x1a), bits<1>("CI1", p.ci1), bits<0>("CI0", p.ci0));
        w.field("first", p.first, KeyedResultField{});
        w.field("second", p.second, KeyedResultField{});
    }
    bool operator==(const ConditionalResultsF1&) const = default;
};

/// Format 2: bits 1:0 are the result token; the key advances by 2 if bit 2 is set, otherwise by 1.
struct ConditionalResultF2 : ConditionalPacket {
    static constexpr PacketInfo info{
        .name = "CONDITIONAL-RESULT-F2", .section = "12", .value = 0x48, .mask = 0xf8, .max_bytes = 1};
    static constexpr bool is_header(std::uint8_t b) { return (b & 0xf8U) == 0x48 && (b & 3U) != 3; }
    std::uint8_t kind{};

    static void fields(auto& w, auto& p, const Config&) { w.field("KTT", p.kind, HeaderField{0x48, 0x77U}); }
    [[nodiscard]] constexpr unsigned token() const { return kind & 3U; }
    [[nodiscard]] constexpr unsigned key_increment() const { return (kind & 4U) != 0 ? 2 : 1; }
    bool operator==(const ConditionalResultF2&) const = default;
};

/// Format 3: twelve bits of result tokens.
struct ConditionalResultF3 : ConditionalPacket {
    static constexpr PacketInfo info{
        .name = "CONDITIONAL-RESULT-F3", .section = "12", .value = 0x50, .mask = 0xf0, .max_bytes = 2};
    std::uint8_t tokens_11_8{}, tokens_7_0{};

    static void fields(auto& w, auto& p, const Config&) {
        w.byte(fixed<7, 4>(5), bits<3, 0>("tokens[11:8]", p.tokens_11_8));
        w.byte(bits<7, 0>("tokens[7:0]", p.tokens_7_0));
    }
    bool operator==(const ConditionalResultF3&) const = default;
};

/// Format 4: a result token; the key stays.
struct ConditionalResultF4 : ConditionalPacket {
    static constexpr PacketInfo info{
        .name = "CONDITIONAL-RESULT-F4", .section = "12", .value = 0x44, .mask = 0xfc, .max_bytes = 1};
    static constexpr bool is_header(std::uint8_t b) { return b >= 0x44 && b <= 0x46; }
    std::uint8_t token{};

    static void fields(auto& w, auto& p, const Config&) { w.field("TT", p.token, HeaderField{0x44, 7U}); }
    bool operator==(const ConditionalResultF4&) const = default;
};

/// A place that also exists in the data trace stream, by number.
struct NumberedDataSyncMarker {
    static constexpr PacketInfo info{
        .name = "NUMBERED-DATA-SYNC-MARKER", .section = "13", .value = 0x20, .mask = 0xf8, .max_bytes = 1};
    static constexpr std::string_view needs = "an ETMv4 that traces data (TRCCONFIGR.DA or DV)";
    static constexpr bool allowed(const Config& c) { return c.data_trace && !c.ete(); }
    std::uint8_t number{};

    static void fields(auto& w, auto& p, const Config&) { w.byte(fixed<7, 3>(4), bits<2, 0>("number", p.number)); }
    bool operator==(const NumberedDataSyncMarker&) const = default;
};

/// A place that also exists in the data trace stream.
struct UnnumberedDataSyncMarker {
    static constexpr PacketInfo info{
        .name = "UNNUMBERED-DATA-SYNC-MARKER", .section = "13", .value = 0x28, .mask = 0xf8, .max_bytes = 1};
    static constexpr bool is_header(std::uint8_t b) { return b >= 0x28 && b <= 0x2c; }
    static constexpr std::string_view needs = NumberedDataSyncMarker::needs;
    static constexpr bool allowed(const Config& c) { return NumberedDataSyncMarker::allowed(c); }
    std::uint8_t value{};

    static void fields(auto& w, auto& p, const Config&) { w.field("value", p.value, HeaderField{0x28, 0x1fU}); }
    bool operator==(const UnnumberedDataSyncMarker&) const = default;
};

// ---- all of them

/// Packets identified by their first byte, the most frequent first.
using HeaderPackets = wire::PacketList<
    Atom, ShortAddress, LongAddress, ExactMatchAddress, CycleCountF3, CycleCountF2, Exception, AddressWithContext,
    Context, Timestamp, TraceOn, TraceInfo, ExceptionReturn, TimestampMarker, CycleCountF1, Commit, CancelF1,
    Mispredict, CancelF2, CancelF3, Q, ShortSourceAddress, LongSourceAddress, ExactMatchSourceAddress, Event, Ignore,
    TransactionStart, TransactionCommit, Instrumentation, FunctionReturn, ConditionalInstructionF1,
    ConditionalInstructionF2, ConditionalInstructionF3, ConditionalFlush, ConditionalResultF1, ConditionalResultsF1,
    ConditionalResultF2, ConditionalResultF3, ConditionalResultF4, NumberedDataSyncMarker, UnnumberedDataSyncMarker>;
/// Packets that begin with 0, identified by their second byte.
using ExtensionPackets = wire::PacketList<ASync, Discard, Overflow, BranchFutureFlush>;

namespace detail {
template <class A, class B>
struct Joined;
template <class... A, class... B>
struct Joined<wire::PacketList<A...>, wire::PacketList<B...>> {
    using List = wire::PacketList<A..., B...>;
    using Variant = std::variant<A..., B...>;
};
}  // namespace detail
using Packets = detail::Joined<HeaderPackets, ExtensionPackets>::List;
using Packet = detail::Joined<HeaderPackets, ExtensionPackets>::Variant;

/// Packets that later layers treat alike.
template <class P, class... Which>
concept OneOf = (std::is_same_v<P, Which> || ...);
template <class P>
concept AddressPacket = OneOf<P, ShortAddress, LongAddress, ExactMatchAddress>;
template <class P>
concept SourceAddressPacket = OneOf<P, ShortSourceAddress, LongSourceAddress, ExactMatchSourceAddress>;
template <class P>
concept CycleCountPacket = OneOf<P, CycleCountF1, CycleCountF2, CycleCountF3>;

/// Whether a packet may have this first byte (for an extension packet: second).
template <class P>
[[nodiscard]] constexpr bool is_header(std::uint8_t byte) {
    if constexpr (requires { P::is_header(byte); })
        return P::is_header(byte);
    else
        return (byte & P::info.mask) == P::info.value;
}

/// Whether a trace unit of this configuration has such a packet.
template <class P>
[[nodiscard]] WM_INLINE constexpr bool is_allowed(const Config& config) {
    if constexpr (requires { P::allowed(config); })
        return P::allowed(config);
    else
        return true;
}

/// Which packet each first byte starts: an index into HeaderPackets, or wire::reserved_header. Does not compile if two
/// packets claim one byte.
consteval std::array<std::uint8_t, 256> make_header_table() {
    std::array<std::uint8_t, 256> table{};
    table.fill(wire::reserved_header);
    std::uint8_t index = 0;
    HeaderPackets::for_each([&]<class P>() {
        for (unsigned byte = 0; byte < 256; ++byte)
            if (is_header<P>(static_cast<std::uint8_t>(byte))) {
                if (table[byte] != wire::reserved_header) throw "two packets claim the same header byte";
                table[byte] = index;
            }
        ++index;
    });
    return table;
}
inline constexpr std::array<std::uint8_t, 256> header_table = make_header_table();

consteval unsigned count_reserved_headers() {
    unsigned count = 0;
    for (const std::uint8_t entry : header_table) count += entry == wire::reserved_header;
    return count;
}
static_assert(count_reserved_headers() == 42 + 1, "section 2 lists 42 reserved headers; 0 is the extension header");

}  // namespace waymark::etm4
