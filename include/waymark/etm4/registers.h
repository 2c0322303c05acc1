/// Registers of an ETMv4 or ETE trace unit, field by field (docs/spec/etm4-registers.md, section 1; for registers that
/// decide how bytes are read: docs/spec/etm4.md, section 1). Each is described once: one function names its fields, and
/// reading, writing, printing and checking use it. A field whose meaning differs between ETMv4 and ETE has one name for
/// both.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include "waymark/core/registers.h"
#include "waymark/core/wire.h"

namespace waymark::etm4 {

using wire::bits;

/// A text as an argument of a template.
template <std::size_t Length>
struct Literal {
    // NOLINTNEXTLINE(google-explicit-constructor): made from a string literal.
    consteval Literal(const char (&text)[Length]) { std::copy_n(text, Length, value); }
    [[nodiscard]] constexpr std::string_view view() const { return {value, Length - 1}; }
    char value[Length]{};
};

/// What registers have beside their fields: offset, published name and title; for several registers of one kind, their
/// number, and their distance in bytes if it is not their size.
template <unsigned Offset, Literal Name, Literal Title, unsigned Count = 1, unsigned Bytes = 4, unsigned Stride = Bytes>
struct TraceRegister {
    static constexpr std::string_view name = Name.view(), title = Title.view();
    static constexpr unsigned offset = Offset, count = Count, stride = Stride, bytes = Bytes;
};

/// Registers are equal if all their bits are.
template <class Register>
requires requires { Register::offset, Register::stride; }
[[nodiscard]] constexpr bool operator==(const Register& a, const Register& b) { return to_value(a) == to_value(b); }

/// A register that is one field.
template <class Where, Literal Field = "value">
struct WholeRegister : Where {
    std::conditional_t<Where::bytes == 8, std::uint64_t, std::uint32_t> value{};

    static void fields(auto& w, auto& r) {
        if constexpr (Where::bytes == 8)
            w.doubleword(bits<63, 0>(Field.view(), r.value));
        else
            w.word(bits<31, 0>(Field.view(), r.value));
    }
};

/// One event.
template <class Where>
struct OneEvent : Where {
    std::uint32_t unused_31_8{};
    std::uint8_t unused_6_5{}, sel{};
    bool type{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 8>("reserved[31:8]", r.unused_31_8), bits<7>("EVENT.TYPE", r.type),
               bits<6, 5>("reserved[6:5]", r.unused_6_5), bits<4, 0>("EVENT.SEL", r.sel));
    }
};

/// Ranges of address comparators, and whether they are meant or all code beside them.
template <class Where>
struct RangeSelection : Where {
    std::uint32_t unused_31_9{};
    std::uint8_t range{};
    bool mode{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 9>("reserved[31:9]", r.unused_31_9), bits<8>("MODE", r.mode), bits<7, 0>("RANGE", r.range));
    }
};

/// Ranges of address comparators that are included and excluded.
template <class Where>
struct IncludedRanges : Where {
    std::uint8_t unused_31_24{}, exclude{}, unused_15_8{}, include{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 24>("reserved[31:24]", r.unused_31_24), bits<23, 16>("EXCLUDE", r.exclude),
               bits<15, 8>("reserved[15:8]", r.unused_15_8), bits<7, 0>("INCLUDE", r.include));
    }
};

/// A value of a counter.
template <class Where>
struct CounterValue : Where {
    std::uint16_t unused_31_16{}, value{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 16>("reserved[31:16]", r.unused_31_16), bits<15, 0>("VALUE", r.value));
    }
};

/// Bytes of identifier comparators that are ignored: a field for each comparator, bit m for byte m.
template <class Where>
struct IgnoredBytes : Where {
    std::uint8_t comp3{}, comp2{}, comp1{}, comp0{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 24>("COMP3", r.comp3), bits<23, 16>("COMP2", r.comp2), bits<15, 8>("COMP1", r.comp1),
               bits<7, 0>("COMP0", r.comp0));
    }
};

struct Trcprgctlr : TraceRegister<0x004, "TRCPRGCTLR", "programming control"> {
    std::uint32_t unused_31_1{};
    bool enable{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 1>("reserved[31:1]", r.unused_31_1), bits<0>("EN", r.enable));
    }
};

/// ETMv4 only.
struct Trcprocselr : TraceRegister<0x008, "TRCPROCSELR", "processor select"> {
    std::uint32_t unused_31_5{};
    std::uint8_t procsel{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 5>("reserved[31:5]", r.unused_31_5), bits<4, 0>("PROCSEL", r.procsel));
    }
};

/// Read-only.
struct Trcstatr : TraceRegister<0x00c, "TRCSTATR", "status"> {
    std::uint32_t unused_31_2{};
    bool pmstable{}, idle{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 2>("reserved[31:2]", r.unused_31_2), bits<1>("PMSTABLE", r.pmstable), bits<0>("IDLE", r.idle));
    }
};

/// Section 1 of docs/spec/etm4.md.
struct Trcconfigr : TraceRegister<0x010, "TRCCONFIGR", "trace configuration"> {
    std::uint16_t unused_31_19{};
    std::uint8_t qe{}, cond{}, instp0{};
    bool ito{}, dv{}, da{}, vmidopt{}, rs{}, ts{}, vmid{}, cid{}, unused_5{}, cci{}, bb{}, one{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 19>("reserved[31:19]", r.unused_31_19), bits<18>("ITO", r.ito), bits<17>("DV", r.dv),
               bits<16>("DA", r.da), bits<15>("VMIDOPT", r.vmidopt), bits<14, 13>("QE", r.qe), bits<12>("RS", r.rs),
               bits<11>("TS", r.ts), bits<10, 8>("COND", r.cond), bits<7>("VMID", r.vmid), bits<6>("CID", r.cid),
               bits<5>("reserved[5]", r.unused_5), bits<4>("CCI", r.cci), bits<3>("BB", r.bb),
               bits<2, 1>("INSTP0", r.instp0), bits<0>("RES1", r.one));
    }
};

/// Implementation defined.
using Trcauxctlr = WholeRegister<TraceRegister<0x018, "TRCAUXCTLR", "auxiliary control">>;

struct Trceventctl0r : TraceRegister<0x020, "TRCEVENTCTL0R", "event control 0"> {
    std::uint8_t unused_30_29{}, sel3{}, unused_22_21{}, sel2{}, unused_14_13{}, sel1{}, unused_6_5{}, sel0{};
    bool type3{}, type2{}, type1{}, type0{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31>("EVENT3.TYPE", r.type3), bits<30, 29>("reserved[30:29]", r.unused_30_29),
               bits<28, 24>("EVENT3.SEL", r.sel3), bits<23>("EVENT2.TYPE", r.type2),
               bits<22, 21>("reserved[22:21]", r.unused_22_21), bits<20, 16>("EVENT2.SEL", r.sel2),
               bits<15>("EVENT1.TYPE", r.type1), bits<14, 13>("reserved[14:13]", r.unused_14_13),
               bits<12, 8>("EVENT1.SEL", r.sel1), bits<7>("EVENT0.TYPE", r.type0),
               bits<6, 5>("reserved[6:5]", r.unused_6_5), bits<4, 0>("EVENT0.SEL", r.sel0));
    }
};

struct Trceventctl1r : TraceRegister<0x024, "TRCEVENTCTL1R", "event control 1"> {
    std::uint32_t unused_31_14{};
    std::uint8_t unused_10_5{}, insten{};
    bool oe{}, lpoverride{}, atb{}, dataen{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 14>("reserved[31:14]", r.unused_31_14), bits<13>("OE", r.oe),
               bits<12>("LPOVERRIDE", r.lpoverride), bits<11>("ATB", r.atb),
               bits<10, 5>("reserved[10:5]", r.unused_10_5), bits<4>("DATAEN", r.dataen),
               bits<3, 0>("INSTEN", r.insten));
    }
};

/// ETE only.
struct Trcrsr : TraceRegister<0x028, "TRCRSR", "resources status"> {
    std::uint32_t unused_31_13{};
    std::uint8_t event{}, unused_7_4{}, extin{};
    bool ta{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 13>("reserved[31:13]", r.unused_31_13), bits<12>("TA", r.ta), bits<11, 8>("EVENT", r.event),
               bits<7, 4>("reserved[7:4]", r.unused_7_4), bits<3, 0>("EXTIN", r.extin));
    }
};

struct Trcstallctlr : TraceRegister<0x02c, "TRCSTALLCTLR", "stall control"> {
    std::uint32_t unused_31_14{};
    std::uint8_t datadiscard{}, unused_7_4{}, level{};
    bool nooverflow{}, instpriority{}, dstall{}, istall{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 14>("reserved[31:14]", r.unused_31_14), bits<13>("NOOVERFLOW", r.nooverflow),
               bits<12, 11>("DATADISCARD", r.datadiscard), bits<10>("INSTPRIORITY", r.instpriority),
               bits<9>("DSTALL", r.dstall), bits<8>("ISTALL", r.istall), bits<7, 4>("reserved[7:4]", r.unused_7_4),
               bits<3, 0>("LEVEL", r.level));
    }
};

using Trctsctlr = OneEvent<TraceRegister<0x030, "TRCTSCTLR", "timestamp control">>;

/// PERIOD: A-sync every 2^PERIOD bytes, 0 never.
struct Trcsyncpr : TraceRegister<0x034, "TRCSYNCPR", "synchronisation period"> {
    std::uint32_t unused_31_5{};
    std::uint8_t period{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 5>("reserved[31:5]", r.unused_31_5), bits<4, 0>("PERIOD", r.period));
    }
};

struct Trcccctlr : TraceRegister<0x038, "TRCCCCTLR", "cycle count control"> {
    std::uint32_t unused_31_12{};
    std::uint16_t threshold{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 12>("reserved[31:12]", r.unused_31_12), bits<11, 0>("THRESHOLD", r.threshold));
    }
};

using Trcbbctlr = RangeSelection<TraceRegister<0x03c, "TRCBBCTLR", "branch broadcast control">>;

struct Trctraceidr : TraceRegister<0x040, "TRCTRACEIDR", "trace ID"> {
    std::uint32_t unused_31_7{};
    std::uint8_t trace_id{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 7>("reserved[31:7]", r.unused_31_7), bits<6, 0>("TRACEID", r.trace_id));
    }
};

using Trcqctlr = RangeSelection<TraceRegister<0x044, "TRCQCTLR", "Q element control">>;

/// ETE only.
struct Trciteedcr : TraceRegister<0x048, "TRCITEEDCR", "instrumentation trace extension external debug control"> {
    std::uint32_t unused_31_7{};
    bool rl{}, s{}, ns{}, e3{}, e2{}, e1{}, e0{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 7>("reserved[31:7]", r.unused_31_7), bits<6>("RL", r.rl), bits<5>("S", r.s),
               bits<4>("NS", r.ns), bits<3>("E3", r.e3), bits<2>("E2", r.e2), bits<1>("E1", r.e1), bits<0>("E0", r.e0));
    }
};

struct Trcvictlr : TraceRegister<0x080, "TRCVICTLR", "ViewInst main control"> {
    std::uint8_t unused_31_27{}, exlevel_rl{}, exlevel_ns{}, exlevel_s{}, unused_15_12{}, unused_6_5{}, sel{};
    bool unused_23{}, trcerr{}, trcreset{}, ssstatus{}, unused_8{}, type{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 27>("reserved[31:27]", r.unused_31_27), bits<26, 24>("EXLEVEL_RL", r.exlevel_rl),
               bits<23>("reserved[23]", r.unused_23), bits<22, 20>("EXLEVEL_NS", r.exlevel_ns),
               bits<19, 16>("EXLEVEL_S", r.exlevel_s), bits<15, 12>("reserved[15:12]", r.unused_15_12),
               bits<11>("TRCERR", r.trcerr), bits<10>("TRCRESET", r.trcreset), bits<9>("SSSTATUS", r.ssstatus),
               bits<8>("reserved[8]", r.unused_8), bits<7>("EVENT.TYPE", r.type),
               bits<6, 5>("reserved[6:5]", r.unused_6_5), bits<4, 0>("EVENT.SEL", r.sel));
    }
};

using Trcviiectlr = IncludedRanges<TraceRegister<0x084, "TRCVIIECTLR", "ViewInst include and exclude control">>;

struct Trcvissctlr : TraceRegister<0x088, "TRCVISSCTLR", "ViewInst start and stop control"> {
    std::uint16_t stop{}, start{};

    static void fields(auto& w, auto& r) { w.word(bits<31, 16>("STOP", r.stop), bits<15, 0>("START", r.start)); }
};

struct Trcvipcssctlr : TraceRegister<0x08c, "TRCVIPCSSCTLR", "ViewInst start and stop by PE comparator inputs"> {
    std::uint8_t unused_31_24{}, stop{}, unused_15_8{}, start{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 24>("reserved[31:24]", r.unused_31_24), bits<23, 16>("STOP", r.stop),
               bits<15, 8>("reserved[15:8]", r.unused_15_8), bits<7, 0>("START", r.start));
    }
};

/// ETMv4 only.
struct Trcvdctlr : TraceRegister<0x0a0, "TRCVDCTLR", "ViewData main control"> {
    std::uint32_t unused_31_13{};
    std::uint8_t sprel{}, unused_6_5{}, sel{};
    bool trcexdata{}, tbi{}, pcrel{}, type{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 13>("reserved[31:13]", r.unused_31_13), bits<12>("TRCEXDATA", r.trcexdata),
               bits<11>("TBI", r.tbi), bits<10>("PCREL", r.pcrel), bits<9, 8>("SPREL", r.sprel),
               bits<7>("EVENT.TYPE", r.type), bits<6, 5>("reserved[6:5]", r.unused_6_5),
               bits<4, 0>("EVENT.SEL", r.sel));
    }
};

/// ETMv4 only.
struct Trcvdsacctlr : TraceRegister<0x0a4, "TRCVDSACCTLR", "ViewData include and exclude by single comparators"> {
    std::uint16_t exclude{}, include{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 16>("EXCLUDE", r.exclude), bits<15, 0>("INCLUDE", r.include));
    }
};

/// ETMv4 only.
using Trcvdarcctlr =
    IncludedRanges<TraceRegister<0x0a8, "TRCVDARCCTLR", "ViewData include and exclude by range comparators">>;

struct Trcseqevr : TraceRegister<0x100, "TRCSEQEVR", "sequencer state transition", 3> {
    std::uint16_t unused_31_16{};
    std::uint8_t unused_14_13{}, back_sel{}, unused_6_5{}, forward_sel{};
    bool back_type{}, forward_type{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 16>("reserved[31:16]", r.unused_31_16), bits<15>("B.TYPE", r.back_type),
               bits<14, 13>("reserved[14:13]", r.unused_14_13), bits<12, 8>("B.SEL", r.back_sel),
               bits<7>("F.TYPE", r.forward_type), bits<6, 5>("reserved[6:5]", r.unused_6_5),
               bits<4, 0>("F.SEL", r.forward_sel));
    }
};

using Trcseqrstevr = OneEvent<TraceRegister<0x118, "TRCSEQRSTEVR", "sequencer reset">>;

struct Trcseqstr : TraceRegister<0x11c, "TRCSEQSTR", "sequencer state"> {
    std::uint32_t unused_31_2{};
    std::uint8_t state{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 2>("reserved[31:2]", r.unused_31_2), bits<1, 0>("STATE", r.state));
    }
};

/// Number 0 has four selectors of 8 bits in ETMv4; in ETE each has one PMU event number, the low 16 bits.
struct Trcextinselr : TraceRegister<0x120, "TRCEXTINSELR", "external input select", 4> {
    std::uint8_t sel3{}, sel2{}, sel1{}, sel0{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 24>("SEL3", r.sel3), bits<23, 16>("SEL2", r.sel2), bits<15, 8>("SEL1", r.sel1),
               bits<7, 0>("SEL0", r.sel0));
    }
};

using Trccntrldvr = CounterValue<TraceRegister<0x140, "TRCCNTRLDVR", "counter reload value", 4>>;

struct Trccntctlr : TraceRegister<0x150, "TRCCNTCTLR", "counter control", 4> {
    std::uint16_t unused_31_18{};
    std::uint8_t unused_14_13{}, reload_sel{}, unused_6_5{}, count_sel{};
    bool chain{}, reload_self{}, reload_type{}, count_type{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 18>("reserved[31:18]", r.unused_31_18), bits<17>("CNTCHAIN", r.chain),
               bits<16>("RLDSELF", r.reload_self), bits<15>("RLDEVENT.TYPE", r.reload_type),
               bits<14, 13>("reserved[14:13]", r.unused_14_13), bits<12, 8>("RLDEVENT.SEL", r.reload_sel),
               bits<7>("CNTEVENT.TYPE", r.count_type), bits<6, 5>("reserved[6:5]", r.unused_6_5),
               bits<4, 0>("CNTEVENT.SEL", r.count_sel));
    }
};

using Trccntvr = CounterValue<TraceRegister<0x160, "TRCCNTVR", "counter value", 4>>;
using Trcidr8 = WholeRegister<TraceRegister<0x180, "TRCIDR8", "ID 8">, "MAXSPEC">;
using Trcidr9 = WholeRegister<TraceRegister<0x184, "TRCIDR9", "ID 9">, "NUMP0KEY">;
using Trcidr10 = WholeRegister<TraceRegister<0x188, "TRCIDR10", "ID 10">, "NUMP1KEY">;
using Trcidr11 = WholeRegister<TraceRegister<0x18c, "TRCIDR11", "ID 11">, "NUMP1SPC">;
using Trcidr12 = WholeRegister<TraceRegister<0x190, "TRCIDR12", "ID 12">, "NUMCONDKEY">;
using Trcidr13 = WholeRegister<TraceRegister<0x194, "TRCIDR13", "ID 13">, "NUMCONDSPC">;

struct Trcimspec0 : TraceRegister<0x1c0, "TRCIMSPEC0", "implementation specific 0"> {
    std::uint32_t unused_31_8{};
    std::uint8_t enable{}, support{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 8>("reserved[31:8]", r.unused_31_8), bits<7, 4>("EN", r.enable),
               bits<3, 0>("SUPPORT", r.support));
    }
};

using Trcimspec = WholeRegister<TraceRegister<0x1c4, "TRCIMSPEC", "implementation specific 1 to 7", 7>>;

/// Section 1 of docs/spec/etm4.md.
struct Trcidr0 : TraceRegister<0x1e0, "TRCIDR0", "ID 0"> {
    std::uint8_t tssize{}, unused_21_18{}, qsupp{}, condtype{}, numevent{}, trcdata{}, instp0{};
    bool unused_31{}, commtrans{}, commopt{}, tsmark{}, ite{}, trcexdata{}, qfilt{}, retstack{}, unused_8{}, trccci{},
        trccond{}, trcbb{}, one{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31>("reserved[31]", r.unused_31), bits<30>("COMMTRANS", r.commtrans),
               bits<29>("COMMOPT", r.commopt), bits<28, 24>("TSSIZE", r.tssize), bits<23>("TSMARK", r.tsmark),
               bits<22>("ITE", r.ite), bits<21, 18>("reserved[21:18]", r.unused_21_18),
               bits<17>("TRCEXDATA", r.trcexdata), bits<16, 15>("QSUPP", r.qsupp), bits<14>("QFILT", r.qfilt),
               bits<13, 12>("CONDTYPE", r.condtype), bits<11, 10>("NUMEVENT", r.numevent),
               bits<9>("RETSTACK", r.retstack), bits<8>("reserved[8]", r.unused_8), bits<7>("TRCCCI", r.trccci),
               bits<6>("TRCCOND", r.trccond), bits<5>("TRCBB", r.trcbb), bits<4, 3>("TRCDATA", r.trcdata),
               bits<2, 1>("INSTP0", r.instp0), bits<0>("RES1", r.one));
    }
};

/// TRCARCHMAJ of an ETE is 15: ask TRCDEVARCH.
struct Trcidr1 : TraceRegister<0x1e4, "TRCIDR1", "ID 1"> {
    std::uint16_t unused_23_12{};
    std::uint8_t designer{}, archmaj{}, archmin{}, revision{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 24>("DESIGNER", r.designer), bits<23, 12>("reserved[23:12]", r.unused_23_12),
               bits<11, 8>("TRCARCHMAJ", r.archmaj), bits<7, 4>("TRCARCHMIN", r.archmin),
               bits<3, 0>("REVISION", r.revision));
    }
};

struct Trcidr2 : TraceRegister<0x1e8, "TRCIDR2", "ID 2"> {
    std::uint8_t vmidopt{}, ccsize{}, dvsize{}, dasize{}, vmidsize{}, cidsize{}, iasize{};
    bool wfxmode{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31>("WFXMODE", r.wfxmode), bits<30, 29>("VMIDOPT", r.vmidopt), bits<28, 25>("CCSIZE", r.ccsize),
               bits<24, 20>("DVSIZE", r.dvsize), bits<19, 15>("DASIZE", r.dasize), bits<14, 10>("VMIDSIZE", r.vmidsize),
               bits<9, 5>("CIDSIZE", r.cidsize), bits<4, 0>("IASIZE", r.iasize));
    }
};

struct Trcidr3 : TraceRegister<0x1ec, "TRCIDR3", "ID 3"> {
    std::uint16_t ccitmin{};
    std::uint8_t numproc_low{}, exlevel_ns{}, exlevel_s{}, unused_15_14{}, numproc_high{};
    bool nooverflow{}, sysstall{}, stallctl{}, syncpr{}, trcerr{}, unused_23{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31>("NOOVERFLOW", r.nooverflow), bits<30, 28>("NUMPROC[2:0]", r.numproc_low),
               bits<27>("SYSSTALL", r.sysstall), bits<26>("STALLCTL", r.stallctl), bits<25>("SYNCPR", r.syncpr),
               bits<24>("TRCERR", r.trcerr), bits<23>("reserved[23]", r.unused_23),
               bits<22, 20>("EXLEVEL_NS", r.exlevel_ns), bits<19, 16>("EXLEVEL_S", r.exlevel_s),
               bits<15, 14>("reserved[15:14]", r.unused_15_14), bits<13, 12>("NUMPROC[4:3]", r.numproc_high),
               bits<11, 0>("CCITMIN", r.ccitmin));
    }
};

struct Trcidr4 : TraceRegister<0x1f0, "TRCIDR4", "ID 4"> {
    std::uint8_t numvmidc{}, numcidc{}, numsscc{}, numrspair{}, numpc{}, unused_11_9{}, numdvc{}, numacpairs{};
    bool suppdac{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 28>("NUMVMIDC", r.numvmidc), bits<27, 24>("NUMCIDC", r.numcidc),
               bits<23, 20>("NUMSSCC", r.numsscc), bits<19, 16>("NUMRSPAIR", r.numrspair),
               bits<15, 12>("NUMPC", r.numpc), bits<11, 9>("reserved[11:9]", r.unused_11_9),
               bits<8>("SUPPDAC", r.suppdac), bits<7, 4>("NUMDVC", r.numdvc), bits<3, 0>("NUMACPAIRS", r.numacpairs));
    }
};

/// Bit 31 is REDFUNCNTR in ETMv4, OE in ETE.
struct Trcidr5 : TraceRegister<0x1f4, "TRCIDR5", "ID 5"> {
    std::uint16_t numextin{};
    std::uint8_t numcntr{}, numseqstate{}, traceidsize{}, unused_15_12{}, numextinsel{};
    bool redfuncntr_oe{}, unused_24{}, lpoverride{}, atbtrig{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31>("REDFUNCNTR or OE", r.redfuncntr_oe), bits<30, 28>("NUMCNTR", r.numcntr),
               bits<27, 25>("NUMSEQSTATE", r.numseqstate), bits<24>("reserved[24]", r.unused_24),
               bits<23>("LPOVERRIDE", r.lpoverride), bits<22>("ATBTRIG", r.atbtrig),
               bits<21, 16>("TRACEIDSIZE", r.traceidsize), bits<15, 12>("reserved[15:12]", r.unused_15_12),
               bits<11, 9>("NUMEXTINSEL", r.numextinsel), bits<8, 0>("NUMEXTIN", r.numextin));
    }
};

struct Trcidr6 : TraceRegister<0x1f8, "TRCIDR6", "ID 6"> {
    std::uint32_t unused_31_3{};
    std::uint8_t exlevel_rl{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 3>("reserved[31:3]", r.unused_31_3), bits<2, 0>("EXLEVEL_RL", r.exlevel_rl));
    }
};

using Trcidr7 = WholeRegister<TraceRegister<0x1fc, "TRCIDR7", "ID 7">, "reserved">;

/// Selectors 2 to 31; 0 and 1 are fixed.
struct Trcrsctlr : TraceRegister<0x208, "TRCRSCTLR", "resource selection control", 30> {
    std::uint16_t unused_31_22{}, select{};
    std::uint8_t group{};
    bool pairinv{}, inv{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 22>("reserved[31:22]", r.unused_31_22), bits<21>("PAIRINV", r.pairinv), bits<20>("INV", r.inv),
               bits<19, 16>("GROUP", r.group), bits<15, 0>("SELECT", r.select));
    }
};

struct Trcssccr : TraceRegister<0x280, "TRCSSCCR", "single-shot comparator control", 8> {
    std::uint16_t sac{};
    std::uint8_t unused_31_25{}, arc{};
    bool rst{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 25>("reserved[31:25]", r.unused_31_25), bits<24>("RST", r.rst), bits<23, 16>("ARC", r.arc),
               bits<15, 0>("SAC", r.sac));
    }
};

struct Trcsscsr : TraceRegister<0x2a0, "TRCSSCSR", "single-shot comparator status", 8> {
    std::uint32_t unused_29_4{};
    bool status{}, pending{}, pc{}, dv{}, da{}, inst{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31>("STATUS", r.status), bits<30>("PENDING", r.pending),
               bits<29, 4>("reserved[29:4]", r.unused_29_4), bits<3>("PC", r.pc), bits<2>("DV", r.dv),
               bits<1>("DA", r.da), bits<0>("INST", r.inst));
    }
};

struct Trcsspcicr : TraceRegister<0x2c0, "TRCSSPCICR", "single-shot PE comparator input control", 8> {
    std::uint32_t unused_31_8{};
    std::uint8_t pc{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 8>("reserved[31:8]", r.unused_31_8), bits<7, 0>("PC", r.pc));
    }
};

/// Write-only; ETMv4 with a lock of its own.
struct Trcoslar : TraceRegister<0x300, "TRCOSLAR", "OS Lock access"> {
    std::uint32_t unused_31_1{};
    bool lock{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 1>("reserved[31:1]", r.unused_31_1), bits<0>("lock", r.lock));
    }
};

/// Read-only.
struct Trcoslsr : TraceRegister<0x304, "TRCOSLSR", "OS Lock status"> {
    std::uint32_t unused_31_5{};
    std::uint8_t oslm_high{};
    bool ntt{}, oslk{}, oslm_low{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 5>("reserved[31:5]", r.unused_31_5), bits<4, 3>("OSLM[2:1]", r.oslm_high),
               bits<2>("nTT", r.ntt), bits<1>("OSLK", r.oslk), bits<0>("OSLM[0]", r.oslm_low));
    }
};

/// ETMv4 only.
struct Trcpdcr : TraceRegister<0x310, "TRCPDCR", "power-down control"> {
    std::uint32_t unused_31_4{};
    std::uint8_t unused_2_0{};
    bool pu{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 4>("reserved[31:4]", r.unused_31_4), bits<3>("PU", r.pu),
               bits<2, 0>("reserved[2:0]", r.unused_2_0));
    }
};

/// Read-only.
struct Trcpdsr : TraceRegister<0x314, "TRCPDSR", "power-down status"> {
    std::uint32_t unused_31_6{};
    std::uint8_t unused_4_2{};
    bool oslk{}, stickypd{}, power{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 6>("reserved[31:6]", r.unused_31_6), bits<5>("OSLK", r.oslk),
               bits<4, 2>("reserved[4:2]", r.unused_4_2), bits<1>("STICKYPD", r.stickypd), bits<0>("POWER", r.power));
    }
};

struct Trcacvr : TraceRegister<0x400, "TRCACVR", "address comparator value", 16, 8> {
    std::uint64_t address{};

    static void fields(auto& w, auto& r) { w.doubleword(bits<63, 0>("ADDRESS", r.address)); }
};

/// Bits 19:16: DATASIZE and DATAMATCH in ETMv4; EXLEVEL_RL in bits 18:16 of an ETE with RME.
struct Trcacatr : TraceRegister<0x480, "TRCACATR", "address comparator access type", 16, 8> {
    std::uint64_t unused_63_22{};
    std::uint8_t high{}, exlevel_ns{}, exlevel_s{}, context{}, contexttype{}, type{};
    bool dtbm{}, datarange{}, unused_15{}, unused_7{};

    static void fields(auto& w, auto& r) {
        w.doubleword(bits<63, 22>("reserved[63:22]", r.unused_63_22), bits<21>("DTBM", r.dtbm),
                     bits<20>("DATARANGE", r.datarange), bits<19, 16>("DATASIZE, DATAMATCH or EXLEVEL_RL", r.high),
                     bits<15>("reserved[15]", r.unused_15), bits<14, 12>("EXLEVEL_NS", r.exlevel_ns),
                     bits<11, 8>("EXLEVEL_S", r.exlevel_s), bits<7>("reserved[7]", r.unused_7),
                     bits<6, 4>("CONTEXT", r.context), bits<3, 2>("CONTEXTTYPE", r.contexttype),
                     bits<1, 0>("TYPE", r.type));
    }
};

/// ETMv4 only. Published register lists disagree on the stride; 16 is that of the system register encodings.
using Trcdvcvr = WholeRegister<TraceRegister<0x500, "TRCDVCVR", "data value comparator value", 8, 8, 16>, "VALUE">;
/// ETMv4 only.
using Trcdvcmr = WholeRegister<TraceRegister<0x580, "TRCDVCMR", "data value comparator mask", 8, 8, 16>, "MASK">;
using Trccidcvr = WholeRegister<TraceRegister<0x600, "TRCCIDCVR", "Context ID comparator value", 8, 8>, "VALUE">;
using Trcvmidcvr = WholeRegister<TraceRegister<0x640, "TRCVMIDCVR", "VMID comparator value", 8, 8>, "VALUE">;
/// One byte a comparator, 4 to 7 in the second register: bit m set ignores byte m.
using Trccidcctlr = IgnoredBytes<TraceRegister<0x680, "TRCCIDCCTLR", "Context ID comparator control", 2>>;
/// As TRCCIDCCTLR.
using Trcvmidcctlr = IgnoredBytes<TraceRegister<0x688, "TRCVMIDCCTLR", "VMID comparator control", 2>>;

struct Trcitctrl : TraceRegister<0xf00, "TRCITCTRL", "integration mode control"> {
    std::uint32_t unused_31_1{};
    bool ime{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 1>("reserved[31:1]", r.unused_31_1), bits<0>("IME", r.ime));
    }
};

using Trcclaimset = WholeRegister<TraceRegister<0xfa0, "TRCCLAIMSET", "claim tag set">, "SET">;
using Trcclaimclr = WholeRegister<TraceRegister<0xfa4, "TRCCLAIMCLR", "claim tag clear">, "CLR">;
using Trcdevaff0 = WholeRegister<TraceRegister<0xfa8, "TRCDEVAFF0", "device affinity 0">, "MPIDR_EL1[31:0]">;
using Trcdevaff1 = WholeRegister<TraceRegister<0xfac, "TRCDEVAFF1", "device affinity 1">, "MPIDR_EL1[63:32]">;
/// Write-only; ETMv4 only. 0xC5ACCE55 unlocks.
using Trclar = WholeRegister<TraceRegister<0xfb0, "TRCLAR", "software lock access">, "KEY">;

/// Read-only; ETMv4 only.
struct Trclsr : TraceRegister<0xfb4, "TRCLSR", "software lock status"> {
    std::uint32_t unused_31_3{};
    bool ntt{}, slk{}, sli{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 3>("reserved[31:3]", r.unused_31_3), bits<2>("nTT", r.ntt), bits<1>("SLK", r.slk),
               bits<0>("SLI", r.sli));
    }
};

/// Each pair: 0 absent, 2 disabled, 3 enabled.
struct Trcauthstatus : TraceRegister<0xfb8, "TRCAUTHSTATUS", "authentication status"> {
    std::uint8_t unused_31_28{}, rtnid{}, rtid{}, unused_23_16{}, rlnid{}, rlid{}, hnid{}, hid{}, snid{}, sid{},
        nsnid{}, nsid{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 28>("reserved[31:28]", r.unused_31_28), bits<27, 26>("RTNID", r.rtnid),
               bits<25, 24>("RTID", r.rtid), bits<23, 16>("reserved[23:16]", r.unused_23_16),
               bits<15, 14>("RLNID", r.rlnid), bits<13, 12>("RLID", r.rlid), bits<11, 10>("HNID", r.hnid),
               bits<9, 8>("HID", r.hid), bits<7, 6>("SNID", r.snid), bits<5, 4>("SID", r.sid),
               bits<3, 2>("NSNID", r.nsnid), bits<1, 0>("NSID", r.nsid));
    }
};

/// ARCHVER 4 is ETMv4, 5 is ETE; REVISION is the minor version.
struct Trcdevarch : TraceRegister<0xfbc, "TRCDEVARCH", "device architecture"> {
    std::uint16_t architect{}, archpart{};
    std::uint8_t revision{}, archver{};
    bool present{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 21>("ARCHITECT", r.architect), bits<20>("PRESENT", r.present),
               bits<19, 16>("REVISION", r.revision), bits<15, 12>("ARCHVER", r.archver),
               bits<11, 0>("ARCHPART", r.archpart));
    }
};

using Trcdevid2 = WholeRegister<TraceRegister<0xfc0, "TRCDEVID2", "device configuration 2">>;
using Trcdevid1 = WholeRegister<TraceRegister<0xfc4, "TRCDEVID1", "device configuration 1">>;
using Trcdevid = WholeRegister<TraceRegister<0xfc8, "TRCDEVID", "device configuration">>;

struct Trcdevtype : TraceRegister<0xfcc, "TRCDEVTYPE", "device type"> {
    std::uint32_t unused_31_8{};
    std::uint8_t sub{}, major{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 8>("reserved[31:8]", r.unused_31_8), bits<7, 4>("SUB", r.sub), bits<3, 0>("MAJOR", r.major));
    }
};

struct Trcpidr4 : TraceRegister<0xfd0, "TRCPIDR4", "peripheral ID 4"> {
    std::uint32_t unused_31_8{};
    std::uint8_t size{}, des_2{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 8>("reserved[31:8]", r.unused_31_8), bits<7, 4>("SIZE", r.size), bits<3, 0>("DES_2", r.des_2));
    }
};

using Trcpidr5 = WholeRegister<TraceRegister<0xfd4, "TRCPIDR5", "peripheral ID 5 to 7", 3>, "reserved">;

struct Trcpidr0 : TraceRegister<0xfe0, "TRCPIDR0", "peripheral ID 0"> {
    std::uint32_t unused_31_8{};
    std::uint8_t part_0{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 8>("reserved[31:8]", r.unused_31_8), bits<7, 0>("PART_0", r.part_0));
    }
};

struct Trcpidr1 : TraceRegister<0xfe4, "TRCPIDR1", "peripheral ID 1"> {
    std::uint32_t unused_31_8{};
    std::uint8_t des_0{}, part_1{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 8>("reserved[31:8]", r.unused_31_8), bits<7, 4>("DES_0", r.des_0),
               bits<3, 0>("PART_1", r.part_1));
    }
};

struct Trcpidr2 : TraceRegister<0xfe8, "TRCPIDR2", "peripheral ID 2"> {
    std::uint32_t unused_31_8{};
    std::uint8_t revision{}, des_1{};
    bool jedec{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 8>("reserved[31:8]", r.unused_31_8), bits<7, 4>("REVISION", r.revision),
               bits<3>("JEDEC", r.jedec), bits<2, 0>("DES_1", r.des_1));
    }
};

struct Trcpidr3 : TraceRegister<0xfec, "TRCPIDR3", "peripheral ID 3"> {
    std::uint32_t unused_31_8{};
    std::uint8_t revand{}, cmod{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 8>("reserved[31:8]", r.unused_31_8), bits<7, 4>("REVAND", r.revand),
               bits<3, 0>("CMOD", r.cmod));
    }
};

struct Trccidr : TraceRegister<0xff0, "TRCCIDR", "component ID 0 to 3", 4> {
    std::uint32_t unused_31_8{};
    std::uint8_t prmbl{};

    static void fields(auto& w, auto& r) {
        w.word(bits<31, 8>("reserved[31:8]", r.unused_31_8), bits<7, 0>("PRMBL", r.prmbl));
    }
};

/// All registers of a trace unit, by their offset in its 4 KB; all 0 to begin with. Registers of 64 bits are two words.
struct Registers {
    Trcprgctlr prgctlr;
    Trcprocselr procselr;
    Trcstatr statr;
    Trcconfigr configr;
    Trcauxctlr auxctlr;
    Trceventctl0r eventctl0r;
    Trceventctl1r eventctl1r;
    Trcrsr rsr;
    Trcstallctlr stallctlr;
    Trctsctlr tsctlr;
    Trcsyncpr syncpr;
    Trcccctlr ccctlr;
    Trcbbctlr bbctlr;
    Trctraceidr traceidr;
    Trcqctlr qctlr;
    Trciteedcr iteedcr;
    Trcvictlr victlr;
    Trcviiectlr viiectlr;
    Trcvissctlr vissctlr;
    Trcvipcssctlr vipcssctlr;
    Trcvdctlr vdctlr;
    Trcvdsacctlr vdsacctlr;
    Trcvdarcctlr vdarcctlr;
    std::array<Trcseqevr, 3> seqevr{};
    Trcseqrstevr seqrstevr;
    Trcseqstr seqstr;
    std::array<Trcextinselr, 4> extinselr{};
    std::array<Trccntrldvr, 4> cntrldvr{};
    std::array<Trccntctlr, 4> cntctlr{};
    std::array<Trccntvr, 4> cntvr{};
    Trcidr8 idr8;
    Trcidr9 idr9;
    Trcidr10 idr10;
    Trcidr11 idr11;
    Trcidr12 idr12;
    Trcidr13 idr13;
    Trcimspec0 imspec0;
    std::array<Trcimspec, 7> imspec{};
    Trcidr0 idr0;
    Trcidr1 idr1;
    Trcidr2 idr2;
    Trcidr3 idr3;
    Trcidr4 idr4;
    Trcidr5 idr5;
    Trcidr6 idr6;
    Trcidr7 idr7;
    std::array<Trcrsctlr, 30> rsctlr{};
    std::array<Trcssccr, 8> ssccr{};
    std::array<Trcsscsr, 8> sscsr{};
    std::array<Trcsspcicr, 8> sspcicr{};
    Trcoslar oslar;
    Trcoslsr oslsr;
    Trcpdcr pdcr;
    Trcpdsr pdsr;
    std::array<Trcacvr, 16> acvr{};
    std::array<Trcacatr, 16> acatr{};
    std::array<Trcdvcvr, 8> dvcvr{};
    std::array<Trcdvcmr, 8> dvcmr{};
    std::array<Trccidcvr, 8> cidcvr{};
    std::array<Trcvmidcvr, 8> vmidcvr{};
    std::array<Trccidcctlr, 2> cidcctlr{};
    std::array<Trcvmidcctlr, 2> vmidcctlr{};
    Trcitctrl itctrl;
    Trcclaimset claimset;
    Trcclaimclr claimclr;
    Trcdevaff0 devaff0;
    Trcdevaff1 devaff1;
    Trclar lar;
    Trclsr lsr;
    Trcauthstatus authstatus;
    Trcdevarch devarch;
    Trcdevid2 devid2;
    Trcdevid1 devid1;
    Trcdevid devid;
    Trcdevtype devtype;
    Trcpidr4 pidr4;
    std::array<Trcpidr5, 3> pidr5{};
    Trcpidr0 pidr0;
    Trcpidr1 pidr1;
    Trcpidr2 pidr2;
    Trcpidr3 pidr3;
    std::array<Trccidr, 4> cidr{};

    /// Calls `f(register, offset)` with every register, or every one of a group.
    static void for_each(auto& self, auto&& f) {
        const auto take = [&](auto& member) {
            if constexpr (requires { member.size(); }) {
                unsigned offset = member[0].offset;
                for (auto& r : member) f(r, offset), offset += r.stride;
            } else {
                f(member, member.offset);
            }
        };
        const auto all = [&](auto&... members) { (take(members), ...); };
        all(self.prgctlr, self.procselr, self.statr, self.configr, self.auxctlr, self.eventctl0r, self.eventctl1r,
            self.rsr, self.stallctlr, self.tsctlr, self.syncpr, self.ccctlr, self.bbctlr, self.traceidr, self.qctlr,
            self.iteedcr, self.victlr, self.viiectlr, self.vissctlr, self.vipcssctlr, self.vdctlr, self.vdsacctlr,
            self.vdarcctlr, self.seqevr, self.seqrstevr, self.seqstr, self.extinselr, self.cntrldvr, self.cntctlr,
            self.cntvr, self.idr8, self.idr9, self.idr10, self.idr11, self.idr12, self.idr13, self.imspec0, self.imspec,
            self.idr0, self.idr1, self.idr2, self.idr3, self.idr4, self.idr5, self.idr6, self.idr7, self.rsctlr,
            self.ssccr, self.sscsr, self.sspcicr, self.oslar, self.oslsr, self.pdcr, self.pdsr, self.acvr, self.acatr,
            self.dvcvr, self.dvcmr, self.cidcvr, self.vmidcvr, self.cidcctlr, self.vmidcctlr, self.itctrl,
            self.claimset, self.claimclr, self.devaff0, self.devaff1, self.lar, self.lsr, self.authstatus, self.devarch,
            self.devid2, self.devid1, self.devid, self.devtype, self.pidr4, self.pidr5, self.pidr0, self.pidr1,
            self.pidr2, self.pidr3, self.cidr);
    }
    /// Sets the word at this offset; false if no register has it.
    bool set(unsigned offset, std::uint32_t value) {
        bool found = false;
        visit(*this, offset, [&](auto& r, unsigned shift) {
            using Register = std::remove_cvref_t<decltype(r)>;
            const std::uint64_t kept = to_value(r) & ~(std::uint64_t{0xffffffff} << shift);
            r = from_value<Register>(static_cast<RegisterNumber<Register>>(kept | std::uint64_t{value} << shift));
            found = true;
        });
        return found;
    }
    /// The word at this offset; nullopt if there is no register.
    [[nodiscard]] std::optional<std::uint32_t> get(unsigned offset) const {
        std::optional<std::uint32_t> value;
        visit(*this, offset,
              [&](const auto& r, unsigned shift) { value = static_cast<std::uint32_t>(to_value(r) >> shift); });
        return value;
    }
    bool operator==(const Registers&) const = default;

private:
    static void visit(auto& self, unsigned offset, auto&& f) {
        for_each(self, [&](auto& r, unsigned at) {
            if (offset == at) f(r, 0U);
            if (std::remove_cvref_t<decltype(r)>::bytes == 8 && offset == at + 4) f(r, 32U);
        });
    }
};

}  // namespace waymark::etm4
