/// Registers of the Debug and Profiling Unit, field by field (docs/spec/dpu.md, section 3). Each is described once: one
/// function names its fields, and reading, writing, printing and checking use it. Offsets come from a later generation
/// of the platform; codes of multi-bit fields are Waymark's own, since the published text omits them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "waymark/core/registers.h"
#include "waymark/core/wire.h"
#include "waymark/dpu/format.h"

namespace waymark::dpu {

/// The accesses that software may make to a register (3.1).
enum class Permission : std::uint8_t { read_write, read_only, write_1_to_clear };

// ---- codes of fields (3.2 to 3.4)

/// DP_CR.TIDCM: which IDs must equal the reference.
enum class IdCompare : std::uint8_t { neither, program, data, both };
/// DP_CR.DETB, DECxy: the effect of a trace or counter event.
enum class Action : std::uint8_t { none, line_0, line_1, debug_request };
/// TDMP, TENMP, CEGP: the context in which an event counts; all except `any` also require id_match.
enum class Qualifier : std::uint8_t { any, user_match, supervisor_match, match };
/// TDM, TENM: the event that disables or enables. Codes 10 to 14 are reserved and never occur.
enum class Selector : std::uint8_t {
    none,
    edca0,
    edca1,
    edca2,
    edca3,
    edca4,
    edca5,
    edcd,
    mark,
    debugev,
    immediate = 15
};
/// CMODE. Codes 2 and 3 are reserved and treated as one_shot.
enum class CounterMode : std::uint8_t { one_shot, trace };
/// DP_TC.VTBWM. Code 3 is reserved and treated as overwrite.
enum class VtbMode : std::uint8_t { overwrite, single_address, trace_event_request };
/// DP_TC.NXMODE, an extension of Waymark.
enum class NexusMode : std::uint8_t { off, mirror, raw, only };

// ---- registers

/// DP_CR, the control register.
struct DpCr {
    static constexpr std::string_view name = "DP_CR", title = "control", section = "3.2";
    static constexpr std::uint32_t offset = 0x00;
    static constexpr Permission access = Permission::read_write;

    std::uint8_t unused_31_30{}, tidcm{}, isedca5{}, isedca4{}, isedca3{}, isedca2{}, isedca1{}, isedca0{}, eis{};
    std::uint8_t detb{}, decb2{}, decb1{}, decb0{}, deca2{}, deca1{}, deca0{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 30>("reserved[31:30]", r.unused_31_30), bits<29, 28>("TIDCM", r.tidcm),
               bits<27, 26>("ISEDCA5", r.isedca5), bits<25, 24>("ISEDCA4", r.isedca4),
               bits<23, 22>("ISEDCA3", r.isedca3), bits<21, 20>("ISEDCA2", r.isedca2),
               bits<19, 18>("ISEDCA1", r.isedca1), bits<17, 16>("ISEDCA0", r.isedca0), bits<15, 14>("EIS", r.eis),
               bits<13, 12>("DETB", r.detb), bits<11, 10>("DECB2", r.decb2), bits<9, 8>("DECB1", r.decb1),
               bits<7, 6>("DECB0", r.decb0), bits<5, 4>("DECA2", r.deca2), bits<3, 2>("DECA1", r.deca1),
               bits<1, 0>("DECA0", r.deca0));
    }
    bool operator==(const DpCr&) const = default;
};

/// DP_SR, the status register.
struct DpSr {
    static constexpr std::string_view name = "DP_SR", title = "status", section = "3.2";
    static constexpr std::uint32_t offset = 0x04;
    static constexpr Permission access = Permission::read_only;

    std::uint32_t unused_31_7{};
    bool twba{}, encb2{}, encb1{}, encb0{}, enca2{}, enca1{}, enca0{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 7>("reserved[31:7]", r.unused_31_7), bits<6>("TWBA", r.twba), bits<5>("ENCB2", r.encb2),
               bits<4>("ENCB1", r.encb1), bits<3>("ENCB0", r.encb0), bits<2>("ENCA2", r.enca2),
               bits<1>("ENCA1", r.enca1), bits<0>("ENCA0", r.enca0));
    }
    bool operator==(const DpSr&) const = default;
};

/// DP_MR, the monitor register: why a debug request or interrupt is pending. TLOST and TWRAP are extensions of Waymark.
struct DpMr {
    static constexpr std::string_view name = "DP_MR", title = "monitor", section = "3.2";
    static constexpr std::uint32_t offset = 0x08;
    static constexpr Permission access = Permission::write_1_to_clear;

    std::uint32_t unused_31_12{};
    bool tlost{}, twrap{}, tbf{}, dra{}, drn{}, drtb{}, drcb2{}, drcb1{}, drcb0{}, drca2{}, drca1{}, drca0{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 12>("reserved[31:12]", r.unused_31_12), bits<11>("TLOST", r.tlost), bits<10>("TWRAP", r.twrap),
               bits<9>("TBF", r.tbf), bits<8>("DRA", r.dra), bits<7>("DRN", r.drn), bits<6>("DRTB", r.drtb),
               bits<5>("DRCB2", r.drcb2), bits<4>("DRCB1", r.drcb1), bits<3>("DRCB0", r.drcb0),
               bits<2>("DRCA2", r.drca2), bits<1>("DRCA1", r.drca1), bits<0>("DRCA0", r.drca0));
    }
    bool operator==(const DpMr&) const = default;
};

namespace register_tags {
#define WM_DPU_REGISTER_TAG(Type, Name, Title, Section, Offset)                          \
    struct Type {                                                                        \
        static constexpr std::string_view name = Name, title = Title, section = Section; \
        static constexpr std::uint32_t offset = Offset;                                  \
    }
WM_DPU_REGISTER_TAG(Rpid, "DP_RPID", "reference program ID", "3.2", 0x0c);
WM_DPU_REGISTER_TAG(Rdid, "DP_RDID", "reference data ID", "3.2", 0x10);
WM_DPU_REGISTER_TAG(Tac, "DP_TAC", "triad A control", "3.3", 0x20);
WM_DPU_REGISTER_TAG(Tbc, "DP_TBC", "triad B control", "3.3", 0x24);
WM_DPU_REGISTER_TAG(Ca0c, "DP_CA0C", "counter A0 control", "3.3", 0x2c);
WM_DPU_REGISTER_TAG(Ca0v, "DP_CA0V", "counter A0 value", "3.3", 0x30);
WM_DPU_REGISTER_TAG(Ca1c, "DP_CA1C", "counter A1 control", "3.3", 0x34);
WM_DPU_REGISTER_TAG(Ca1v, "DP_CA1V", "counter A1 value", "3.3", 0x38);
WM_DPU_REGISTER_TAG(Ca2c, "DP_CA2C", "counter A2 control", "3.3", 0x3c);
WM_DPU_REGISTER_TAG(Ca2v, "DP_CA2V", "counter A2 value", "3.3", 0x40);
WM_DPU_REGISTER_TAG(Cb0c, "DP_CB0C", "counter B0 control", "3.3", 0x54);
WM_DPU_REGISTER_TAG(Cb0v, "DP_CB0V", "counter B0 value", "3.3", 0x58);
WM_DPU_REGISTER_TAG(Cb1c, "DP_CB1C", "counter B1 control", "3.3", 0x5c);
WM_DPU_REGISTER_TAG(Cb1v, "DP_CB1V", "counter B1 value", "3.3", 0x60);
WM_DPU_REGISTER_TAG(Cb2c, "DP_CB2C", "counter B2 control", "3.3", 0x64);
WM_DPU_REGISTER_TAG(Cb2v, "DP_CB2V", "counter B2 value", "3.3", 0x68);
WM_DPU_REGISTER_TAG(Tsa, "DP_TSA", "first line of the trace buffer", "3.4", 0x80);
WM_DPU_REGISTER_TAG(Tea, "DP_TEA", "last line of the trace buffer", "3.4", 0x84);
WM_DPU_REGISTER_TAG(Ter, "DP_TER", "address of the trace event request", "3.4", 0x88);
WM_DPU_REGISTER_TAG(Tw, "DP_TW", "next line to be written", "3.4", 0x8c);
WM_DPU_REGISTER_TAG(Td, "DP_TD", "user data", "3.4", 0x90);
#undef WM_DPU_REGISTER_TAG
}  // namespace register_tags

/// A register that is a single number in bits Hi to Lo.
template <class Tag, unsigned Hi, unsigned Lo>
struct NumberRegister {
    static constexpr std::string_view name = Tag::name, title = Tag::title, section = Tag::section;
    static constexpr std::uint32_t offset = Tag::offset;
    static constexpr Permission access = Permission::read_write;

    std::uint32_t unused_high{}, value{}, unused_low{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        if constexpr (Hi == 31 && Lo == 0)
            w.word(bits<31, 0>("value", r.value));
        else if constexpr (Hi == 31)
            w.word(bits<31, Lo>("value", r.value), bits<Lo - 1, 0>("reserved[4:0]", r.unused_low));
        else
            w.word(bits<31, Hi + 1>(Hi == 30 ? "reserved[31]" : "reserved[31:8]", r.unused_high),
                   bits<Hi, Lo>("value", r.value));
    }
    bool operator==(const NumberRegister&) const = default;
};

/// The layout of DP_TAC, DP_TBC and, without TCEN, of the control registers of single counters (3.3).
template <class Tag, bool Triad>
struct CounterControl {
    static constexpr std::string_view name = Tag::name, title = Tag::title, section = Tag::section;
    static constexpr std::uint32_t offset = Tag::offset;
    static constexpr Permission access = Permission::read_write;

    std::uint8_t unused_31_30{}, tdmp{}, tdm{}, unused_23_22{}, tenmp{}, tenm{}, unused_15_14{}, cegp{}, unused_11_9{};
    std::uint8_t ceg{}, cmode{};
    bool unused_3{}, tcen{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        // Only triads have the leading T.
        constexpr auto n = [](std::string_view triad) { return Triad ? triad : triad.substr(1); };
        w.word(bits<31, 30>("reserved[31:30]", r.unused_31_30), bits<29, 28>(n("TDMP"), r.tdmp),
               bits<27, 24>(n("TDM"), r.tdm), bits<23, 22>("reserved[23:22]", r.unused_23_22),
               bits<21, 20>(n("TENMP"), r.tenmp), bits<19, 16>(n("TENM"), r.tenm),
               bits<15, 14>("reserved[15:14]", r.unused_15_14), bits<13, 12>("CEGP", r.cegp),
               bits<11, 9>("reserved[11:9]", r.unused_11_9), bits<8, 4>("CEG", r.ceg),
               bits<3>("reserved[3]", r.unused_3), bits<2, 1>("CMODE", r.cmode),
               bits<0>(Triad ? "TCEN" : "reserved[0]", r.tcen));
    }
    bool operator==(const CounterControl&) const = default;
};

using DpRpid = NumberRegister<register_tags::Rpid, 7, 0>;
using DpRdid = NumberRegister<register_tags::Rdid, 7, 0>;
using DpTac = CounterControl<register_tags::Tac, true>;
using DpTbc = CounterControl<register_tags::Tbc, true>;
using DpCa0c = CounterControl<register_tags::Ca0c, false>;
using DpCa1c = CounterControl<register_tags::Ca1c, false>;
using DpCa2c = CounterControl<register_tags::Ca2c, false>;
using DpCb0c = CounterControl<register_tags::Cb0c, false>;
using DpCb1c = CounterControl<register_tags::Cb1c, false>;
using DpCb2c = CounterControl<register_tags::Cb2c, false>;
using DpCa0v = NumberRegister<register_tags::Ca0v, 30, 0>;
using DpCa1v = NumberRegister<register_tags::Ca1v, 30, 0>;
using DpCa2v = NumberRegister<register_tags::Ca2v, 30, 0>;
using DpCb0v = NumberRegister<register_tags::Cb0v, 30, 0>;
using DpCb1v = NumberRegister<register_tags::Cb1v, 30, 0>;
using DpCb2v = NumberRegister<register_tags::Cb2v, 30, 0>;
/// Addresses of whole lines: the value is the number of a line of 32 bytes.
using DpTsa = NumberRegister<register_tags::Tsa, 31, 5>;
using DpTea = NumberRegister<register_tags::Tea, 31, 5>;
using DpTer = NumberRegister<register_tags::Ter, 31, 0>;
using DpTw = NumberRegister<register_tags::Tw, 31, 5>;
using DpTd = NumberRegister<register_tags::Td, 31, 0>;

/// DP_TC, the trace control register. NXMODE, IDFLT, CTXEN, UDEN and TIDS are extensions of Waymark.
struct DpTc {
    static constexpr std::string_view name = "DP_TC", title = "trace control", section = "3.4";
    static constexpr std::uint32_t offset = 0x7c;
    static constexpr Permission access = Permission::read_write;

    std::uint8_t unused_31_26{}, nxmode{}, unused_23_22{}, global{}, burst_size{}, unused_15_13{}, vtbwm{}, tmode{};
    bool prov{}, unused_18{}, tmpdis{}, idflt{}, ctxen{}, uden{}, sample{}, tids{}, en{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 26>("reserved[31:26]", r.unused_31_26), bits<25, 24>("NXMODE", r.nxmode),
               bits<23, 22>("reserved[23:22]", r.unused_23_22), bits<21>("PROV", r.prov),
               bits<20, 19>("GLOBAL", r.global), bits<18>("reserved[18]", r.unused_18),
               bits<17, 16>("BURST-SIZE", r.burst_size), bits<15, 13>("reserved[15:13]", r.unused_15_13),
               bits<12>("TMPDIS", r.tmpdis), bits<11>("IDFLT", r.idflt), bits<10>("CTXEN", r.ctxen),
               bits<9, 8>("VTBWM", r.vtbwm), bits<7>("UDEN", r.uden), bits<6>("SAMPLE", r.sample),
               bits<5>("TIDS", r.tids), bits<4, 1>("TMODE", r.tmode), bits<0>("EN", r.en));
    }
    [[nodiscard]] TraceMode mode() const { return static_cast<TraceMode>(tmode); }
    [[nodiscard]] VtbMode vtb_mode() const { return vtbwm == 3 ? VtbMode::overwrite : static_cast<VtbMode>(vtbwm); }
    [[nodiscard]] NexusMode nexus_mode() const { return static_cast<NexusMode>(nxmode); }
    /// Lines in a burst: 1, 2, 4 or 8.
    [[nodiscard]] unsigned burst_lines() const { return 1U << burst_size; }
    bool operator==(const DpTc&) const = default;
};

// ---- values and fields

using Field = RegisterField;

/// `TENM=0xf CEG=2`: the fields that are not 0; empty if none is.
[[nodiscard]] std::string to_text(const std::vector<Field>& fields);

/// All registers, in their state after reset (3.1).
struct Registers {
    DpCr cr;
    DpSr sr;
    DpMr mr;
    DpRpid rpid;
    DpRdid rdid;
    DpTac tac;
    DpTbc tbc;
    DpCa0c ca0c;
    DpCa0v ca0v;
    DpCa1c ca1c;
    DpCa1v ca1v;
    DpCa2c ca2c;
    DpCa2v ca2v;
    DpCb0c cb0c;
    DpCb0v cb0v;
    DpCb1c cb1c;
    DpCb1v cb1v;
    DpCb2c cb2c;
    DpCb2v cb2v;
    DpTc tc;
    DpTsa tsa;
    DpTea tea;
    DpTer ter;
    DpTw tw;
    DpTd td;

    /// Calls `f(register)` with every register, in order of their offsets.
    static constexpr void for_each(auto& self, auto&& f) {
        f(self.cr), f(self.sr), f(self.mr), f(self.rpid), f(self.rdid), f(self.tac), f(self.tbc), f(self.ca0c);
        f(self.ca0v), f(self.ca1c), f(self.ca1v), f(self.ca2c), f(self.ca2v), f(self.cb0c), f(self.cb0v), f(self.cb1c);
        f(self.cb1v), f(self.cb2c), f(self.cb2v), f(self.tc), f(self.tsa), f(self.tea), f(self.ter), f(self.tw);
        f(self.td);
    }

    /// Properties of a register that do not depend on its value.
    struct About {
        std::string_view name, title, section;
        std::uint32_t offset{};
        Permission access{};
    };
    /// The register with this name, ignoring case, with or without `DP_`; nullopt if there is none.
    [[nodiscard]] static std::optional<About> find(std::string_view name);
    [[nodiscard]] static std::optional<About> find(std::uint32_t offset);
    /// All names, `DP_CR, DP_SR, …`, for a message.
    [[nodiscard]] static std::string names();

    /// Sets the register at this offset; false if there is none.
    bool set(std::uint32_t offset, std::uint32_t value);
    /// The value of the register at this offset; nullopt if there is none.
    [[nodiscard]] std::optional<std::uint32_t> get(std::uint32_t offset) const;
    /// All fields of the register at this offset; empty if there is none.
    [[nodiscard]] std::vector<Field> fields(std::uint32_t offset) const;

    bool operator==(const Registers&) const = default;
};

/// The error in writing this value to this register, regardless of the unit's state: a sentence that names the field
/// and says what to write instead. Empty if there is none. Errors: reserved bits and codes, no such register, read
/// only.
[[nodiscard]] std::string wrong_value(std::uint32_t offset, std::uint32_t value);

}  // namespace waymark::dpu
