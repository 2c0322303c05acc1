/// Registers of an ETMv4 or ETE trace unit, field by field (docs/spec/etm4-registers.md, section 1; for registers that
/// decide how bytes are read: docs/spec/etm4.md, section 1). Each is described once: one function names its fields, and
/// reading, writing, printing and checking use it. A field whose meaning differs between ETMv4 and ETE has one name for
/// both.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include "waymark/core/registers.h"
#include "waymark/core/wire.h"

namespace waymark::etm4 {

/// TRCPRGCTLR, programming control. Offset 0x004.
struct Trcprgctlr {
    static constexpr std::string_view name = "TRCPRGCTLR", title = "programming control";
    static constexpr unsigned offset = 0x004, count = 1, stride = 4, bytes = 4;

    std::uint32_t unused_31_1{};
    bool enable{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 1>("reserved[31:1]", r.unused_31_1), bits<0>("EN", r.enable));
    }
    bool operator==(const Trcprgctlr&) const = default;
};

/// TRCPROCSELR, processor select. Offset 0x008. ETMv4 only.
struct Trcprocselr {
    static constexpr std::string_view name = "TRCPROCSELR", title = "processor select";
    static constexpr unsigned offset = 0x008, count = 1, stride = 4, bytes = 4;

    std::uint32_t unused_31_5{};
    std::uint8_t procsel{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 5>("reserved[31:5]", r.unused_31_5), bits<4, 0>("PROCSEL", r.procsel));
    }
    bool operator==(const Trcprocselr&) const = default;
};

/// TRCSTATR, status. Offset 0x00C. Read-only.
struct Trcstatr {
    static constexpr std::string_view name = "TRCSTATR", title = "status";
    static constexpr unsigned offset = 0x00c, count = 1, stride = 4, bytes = 4;

    std::uint32_t unused_31_2{};
    bool pmstable{}, idle{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 2>("reserved[31:2]", r.unused_31_2), bits<1>("PMSTABLE", r.pmstable), bits<0>("IDLE", r.idle));
    }
    bool operator==(const Trcstatr&) const = default;
};

/// TRCCONFIGR, trace configuration. Offset 0x010. Section 1 of docs/spec/etm4.md.
struct Trcconfigr {
    static constexpr std::string_view name = "TRCCONFIGR", title = "trace configuration";
    static constexpr unsigned offset = 0x010, count = 1, stride = 4, bytes = 4;

    std::uint16_t unused_31_19{};
    std::uint8_t qe{}, cond{}, instp0{};
    bool ito{}, dv{}, da{}, vmidopt{}, rs{}, ts{}, vmid{}, cid{}, unused_5{}, cci{}, bb{}, one{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 19>("reserved[31:19]", r.unused_31_19), bits<18>("ITO", r.ito), bits<17>("DV", r.dv),
               bits<16>("DA", r.da), bits<15>("VMIDOPT", r.vmidopt), bits<14, 13>("QE", r.qe), bits<12>("RS", r.rs),
               bits<11>("TS", r.ts), bits<10, 8>("COND", r.cond), bits<7>("VMID", r.vmid), bits<6>("CID", r.cid),
               bits<5>("reserved[5]", r.unused_5), bits<4>("CCI", r.cci), bits<3>("BB", r.bb),
               bits<2, 1>("INSTP0", r.instp0), bits<0>("RES1", r.one));
    }
    bool operator==(const Trcconfigr&) const = default;
};

/// TRCAUXCTLR, auxiliary control. Offset 0x018. Implementation defined.
struct Trcauxctlr {
    static constexpr std::string_view name = "TRCAUXCTLR", title = "auxiliary control";
    static constexpr unsigned offset = 0x018, count = 1, stride = 4, bytes = 4;

    std::uint32_t value{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 0>("value", r.value));
    }
    bool operator==(const Trcauxctlr&) const = default;
};

/// TRCEVENTCTL0R, event control 0. Offset 0x020.
struct Trceventctl0r {
    static constexpr std::string_view name = "TRCEVENTCTL0R", title = "event control 0";
    static constexpr unsigned offset = 0x020, count = 1, stride = 4, bytes = 4;

    std::uint8_t unused_30_29{}, sel3{}, unused_22_21{}, sel2{}, unused_14_13{}, sel1{}, unused_6_5{}, sel0{};
    bool type3{}, type2{}, type1{}, type0{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31>("EVENT3.TYPE", r.type3), bits<30, 29>("reserved[30:29]", r.unused_30_29),
               bits<28, 24>("EVENT3.SEL", r.sel3), bits<23>("EVENT2.TYPE", r.type2),
               bits<22, 21>("reserved[22:21]", r.unused_22_21), bits<20, 16>("EVENT2.SEL", r.sel2),
               bits<15>("EVENT1.TYPE", r.type1), bits<14, 13>("reserved[14:13]", r.unused_14_13),
               bits<12, 8>("EVENT1.SEL", r.sel1), bits<7>("EVENT0.TYPE", r.type0),
               bits<6, 5>("reserved[6:5]", r.unused_6_5), bits<4, 0>("EVENT0.SEL", r.sel0));
    }
    bool operator==(const Trceventctl0r&) const = default;
};

/// TRCEVENTCTL1R, event control 1. Offset 0x024.
struct Trceventctl1r {
    static constexpr std::string_view name = "TRCEVENTCTL1R", title = "event control 1";
    static constexpr unsigned offset = 0x024, count = 1, stride = 4, bytes = 4;

    std::uint32_t unused_31_14{};
    std::uint8_t unused_10_5{}, insten{};
    bool oe{}, lpoverride{}, atb{}, dataen{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 14>("reserved[31:14]", r.unused_31_14), bits<13>("OE", r.oe),
               bits<12>("LPOVERRIDE", r.lpoverride), bits<11>("ATB", r.atb),
               bits<10, 5>("reserved[10:5]", r.unused_10_5), bits<4>("DATAEN", r.dataen),
               bits<3, 0>("INSTEN", r.insten));
    }
    bool operator==(const Trceventctl1r&) const = default;
};

/// TRCRSR, resources status. Offset 0x028. ETE only.
struct Trcrsr {
    static constexpr std::string_view name = "TRCRSR", title = "resources status";
    static constexpr unsigned offset = 0x028, count = 1, stride = 4, bytes = 4;

    std::uint32_t unused_31_13{};
    std::uint8_t event{}, unused_7_4{}, extin{};
    bool ta{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 13>("reserved[31:13]", r.unused_31_13), bits<12>("TA", r.ta), bits<11, 8>("EVENT", r.event),
               bits<7, 4>("reserved[7:4]", r.unused_7_4), bits<3, 0>("EXTIN", r.extin));
    }
    bool operator==(const Trcrsr&) const = default;
};

/// TRCSTALLCTLR, stall control. Offset 0x02C.
struct Trcstallctlr {
    static constexpr std::string_view name = "TRCSTALLCTLR", title = "stall control";
    static constexpr unsigned offset = 0x02c, count = 1, stride = 4, bytes = 4;

    std::uint32_t unused_31_14{};
    std::uint8_t datadiscard{}, unused_7_4{}, level{};
    bool nooverflow{}, instpriority{}, dstall{}, istall{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 14>("reserved[31:14]", r.unused_31_14), bits<13>("NOOVERFLOW", r.nooverflow),
               bits<12, 11>("DATADISCARD", r.datadiscard), bits<10>("INSTPRIORITY", r.instpriority),
               bits<9>("DSTALL", r.dstall), bits<8>("ISTALL", r.istall), bits<7, 4>("reserved[7:4]", r.unused_7_4),
               bits<3, 0>("LEVEL", r.level));
    }
    bool operator==(const Trcstallctlr&) const = default;
};

/// TRCTSCTLR, timestamp control. Offset 0x030.
struct Trctsctlr {
    static constexpr std::string_view name = "TRCTSCTLR", title = "timestamp control";
    static constexpr unsigned offset = 0x030, count = 1, stride = 4, bytes = 4;

    std::uint32_t unused_31_8{};
    std::uint8_t unused_6_5{}, sel{};
    bool type{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 8>("reserved[31:8]", r.unused_31_8), bits<7>("EVENT.TYPE", r.type),
               bits<6, 5>("reserved[6:5]", r.unused_6_5), bits<4, 0>("EVENT.SEL", r.sel));
    }
    bool operator==(const Trctsctlr&) const = default;
};

/// TRCSYNCPR, synchronisation period. Offset 0x034. PERIOD: A-sync every 2^PERIOD bytes, 0 never.
struct Trcsyncpr {
    static constexpr std::string_view name = "TRCSYNCPR", title = "synchronisation period";
    static constexpr unsigned offset = 0x034, count = 1, stride = 4, bytes = 4;

    std::uint32_t unused_31_5{};
    std::uint8_t period{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 5>("reserved[31:5]", r.unused_31_5), bits<4, 0>("PERIOD", r.period));
    }
    bool operator==(const Trcsyncpr&) const = default;
};

/// TRCCCCTLR, cycle count control. Offset 0x038.
struct Trcccctlr {
    static constexpr std::string_view name = "TRCCCCTLR", title = "cycle count control";
    static constexpr unsigned offset = 0x038, count = 1, stride = 4, bytes = 4;

    std::uint32_t unused_31_12{};
    std::uint16_t threshold{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 12>("reserved[31:12]", r.unused_31_12), bits<11, 0>("THRESHOLD", r.threshold));
    }
    bool operator==(const Trcccctlr&) const = default;
};

/// TRCBBCTLR, branch broadcast control. Offset 0x03C.
struct Trcbbctlr {
    static constexpr std::string_view name = "TRCBBCTLR", title = "branch broadcast control";
    static constexpr unsigned offset = 0x03c, count = 1, stride = 4, bytes = 4;

    std::uint32_t unused_31_9{};
    std::uint8_t range{};
    bool mode{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 9>("reserved[31:9]", r.unused_31_9), bits<8>("MODE", r.mode), bits<7, 0>("RANGE", r.range));
    }
    bool operator==(const Trcbbctlr&) const = default;
};

/// TRCTRACEIDR, trace ID. Offset 0x040.
struct Trctraceidr {
    static constexpr std::string_view name = "TRCTRACEIDR", title = "trace ID";
    static constexpr unsigned offset = 0x040, count = 1, stride = 4, bytes = 4;

    std::uint32_t unused_31_7{};
    std::uint8_t trace_id{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 7>("reserved[31:7]", r.unused_31_7), bits<6, 0>("TRACEID", r.trace_id));
    }
    bool operator==(const Trctraceidr&) const = default;
};

/// TRCQCTLR, Q element control. Offset 0x044.
struct Trcqctlr {
    static constexpr std::string_view name = "TRCQCTLR", title = "Q element control";
    static constexpr unsigned offset = 0x044, count = 1, stride = 4, bytes = 4;

    std::uint32_t unused_31_9{};
    std::uint8_t range{};
    bool mode{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 9>("reserved[31:9]", r.unused_31_9), bits<8>("MODE", r.mode), bits<7, 0>("RANGE", r.range));
    }
    bool operator==(const Trcqctlr&) const = default;
};

/// TRCITEEDCR, instrumentation trace extension external debug control. Offset 0x048. ETE only.
struct Trciteedcr {
    static constexpr std::string_view name = "TRCITEEDCR",
                                      title = "instrumentation trace extension external debug control";
    static constexpr unsigned offset = 0x048, count = 1, stride = 4, bytes = 4;

    std::uint32_t unused_31_7{};
    bool rl{}, s{}, ns{}, e3{}, e2{}, e1{}, e0{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 7>("reserved[31:7]", r.unused_31_7), bits<6>("RL", r.rl), bits<5>("S", r.s),
               bits<4>("NS", r.ns), bits<3>("E3", r.e3), bits<2>("E2", r.e2), bits<1>("E1", r.e1), bits<0>("E0", r.e0));
    }
    bool operator==(const Trciteedcr&) const = default;
};

/// TRCVICTLR, ViewInst main control. Offset 0x080.
struct Trcvictlr {
    static constexpr std::string_view name = "TRCVICTLR", title = "ViewInst main control";
    static constexpr unsigned offset = 0x080, count = 1, stride = 4, bytes = 4;

    std::uint8_t unused_31_27{}, exlevel_rl{}, exlevel_ns{}, exlevel_s{}, unused_15_12{}, unused_6_5{}, sel{};
    bool unused_23{}, trcerr{}, trcreset{}, ssstatus{}, unused_8{}, type{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 27>("reserved[31:27]", r.unused_31_27), bits<26, 24>("EXLEVEL_RL", r.exlevel_rl),
               bits<23>("reserved[23]", r.unused_23), bits<22, 20>("EXLEVEL_NS", r.exlevel_ns),
               bits<19, 16>("EXLEVEL_S", r.exlevel_s), bits<15, 12>("reserved[15:12]", r.unused_15_12),
               bits<11>("TRCERR", r.trcerr), bits<10>("TRCRESET", r.trcreset), bits<9>("SSSTATUS", r.ssstatus),
               bits<8>("reserved[8]", r.unused_8), bits<7>("EVENT.TYPE", r.type),
               bits<6, 5>("reserved[6:5]", r.unused_6_5), bits<4, 0>("EVENT.SEL", r.sel));
    }
    bool operator==(const Trcvictlr&) const = default;
};

/// TRCVIIECTLR, ViewInst include and exclude control. Offset 0x084.
struct Trcviiectlr {
    static constexpr std::string_view name = "TRCVIIECTLR", title = "ViewInst include and exclude control";
    static constexpr unsigned offset = 0x084, count = 1, stride = 4, bytes = 4;

    std::uint8_t unused_31_24{}, exclude{}, unused_15_8{}, include{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 24>("reserved[31:24]", r.unused_31_24), bits<23, 16>("EXCLUDE", r.exclude),
               bits<15, 8>("reserved[15:8]", r.unused_15_8), bits<7, 0>("INCLUDE", r.include));
    }
    bool operator==(const Trcviiectlr&) const = default;
};

/// TRCVISSCTLR, ViewInst start and stop control. Offset 0x088.
struct Trcvissctlr {
    static constexpr std::string_view name = "TRCVISSCTLR", title = "ViewInst start and stop control";
    static constexpr unsigned offset = 0x088, count = 1, stride = 4, bytes = 4;

    std::uint16_t stop{}, start{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 16>("STOP", r.stop), bits<15, 0>("START", r.start));
    }
    bool operator==(const Trcvissctlr&) const = default;
};

/// TRCVIPCSSCTLR, ViewInst start and stop by PE comparator inputs. Offset 0x08C.
struct Trcvipcssctlr {
    static constexpr std::string_view name = "TRCVIPCSSCTLR", title = "ViewInst start and stop by PE comparator inputs";
    static constexpr unsigned offset = 0x08c, count = 1, stride = 4, bytes = 4;

    std::uint8_t unused_31_24{}, stop{}, unused_15_8{}, start{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 24>("reserved[31:24]", r.unused_31_24), bits<23, 16>("STOP", r.stop),
               bits<15, 8>("reserved[15:8]", r.unused_15_8), bits<7, 0>("START", r.start));
    }
    bool operator==(const Trcvipcssctlr&) const = default;
};

/// TRCVDCTLR, ViewData main control. Offset 0x0A0. ETMv4 only.
struct Trcvdctlr {
    static constexpr std::string_view name = "TRCVDCTLR", title = "ViewData main control";
    static constexpr unsigned offset = 0x0a0, count = 1, stride = 4, bytes = 4;

    std::uint32_t unused_31_13{};
    std::uint8_t sprel{}, unused_6_5{}, sel{};
    bool trcexdata{}, tbi{}, pcrel{}, type{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 13>("reserved[31:13]", r.unused_31_13), bits<12>("TRCEXDATA", r.trcexdata),
               bits<11>("TBI", r.tbi), bits<10>("PCREL", r.pcrel), bits<9, 8>("SPREL", r.sprel),
               bits<7>("EVENT.TYPE", r.type), bits<6, 5>("reserved[6:5]", r.unused_6_5),
               bits<4, 0>("EVENT.SEL", r.sel));
    }
    bool operator==(const Trcvdctlr&) const = default;
};

/// TRCVDSACCTLR, ViewData include and exclude by single comparators. Offset 0x0A4. ETMv4 only.
struct Trcvdsacctlr {
    static constexpr std::string_view name = "TRCVDSACCTLR",
                                      title = "ViewData include and exclude by single comparators";
    static constexpr unsigned offset = 0x0a4, count = 1, stride = 4, bytes = 4;

    std::uint16_t exclude{}, include{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 16>("EXCLUDE", r.exclude), bits<15, 0>("INCLUDE", r.include));
    }
    bool operator==(const Trcvdsacctlr&) const = default;
};

/// TRCVDARCCTLR, ViewData include and exclude by range comparators. Offset 0x0A8. ETMv4 only.
struct Trcvdarcctlr {
    static constexpr std::string_view name = "TRCVDARCCTLR",
                                      title = "ViewData include and exclude by range comparators";
    static constexpr unsigned offset = 0x0a8, count = 1, stride = 4, bytes = 4;

    std::uint8_t unused_31_24{}, exclude{}, unused_15_8{}, include{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 24>("reserved[31:24]", r.unused_31_24), bits<23, 16>("EXCLUDE", r.exclude),
               bits<15, 8>("reserved[15:8]", r.unused_15_8), bits<7, 0>("INCLUDE", r.include));
    }
    bool operator==(const Trcvdarcctlr&) const = default;
};

/// TRCSEQEVR, sequencer state transition. Offset 0x100, 3 of them.
struct Trcseqevr {
    static constexpr std::string_view name = "TRCSEQEVR", title = "sequencer state transition";
    static constexpr unsigned offset = 0x100, count = 3, stride = 4, bytes = 4;

    std::uint16_t unused_31_16{};
    std::uint8_t unused_14_13{}, back_sel{}, unused_6_5{}, forward_sel{};
    bool back_type{}, forward_type{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 16>("reserved[31:16]", r.unused_31_16), bits<15>("B.TYPE", r.back_type),
               bits<14, 13>("reserved[14:13]", r.unused_14_13), bits<12, 8>("B.SEL", r.back_sel),
               bits<7>("F.TYPE", r.forward_type), bits<6, 5>("reserved[6:5]", r.unused_6_5),
               bits<4, 0>("F.SEL", r.forward_sel));
    }
    bool operator==(const Trcseqevr&) const = default;
};

/// TRCSEQRSTEVR, sequencer reset. Offset 0x118.
struct Trcseqrstevr {
    static constexpr std::string_view name = "TRCSEQRSTEVR", title = "sequencer reset";
    static constexpr unsigned offset = 0x118, count = 1, stride = 4, bytes = 4;

    std::uint32_t unused_31_8{};
    std::uint8_t unused_6_5{}, sel{};
    bool type{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 8>("reserved[31:8]", r.unused_31_8), bits<7>("EVENT.TYPE", r.type),
               bits<6, 5>("reserved[6:5]", r.unused_6_5), bits<4, 0>("EVENT.SEL", r.sel));
    }
    bool operator==(const Trcseqrstevr&) const = default;
};

/// TRCSEQSTR, sequencer state. Offset 0x11C.
struct Trcseqstr {
    static constexpr std::string_view name = "TRCSEQSTR", title = "sequencer state";
    static constexpr unsigned offset = 0x11c, count = 1, stride = 4, bytes = 4;

    std::uint32_t unused_31_2{};
    std::uint8_t state{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 2>("reserved[31:2]", r.unused_31_2), bits<1, 0>("STATE", r.state));
    }
    bool operator==(const Trcseqstr&) const = default;
};

/// TRCEXTINSELR, external input select. Offset 0x120, 4 of them. Number 0 has four selectors of 8 bits in ETMv4; in ETE
/// each has one PMU event number, the low 16 bits.
struct Trcextinselr {
    static constexpr std::string_view name = "TRCEXTINSELR", title = "external input select";
    static constexpr unsigned offset = 0x120, count = 4, stride = 4, bytes = 4;

    std::uint8_t sel3{}, sel2{}, sel1{}, sel0{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 24>("SEL3", r.sel3), bits<23, 16>("SEL2", r.sel2), bits<15, 8>("SEL1", r.sel1),
               bits<7, 0>("SEL0", r.sel0));
    }
    bool operator==(const Trcextinselr&) const = default;
};

/// TRCCNTRLDVR, counter reload value. Offset 0x140, 4 of them.
struct Trccntrldvr {
    static constexpr std::string_view name = "TRCCNTRLDVR", title = "counter reload value";
    static constexpr unsigned offset = 0x140, count = 4, stride = 4, bytes = 4;

    std::uint16_t unused_31_16{}, value{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 16>("reserved[31:16]", r.unused_31_16), bits<15, 0>("VALUE", r.value));
    }
    bool operator==(const Trccntrldvr&) const = default;
};

/// TRCCNTCTLR, counter control. Offset 0x150, 4 of them.
struct Trccntctlr {
    static constexpr std::string_view name = "TRCCNTCTLR", title = "counter control";
    static constexpr unsigned offset = 0x150, count = 4, stride = 4, bytes = 4;

    std::uint16_t unused_31_18{};
    std::uint8_t unused_14_13{}, reload_sel{}, unused_6_5{}, count_sel{};
    bool chain{}, reload_self{}, reload_type{}, count_type{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 18>("reserved[31:18]", r.unused_31_18), bits<17>("CNTCHAIN", r.chain),
               bits<16>("RLDSELF", r.reload_self), bits<15>("RLDEVENT.TYPE", r.reload_type),
               bits<14, 13>("reserved[14:13]", r.unused_14_13), bits<12, 8>("RLDEVENT.SEL", r.reload_sel),
               bits<7>("CNTEVENT.TYPE", r.count_type), bits<6, 5>("reserved[6:5]", r.unused_6_5),
               bits<4, 0>("CNTEVENT.SEL", r.count_sel));
    }
    bool operator==(const Trccntctlr&) const = default;
};

/// TRCCNTVR, counter value. Offset 0x160, 4 of them.
struct Trccntvr {
    static constexpr std::string_view name = "TRCCNTVR", title = "counter value";
    static constexpr unsigned offset = 0x160, count = 4, stride = 4, bytes = 4;

    std::uint16_t unused_31_16{}, value{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 16>("reserved[31:16]", r.unused_31_16), bits<15, 0>("VALUE", r.value));
    }
    bool operator==(const Trccntvr&) const = default;
};

/// TRCIDR8, ID 8. Offset 0x180.
struct Trcidr8 {
    static constexpr std::string_view name = "TRCIDR8", title = "ID 8";
    static constexpr unsigned offset = 0x180, count = 1, stride = 4, bytes = 4;

    std::uint32_t maxspec{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 0>("MAXSPEC", r.maxspec));
    }
    bool operator==(const Trcidr8&) const = default;
};

/// TRCIDR9, ID 9. Offset 0x184.
struct Trcidr9 {
    static constexpr std::string_view name = "TRCIDR9", title = "ID 9";
    static constexpr unsigned offset = 0x184, count = 1, stride = 4, bytes = 4;

    std::uint32_t nump0key{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 0>("NUMP0KEY", r.nump0key));
    }
    bool operator==(const Trcidr9&) const = default;
};

/// TRCIDR10, ID 10. Offset 0x188.
struct Trcidr10 {
    static constexpr std::string_view name = "TRCIDR10", title = "ID 10";
    static constexpr unsigned offset = 0x188, count = 1, stride = 4, bytes = 4;

    std::uint32_t nump1key{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 0>("NUMP1KEY", r.nump1key));
    }
    bool operator==(const Trcidr10&) const = default;
};

/// TRCIDR11, ID 11. Offset 0x18C.
struct Trcidr11 {
    static constexpr std::string_view name = "TRCIDR11", title = "ID 11";
    static constexpr unsigned offset = 0x18c, count = 1, stride = 4, bytes = 4;

    std::uint32_t nump1spc{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 0>("NUMP1SPC", r.nump1spc));
    }
    bool operator==(const Trcidr11&) const = default;
};

/// TRCIDR12, ID 12. Offset 0x190.
struct Trcidr12 {
    static constexpr std::string_view name = "TRCIDR12", title = "ID 12";
    static constexpr unsigned offset = 0x190, count = 1, stride = 4, bytes = 4;

    std::uint32_t numcondkey{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 0>("NUMCONDKEY", r.numcondkey));
    }
    bool operator==(const Trcidr12&) const = default;
};

/// TRCIDR13, ID 13. Offset 0x194.
struct Trcidr13 {
    static constexpr std::string_view name = "TRCIDR13", title = "ID 13";
    static constexpr unsigned offset = 0x194, count = 1, stride = 4, bytes = 4;

    std::uint32_t numcondspc{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 0>("NUMCONDSPC", r.numcondspc));
    }
    bool operator==(const Trcidr13&) const = default;
};

/// TRCIMSPEC0, implementation specific 0. Offset 0x1C0.
struct Trcimspec0 {
    static constexpr std::string_view name = "TRCIMSPEC0", title = "implementation specific 0";
    static constexpr unsigned offset = 0x1c0, count = 1, stride = 4, bytes = 4;

    std::uint32_t unused_31_8{};
    std::uint8_t enable{}, support{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 8>("reserved[31:8]", r.unused_31_8), bits<7, 4>("EN", r.enable),
               bits<3, 0>("SUPPORT", r.support));
    }
    bool operator==(const Trcimspec0&) const = default;
};

/// TRCIMSPEC, implementation specific 1 to 7. Offset 0x1C4, 7 of them.
struct Trcimspec {
    static constexpr std::string_view name = "TRCIMSPEC", title = "implementation specific 1 to 7";
    static constexpr unsigned offset = 0x1c4, count = 7, stride = 4, bytes = 4;

    std::uint32_t value{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 0>("value", r.value));
    }
    bool operator==(const Trcimspec&) const = default;
};

/// TRCIDR0, ID 0. Offset 0x1E0. Section 1 of docs/spec/etm4.md.
struct Trcidr0 {
    static constexpr std::string_view name = "TRCIDR0", title = "ID 0";
    static constexpr unsigned offset = 0x1e0, count = 1, stride = 4, bytes = 4;

    std::uint8_t tssize{}, unused_21_18{}, qsupp{}, condtype{}, numevent{}, trcdata{}, instp0{};
    bool unused_31{}, commtrans{}, commopt{}, tsmark{}, ite{}, trcexdata{}, qfilt{}, retstack{}, unused_8{}, trccci{},
        trccond{}, trcbb{}, one{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31>("reserved[31]", r.unused_31), bits<30>("COMMTRANS", r.commtrans),
               bits<29>("COMMOPT", r.commopt), bits<28, 24>("TSSIZE", r.tssize), bits<23>("TSMARK", r.tsmark),
               bits<22>("ITE", r.ite), bits<21, 18>("reserved[21:18]", r.unused_21_18),
               bits<17>("TRCEXDATA", r.trcexdata), bits<16, 15>("QSUPP", r.qsupp), bits<14>("QFILT", r.qfilt),
               bits<13, 12>("CONDTYPE", r.condtype), bits<11, 10>("NUMEVENT", r.numevent),
               bits<9>("RETSTACK", r.retstack), bits<8>("reserved[8]", r.unused_8), bits<7>("TRCCCI", r.trccci),
               bits<6>("TRCCOND", r.trccond), bits<5>("TRCBB", r.trcbb), bits<4, 3>("TRCDATA", r.trcdata),
               bits<2, 1>("INSTP0", r.instp0), bits<0>("RES1", r.one));
    }
    bool operator==(const Trcidr0&) const = default;
};

/// TRCIDR1, ID 1. Offset 0x1E4. TRCARCHMAJ of an ETE is 15: ask TRCDEVARCH.
struct Trcidr1 {
    static constexpr std::string_view name = "TRCIDR1", title = "ID 1";
    static constexpr unsigned offset = 0x1e4, count = 1, stride = 4, bytes = 4;

    std::uint16_t unused_23_12{};
    std::uint8_t designer{}, archmaj{}, archmin{}, revision{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 24>("DESIGNER", r.designer), bits<23, 12>("reserved[23:12]", r.unused_23_12),
               bits<11, 8>("TRCARCHMAJ", r.archmaj), bits<7, 4>("TRCARCHMIN", r.archmin),
               bits<3, 0>("REVISION", r.revision));
    }
    bool operator==(const Trcidr1&) const = default;
};

/// TRCIDR2, ID 2. Offset 0x1E8.
struct Trcidr2 {
    static constexpr std::string_view name = "TRCIDR2", title = "ID 2";
    static constexpr unsigned offset = 0x1e8, count = 1, stride = 4, bytes = 4;

    std::uint8_t vmidopt{}, ccsize{}, dvsize{}, dasize{}, vmidsize{}, cidsize{}, iasize{};
    bool wfxmode{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31>("WFXMODE", r.wfxmode), bits<30, 29>("VMIDOPT", r.vmidopt), bits<28, 25>("CCSIZE", r.ccsize),
               bits<24, 20>("DVSIZE", r.dvsize), bits<19, 15>("DASIZE", r.dasize), bits<14, 10>("VMIDSIZE", r.vmidsize),
               bits<9, 5>("CIDSIZE", r.cidsize), bits<4, 0>("IASIZE", r.iasize));
    }
    bool operator==(const Trcidr2&) const = default;
};

/// TRCIDR3, ID 3. Offset 0x1EC.
struct Trcidr3 {
    static constexpr std::string_view name = "TRCIDR3", title = "ID 3";
    static constexpr unsigned offset = 0x1ec, count = 1, stride = 4, bytes = 4;

    std::uint16_t ccitmin{};
    std::uint8_t numproc_low{}, exlevel_ns{}, exlevel_s{}, unused_15_14{}, numproc_high{};
    bool nooverflow{}, sysstall{}, stallctl{}, syncpr{}, trcerr{}, unused_23{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31>("NOOVERFLOW", r.nooverflow), bits<30, 28>("NUMPROC[2:0]", r.numproc_low),
               bits<27>("SYSSTALL", r.sysstall), bits<26>("STALLCTL", r.stallctl), bits<25>("SYNCPR", r.syncpr),
               bits<24>("TRCERR", r.trcerr), bits<23>("reserved[23]", r.unused_23),
               bits<22, 20>("EXLEVEL_NS", r.exlevel_ns), bits<19, 16>("EXLEVEL_S", r.exlevel_s),
               bits<15, 14>("reserved[15:14]", r.unused_15_14), bits<13, 12>("NUMPROC[4:3]", r.numproc_high),
               bits<11, 0>("CCITMIN", r.ccitmin));
    }
    bool operator==(const Trcidr3&) const = default;
};

/// TRCIDR4, ID 4. Offset 0x1F0.
struct Trcidr4 {
    static constexpr std::string_view name = "TRCIDR4", title = "ID 4";
    static constexpr unsigned offset = 0x1f0, count = 1, stride = 4, bytes = 4;

    std::uint8_t numvmidc{}, numcidc{}, numsscc{}, numrspair{}, numpc{}, unused_11_9{}, numdvc{}, numacpairs{};
    bool suppdac{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 28>("NUMVMIDC", r.numvmidc), bits<27, 24>("NUMCIDC", r.numcidc),
               bits<23, 20>("NUMSSCC", r.numsscc), bits<19, 16>("NUMRSPAIR", r.numrspair),
               bits<15, 12>("NUMPC", r.numpc), bits<11, 9>("reserved[11:9]", r.unused_11_9),
               bits<8>("SUPPDAC", r.suppdac), bits<7, 4>("NUMDVC", r.numdvc), bits<3, 0>("NUMACPAIRS", r.numacpairs));
    }
    bool operator==(const Trcidr4&) const = default;
};

/// TRCIDR5, ID 5. Offset 0x1F4. Bit 31 is REDFUNCNTR in ETMv4, OE in ETE.
struct Trcidr5 {
    static constexpr std::string_view name = "TRCIDR5", title = "ID 5";
    static constexpr unsigned offset = 0x1f4, count = 1, stride = 4, bytes = 4;

    std::uint16_t numextin{};
    std::uint8_t numcntr{}, numseqstate{}, traceidsize{}, unused_15_12{}, numextinsel{};
    bool redfuncntr_oe{}, unused_24{}, lpoverride{}, atbtrig{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31>("REDFUNCNTR or OE", r.redfuncntr_oe), bits<30, 28>("NUMCNTR", r.numcntr),
               bits<27, 25>("NUMSEQSTATE", r.numseqstate), bits<24>("reserved[24]", r.unused_24),
               bits<23>("LPOVERRIDE", r.lpoverride), bits<22>("ATBTRIG", r.atbtrig),
               bits<21, 16>("TRACEIDSIZE", r.traceidsize), bits<15, 12>("reserved[15:12]", r.unused_15_12),
               bits<11, 9>("NUMEXTINSEL", r.numextinsel), bits<8, 0>("NUMEXTIN", r.numextin));
    }
    bool operator==(const Trcidr5&) const = default;
};

/// TRCIDR6, ID 6. Offset 0x1F8.
struct Trcidr6 {
    static constexpr std::string_view name = "TRCIDR6", title = "ID 6";
    static constexpr unsigned offset = 0x1f8, count = 1, stride = 4, bytes = 4;

    std::uint32_t unused_31_3{};
    std::uint8_t exlevel_rl{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 3>("reserved[31:3]", r.unused_31_3), bits<2, 0>("EXLEVEL_RL", r.exlevel_rl));
    }
    bool operator==(const Trcidr6&) const = default;
};

/// TRCIDR7, ID 7. Offset 0x1FC.
struct Trcidr7 {
    static constexpr std::string_view name = "TRCIDR7", title = "ID 7";
    static constexpr unsigned offset = 0x1fc, count = 1, stride = 4, bytes = 4;

    std::uint32_t value{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 0>("reserved", r.value));
    }
    bool operator==(const Trcidr7&) const = default;
};

/// TRCRSCTLR, resource selection control. Offset 0x208, 30 of them. Selectors 2 to 31; 0 and 1 are fixed.
struct Trcrsctlr {
    static constexpr std::string_view name = "TRCRSCTLR", title = "resource selection control";
    static constexpr unsigned offset = 0x208, count = 30, stride = 4, bytes = 4;

    std::uint16_t unused_31_22{}, select{};
    std::uint8_t group{};
    bool pairinv{}, inv{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 22>("reserved[31:22]", r.unused_31_22), bits<21>("PAIRINV", r.pairinv), bits<20>("INV", r.inv),
               bits<19, 16>("GROUP", r.group), bits<15, 0>("SELECT", r.select));
    }
    bool operator==(const Trcrsctlr&) const = default;
};

/// TRCSSCCR, single-shot comparator control. Offset 0x280, 8 of them.
struct Trcssccr {
    static constexpr std::string_view name = "TRCSSCCR", title = "single-shot comparator control";
    static constexpr unsigned offset = 0x280, count = 8, stride = 4, bytes = 4;

    std::uint16_t sac{};
    std::uint8_t unused_31_25{}, arc{};
    bool rst{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 25>("reserved[31:25]", r.unused_31_25), bits<24>("RST", r.rst), bits<23, 16>("ARC", r.arc),
               bits<15, 0>("SAC", r.sac));
    }
    bool operator==(const Trcssccr&) const = default;
};

/// TRCSSCSR, single-shot comparator status. Offset 0x2A0, 8 of them.
struct Trcsscsr {
    static constexpr std::string_view name = "TRCSSCSR", title = "single-shot comparator status";
    static constexpr unsigned offset = 0x2a0, count = 8, stride = 4, bytes = 4;

    std::uint32_t unused_29_4{};
    bool status{}, pending{}, pc{}, dv{}, da{}, inst{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31>("STATUS", r.status), bits<30>("PENDING", r.pending),
               bits<29, 4>("reserved[29:4]", r.unused_29_4), bits<3>("PC", r.pc), bits<2>("DV", r.dv),
               bits<1>("DA", r.da), bits<0>("INST", r.inst));
    }
    bool operator==(const Trcsscsr&) const = default;
};

/// TRCSSPCICR, single-shot PE comparator input control. Offset 0x2C0, 8 of them.
struct Trcsspcicr {
    static constexpr std::string_view name = "TRCSSPCICR", title = "single-shot PE comparator input control";
    static constexpr unsigned offset = 0x2c0, count = 8, stride = 4, bytes = 4;

    std::uint32_t unused_31_8{};
    std::uint8_t pc{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 8>("reserved[31:8]", r.unused_31_8), bits<7, 0>("PC", r.pc));
    }
    bool operator==(const Trcsspcicr&) const = default;
};

/// TRCOSLAR, OS Lock access. Offset 0x300. Write-only; ETMv4 with a lock of its own.
struct Trcoslar {
    static constexpr std::string_view name = "TRCOSLAR", title = "OS Lock access";
    static constexpr unsigned offset = 0x300, count = 1, stride = 4, bytes = 4;

    std::uint32_t unused_31_1{};
    bool lock{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 1>("reserved[31:1]", r.unused_31_1), bits<0>("lock", r.lock));
    }
    bool operator==(const Trcoslar&) const = default;
};

/// TRCOSLSR, OS Lock status. Offset 0x304. Read-only.
struct Trcoslsr {
    static constexpr std::string_view name = "TRCOSLSR", title = "OS Lock status";
    static constexpr unsigned offset = 0x304, count = 1, stride = 4, bytes = 4;

    std::uint32_t unused_31_5{};
    std::uint8_t oslm_high{};
    bool ntt{}, oslk{}, oslm_low{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 5>("reserved[31:5]", r.unused_31_5), bits<4, 3>("OSLM[2:1]", r.oslm_high),
               bits<2>("nTT", r.ntt), bits<1>("OSLK", r.oslk), bits<0>("OSLM[0]", r.oslm_low));
    }
    bool operator==(const Trcoslsr&) const = default;
};

/// TRCPDCR, power-down control. Offset 0x310. ETMv4 only.
struct Trcpdcr {
    static constexpr std::string_view name = "TRCPDCR", title = "power-down control";
    static constexpr unsigned offset = 0x310, count = 1, stride = 4, bytes = 4;

    std::uint32_t unused_31_4{};
    std::uint8_t unused_2_0{};
    bool pu{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 4>("reserved[31:4]", r.unused_31_4), bits<3>("PU", r.pu),
               bits<2, 0>("reserved[2:0]", r.unused_2_0));
    }
    bool operator==(const Trcpdcr&) const = default;
};

/// TRCPDSR, power-down status. Offset 0x314. Read-only.
struct Trcpdsr {
    static constexpr std::string_view name = "TRCPDSR", title = "power-down status";
    static constexpr unsigned offset = 0x314, count = 1, stride = 4, bytes = 4;

    std::uint32_t unused_31_6{};
    std::uint8_t unused_4_2{};
    bool oslk{}, stickypd{}, power{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 6>("reserved[31:6]", r.unused_31_6), bits<5>("OSLK", r.oslk),
               bits<4, 2>("reserved[4:2]", r.unused_4_2), bits<1>("STICKYPD", r.stickypd), bits<0>("POWER", r.power));
    }
    bool operator==(const Trcpdsr&) const = default;
};

/// TRCACVR, address comparator value. Offset 0x400, 16 of them every 8 bytes.
struct Trcacvr {
    static constexpr std::string_view name = "TRCACVR", title = "address comparator value";
    static constexpr unsigned offset = 0x400, count = 16, stride = 8, bytes = 8;

    std::uint64_t address{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.doubleword(bits<63, 0>("ADDRESS", r.address));
    }
    bool operator==(const Trcacvr&) const = default;
};

/// TRCACATR, address comparator access type. Offset 0x480, 16 of them every 8 bytes. Bits 19:16: DATASIZE and DATAMATCH
/// in ETMv4; EXLEVEL_RL in bits 18:16 of an ETE with RME.
struct Trcacatr {
    static constexpr std::string_view name = "TRCACATR", title = "address comparator access type";
    static constexpr unsigned offset = 0x480, count = 16, stride = 8, bytes = 8;

    std::uint64_t unused_63_22{};
    std::uint8_t high{}, exlevel_ns{}, exlevel_s{}, context{}, contexttype{}, type{};
    bool dtbm{}, datarange{}, unused_15{}, unused_7{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.doubleword(bits<63, 22>("reserved[63:22]", r.unused_63_22), bits<21>("DTBM", r.dtbm),
                     bits<20>("DATARANGE", r.datarange), bits<19, 16>("DATASIZE, DATAMATCH or EXLEVEL_RL", r.high),
                     bits<15>("reserved[15]", r.unused_15), bits<14, 12>("EXLEVEL_NS", r.exlevel_ns),
                     bits<11, 8>("EXLEVEL_S", r.exlevel_s), bits<7>("reserved[7]", r.unused_7),
                     bits<6, 4>("CONTEXT", r.context), bits<3, 2>("CONTEXTTYPE", r.contexttype),
                     bits<1, 0>("TYPE", r.type));
    }
    bool operator==(const Trcacatr&) const = default;
};

/// TRCDVCVR, data value comparator value. Offset 0x500, 8 of them every 16 bytes. ETMv4 only. Published register
/// lists disagree on the stride; 16 is that of the system register encodings.
struct Trcdvcvr {
    static constexpr std::string_view name = "TRCDVCVR", title = "data value comparator value";
    static constexpr unsigned offset = 0x500, count = 8, stride = 16, bytes = 8;

    std::uint64_t value{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.doubleword(bits<63, 0>("VALUE", r.value));
    }
    bool operator==(const Trcdvcvr&) const = default;
};

/// TRCDVCMR, data value comparator mask. Offset 0x580, 8 of them every 16 bytes. ETMv4 only.
struct Trcdvcmr {
    static constexpr std::string_view name = "TRCDVCMR", title = "data value comparator mask";
    static constexpr unsigned offset = 0x580, count = 8, stride = 16, bytes = 8;

    std::uint64_t mask{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.doubleword(bits<63, 0>("MASK", r.mask));
    }
    bool operator==(const Trcdvcmr&) const = default;
};

/// TRCCIDCVR, Context ID comparator value. Offset 0x600, 8 of them every 8 bytes.
struct Trccidcvr {
    static constexpr std::string_view name = "TRCCIDCVR", title = "Context ID comparator value";
    static constexpr unsigned offset = 0x600, count = 8, stride = 8, bytes = 8;

    std::uint64_t value{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.doubleword(bits<63, 0>("VALUE", r.value));
    }
    bool operator==(const Trccidcvr&) const = default;
};

/// TRCVMIDCVR, VMID comparator value. Offset 0x640, 8 of them every 8 bytes.
struct Trcvmidcvr {
    static constexpr std::string_view name = "TRCVMIDCVR", title = "VMID comparator value";
    static constexpr unsigned offset = 0x640, count = 8, stride = 8, bytes = 8;

    std::uint64_t value{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.doubleword(bits<63, 0>("VALUE", r.value));
    }
    bool operator==(const Trcvmidcvr&) const = default;
};

/// TRCCIDCCTLR, Context ID comparator control. Offset 0x680, 2 of them. One byte a comparator, 4 to 7 in the second
/// register: bit m set ignores byte m.
struct Trccidcctlr {
    static constexpr std::string_view name = "TRCCIDCCTLR", title = "Context ID comparator control";
    static constexpr unsigned offset = 0x680, count = 2, stride = 4, bytes = 4;

    std::uint8_t comp3{}, comp2{}, comp1{}, comp0{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 24>("COMP3", r.comp3), bits<23, 16>("COMP2", r.comp2), bits<15, 8>("COMP1", r.comp1),
               bits<7, 0>("COMP0", r.comp0));
    }
    bool operator==(const Trccidcctlr&) const = default;
};

/// TRCVMIDCCTLR, VMID comparator control. Offset 0x688, 2 of them. As TRCCIDCCTLR.
struct Trcvmidcctlr {
    static constexpr std::string_view name = "TRCVMIDCCTLR", title = "VMID comparator control";
    static constexpr unsigned offset = 0x688, count = 2, stride = 4, bytes = 4;

    std::uint8_t comp3{}, comp2{}, comp1{}, comp0{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 24>("COMP3", r.comp3), bits<23, 16>("COMP2", r.comp2), bits<15, 8>("COMP1", r.comp1),
               bits<7, 0>("COMP0", r.comp0));
    }
    bool operator==(const Trcvmidcctlr&) const = default;
};

/// TRCITCTRL, integration mode control. Offset 0xF00.
struct Trcitctrl {
    static constexpr std::string_view name = "TRCITCTRL", title = "integration mode control";
    static constexpr unsigned offset = 0xf00, count = 1, stride = 4, bytes = 4;

    std::uint32_t unused_31_1{};
    bool ime{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 1>("reserved[31:1]", r.unused_31_1), bits<0>("IME", r.ime));
    }
    bool operator==(const Trcitctrl&) const = default;
};

/// TRCCLAIMSET, claim tag set. Offset 0xFA0.
struct Trcclaimset {
    static constexpr std::string_view name = "TRCCLAIMSET", title = "claim tag set";
    static constexpr unsigned offset = 0xfa0, count = 1, stride = 4, bytes = 4;

    std::uint32_t set{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 0>("SET", r.set));
    }
    bool operator==(const Trcclaimset&) const = default;
};

/// TRCCLAIMCLR, claim tag clear. Offset 0xFA4.
struct Trcclaimclr {
    static constexpr std::string_view name = "TRCCLAIMCLR", title = "claim tag clear";
    static constexpr unsigned offset = 0xfa4, count = 1, stride = 4, bytes = 4;

    std::uint32_t clear{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 0>("CLR", r.clear));
    }
    bool operator==(const Trcclaimclr&) const = default;
};

/// TRCDEVAFF0, device affinity 0. Offset 0xFA8.
struct Trcdevaff0 {
    static constexpr std::string_view name = "TRCDEVAFF0", title = "device affinity 0";
    static constexpr unsigned offset = 0xfa8, count = 1, stride = 4, bytes = 4;

    std::uint32_t mpidr{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 0>("MPIDR_EL1[31:0]", r.mpidr));
    }
    bool operator==(const Trcdevaff0&) const = default;
};

/// TRCDEVAFF1, device affinity 1. Offset 0xFAC.
struct Trcdevaff1 {
    static constexpr std::string_view name = "TRCDEVAFF1", title = "device affinity 1";
    static constexpr unsigned offset = 0xfac, count = 1, stride = 4, bytes = 4;

    std::uint32_t mpidr{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 0>("MPIDR_EL1[63:32]", r.mpidr));
    }
    bool operator==(const Trcdevaff1&) const = default;
};

/// TRCLAR, software lock access. Offset 0xFB0. Write-only; ETMv4 only. 0xC5ACCE55 unlocks.
struct Trclar {
    static constexpr std::string_view name = "TRCLAR", title = "software lock access";
    static constexpr unsigned offset = 0xfb0, count = 1, stride = 4, bytes = 4;

    std::uint32_t key{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 0>("KEY", r.key));
    }
    bool operator==(const Trclar&) const = default;
};

/// TRCLSR, software lock status. Offset 0xFB4. Read-only; ETMv4 only.
struct Trclsr {
    static constexpr std::string_view name = "TRCLSR", title = "software lock status";
    static constexpr unsigned offset = 0xfb4, count = 1, stride = 4, bytes = 4;

    std::uint32_t unused_31_3{};
    bool ntt{}, slk{}, sli{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 3>("reserved[31:3]", r.unused_31_3), bits<2>("nTT", r.ntt), bits<1>("SLK", r.slk),
               bits<0>("SLI", r.sli));
    }
    bool operator==(const Trclsr&) const = default;
};

/// TRCAUTHSTATUS, authentication status. Offset 0xFB8. Each pair: 0 absent, 2 disabled, 3 enabled.
struct Trcauthstatus {
    static constexpr std::string_view name = "TRCAUTHSTATUS", title = "authentication status";
    static constexpr unsigned offset = 0xfb8, count = 1, stride = 4, bytes = 4;

    std::uint8_t unused_31_28{}, rtnid{}, rtid{}, unused_23_16{}, rlnid{}, rlid{}, hnid{}, hid{}, snid{}, sid{},
        nsnid{}, nsid{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 28>("reserved[31:28]", r.unused_31_28), bits<27, 26>("RTNID", r.rtnid),
               bits<25, 24>("RTID", r.rtid), bits<23, 16>("reserved[23:16]", r.unused_23_16),
               bits<15, 14>("RLNID", r.rlnid), bits<13, 12>("RLID", r.rlid), bits<11, 10>("HNID", r.hnid),
               bits<9, 8>("HID", r.hid), bits<7, 6>("SNID", r.snid), bits<5, 4>("SID", r.sid),
               bits<3, 2>("NSNID", r.nsnid), bits<1, 0>("NSID", r.nsid));
    }
    bool operator==(const Trcauthstatus&) const = default;
};

/// TRCDEVARCH, device architecture. Offset 0xFBC. ARCHVER 4 is ETMv4, 5 is ETE; REVISION is the minor version.
struct Trcdevarch {
    static constexpr std::string_view name = "TRCDEVARCH", title = "device architecture";
    static constexpr unsigned offset = 0xfbc, count = 1, stride = 4, bytes = 4;

    std::uint16_t architect{}, archpart{};
    std::uint8_t revision{}, archver{};
    bool present{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 21>("ARCHITECT", r.architect), bits<20>("PRESENT", r.present),
               bits<19, 16>("REVISION", r.revision), bits<15, 12>("ARCHVER", r.archver),
               bits<11, 0>("ARCHPART", r.archpart));
    }
    bool operator==(const Trcdevarch&) const = default;
};

/// TRCDEVID2, device configuration 2. Offset 0xFC0.
struct Trcdevid2 {
    static constexpr std::string_view name = "TRCDEVID2", title = "device configuration 2";
    static constexpr unsigned offset = 0xfc0, count = 1, stride = 4, bytes = 4;

    std::uint32_t value{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 0>("value", r.value));
    }
    bool operator==(const Trcdevid2&) const = default;
};

/// TRCDEVID1, device configuration 1. Offset 0xFC4.
struct Trcdevid1 {
    static constexpr std::string_view name = "TRCDEVID1", title = "device configuration 1";
    static constexpr unsigned offset = 0xfc4, count = 1, stride = 4, bytes = 4;

    std::uint32_t value{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 0>("value", r.value));
    }
    bool operator==(const Trcdevid1&) const = default;
};

/// TRCDEVID, device configuration. Offset 0xFC8.
struct Trcdevid {
    static constexpr std::string_view name = "TRCDEVID", title = "device configuration";
    static constexpr unsigned offset = 0xfc8, count = 1, stride = 4, bytes = 4;

    std::uint32_t value{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 0>("value", r.value));
    }
    bool operator==(const Trcdevid&) const = default;
};

/// TRCDEVTYPE, device type. Offset 0xFCC.
struct Trcdevtype {
    static constexpr std::string_view name = "TRCDEVTYPE", title = "device type";
    static constexpr unsigned offset = 0xfcc, count = 1, stride = 4, bytes = 4;

    std::uint32_t unused_31_8{};
    std::uint8_t sub{}, major{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 8>("reserved[31:8]", r.unused_31_8), bits<7, 4>("SUB", r.sub), bits<3, 0>("MAJOR", r.major));
    }
    bool operator==(const Trcdevtype&) const = default;
};

/// TRCPIDR4, peripheral ID 4. Offset 0xFD0.
struct Trcpidr4 {
    static constexpr std::string_view name = "TRCPIDR4", title = "peripheral ID 4";
    static constexpr unsigned offset = 0xfd0, count = 1, stride = 4, bytes = 4;

    std::uint32_t unused_31_8{};
    std::uint8_t size{}, des_2{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 8>("reserved[31:8]", r.unused_31_8), bits<7, 4>("SIZE", r.size), bits<3, 0>("DES_2", r.des_2));
    }
    bool operator==(const Trcpidr4&) const = default;
};

/// TRCPIDR5, peripheral ID 5 to 7. Offset 0xFD4, 3 of them.
struct Trcpidr5 {
    static constexpr std::string_view name = "TRCPIDR5", title = "peripheral ID 5 to 7";
    static constexpr unsigned offset = 0xfd4, count = 3, stride = 4, bytes = 4;

    std::uint32_t value{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 0>("reserved", r.value));
    }
    bool operator==(const Trcpidr5&) const = default;
};

/// TRCPIDR0, peripheral ID 0. Offset 0xFE0.
struct Trcpidr0 {
    static constexpr std::string_view name = "TRCPIDR0", title = "peripheral ID 0";
    static constexpr unsigned offset = 0xfe0, count = 1, stride = 4, bytes = 4;

    std::uint32_t unused_31_8{};
    std::uint8_t part_0{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 8>("reserved[31:8]", r.unused_31_8), bits<7, 0>("PART_0", r.part_0));
    }
    bool operator==(const Trcpidr0&) const = default;
};

/// TRCPIDR1, peripheral ID 1. Offset 0xFE4.
struct Trcpidr1 {
    static constexpr std::string_view name = "TRCPIDR1", title = "peripheral ID 1";
    static constexpr unsigned offset = 0xfe4, count = 1, stride = 4, bytes = 4;

    std::uint32_t unused_31_8{};
    std::uint8_t des_0{}, part_1{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 8>("reserved[31:8]", r.unused_31_8), bits<7, 4>("DES_0", r.des_0),
               bits<3, 0>("PART_1", r.part_1));
    }
    bool operator==(const Trcpidr1&) const = default;
};

/// TRCPIDR2, peripheral ID 2. Offset 0xFE8.
struct Trcpidr2 {
    static constexpr std::string_view name = "TRCPIDR2", title = "peripheral ID 2";
    static constexpr unsigned offset = 0xfe8, count = 1, stride = 4, bytes = 4;

    std::uint32_t unused_31_8{};
    std::uint8_t revision{}, des_1{};
    bool jedec{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 8>("reserved[31:8]", r.unused_31_8), bits<7, 4>("REVISION", r.revision),
               bits<3>("JEDEC", r.jedec), bits<2, 0>("DES_1", r.des_1));
    }
    bool operator==(const Trcpidr2&) const = default;
};

/// TRCPIDR3, peripheral ID 3. Offset 0xFEC.
struct Trcpidr3 {
    static constexpr std::string_view name = "TRCPIDR3", title = "peripheral ID 3";
    static constexpr unsigned offset = 0xfec, count = 1, stride = 4, bytes = 4;

    std::uint32_t unused_31_8{};
    std::uint8_t revand{}, cmod{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 8>("reserved[31:8]", r.unused_31_8), bits<7, 4>("REVAND", r.revand),
               bits<3, 0>("CMOD", r.cmod));
    }
    bool operator==(const Trcpidr3&) const = default;
};

/// TRCCIDR, component ID 0 to 3. Offset 0xFF0, 4 of them.
struct Trccidr {
    static constexpr std::string_view name = "TRCCIDR", title = "component ID 0 to 3";
    static constexpr unsigned offset = 0xff0, count = 4, stride = 4, bytes = 4;

    std::uint32_t unused_31_8{};
    std::uint8_t prmbl{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 8>("reserved[31:8]", r.unused_31_8), bits<7, 0>("PRMBL", r.prmbl));
    }
    bool operator==(const Trccidr&) const = default;
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
        const auto group = [&](auto& registers) {
            using Register = std::remove_cvref_t<decltype(registers[0])>;
            unsigned offset = Register::offset;
            for (auto& r : registers) f(r, offset), offset += Register::stride;
        };
        const auto one = [&](auto& r) { f(r, std::remove_cvref_t<decltype(r)>::offset); };
        one(self.prgctlr), one(self.procselr), one(self.statr), one(self.configr), one(self.auxctlr);
        one(self.eventctl0r), one(self.eventctl1r), one(self.rsr), one(self.stallctlr), one(self.tsctlr);
        one(self.syncpr), one(self.ccctlr), one(self.bbctlr), one(self.traceidr), one(self.qctlr), one(self.iteedcr);
        one(self.victlr), one(self.viiectlr), one(self.vissctlr), one(self.vipcssctlr), one(self.vdctlr);
        one(self.vdsacctlr), one(self.vdarcctlr), group(self.seqevr), one(self.seqrstevr), one(self.seqstr);
        group(self.extinselr), group(self.cntrldvr), group(self.cntctlr), group(self.cntvr), one(self.idr8);
        one(self.idr9), one(self.idr10), one(self.idr11), one(self.idr12), one(self.idr13), one(self.imspec0);
        group(self.imspec), one(self.idr0), one(self.idr1), one(self.idr2), one(self.idr3), one(self.idr4);
        one(self.idr5), one(self.idr6), one(self.idr7), group(self.rsctlr), group(self.ssccr), group(self.sscsr);
        group(self.sspcicr), one(self.oslar), one(self.oslsr), one(self.pdcr), one(self.pdsr), group(self.acvr);
        group(self.acatr), group(self.dvcvr), group(self.dvcmr), group(self.cidcvr), group(self.vmidcvr);
        group(self.cidcctlr), group(self.vmidcctlr), one(self.itctrl), one(self.claimset), one(self.claimclr);
        one(self.devaff0), one(self.devaff1), one(self.lar), one(self.lsr), one(self.authstatus), one(self.devarch);
        one(self.devid2), one(self.devid1), one(self.devid), one(self.devtype), one(self.pidr4), group(self.pidr5);
        one(self.pidr0), one(self.pidr1), one(self.pidr2), one(self.pidr3), group(self.cidr);
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
