/// Registers of the Statistical Profiling Extension, and the fields of other registers on which it depends, field by
/// field (docs/spec/spe.md, section 2). Each is described once: one function names its fields, and reading, writing,
/// printing and checking use it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "waymark/core/registers.h"
#include "waymark/core/wire.h"

namespace waymark::spe {

// Every register has its published name, a title, the section of docs/spec/spe.md, its encoding, and its offset in
// memory with FEAT_NV2 (0: none).

/// The encoding by which MRS and MSR identify a register.
struct Encoding {
    std::uint8_t op0{}, op1{}, crn{}, crm{}, op2{};
    bool operator==(const Encoding&) const = default;
};

/// PMSCR_EL1, the statistical profiling control register of EL1 (2.1).
struct PmscrEl1 {
    static constexpr std::string_view name = "PMSCR_EL1", title = "statistical profiling control, EL1", section = "2.1";
    static constexpr Encoding encoding{3, 0, 9, 9, 0};
    static constexpr unsigned nv2_offset = 0x828, bytes = 8;

    std::uint64_t res0_63_11{};
    std::uint8_t ee{}, pct{};
    bool ke{}, ts{}, pa{}, cx{}, res0_2{}, e1spe{}, e0spe{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.doubleword(bits<63, 11>("RES0[63:11]", r.res0_63_11), bits<10>("KE", r.ke), bits<9, 8>("EE", r.ee),
                     bits<7, 6>("PCT", r.pct), bits<5>("TS", r.ts), bits<4>("PA", r.pa), bits<3>("CX", r.cx),
                     bits<2>("RES0[2]", r.res0_2), bits<1>("E1SPE", r.e1spe), bits<0>("E0SPE", r.e0spe));
    }
    bool operator==(const PmscrEl1&) const = default;
};

/// PMSCR_EL2, the statistical profiling control register of EL2 (2.2).
struct PmscrEl2 {
    static constexpr std::string_view name = "PMSCR_EL2", title = "statistical profiling control, EL2", section = "2.2";
    static constexpr Encoding encoding{3, 4, 9, 9, 0};
    static constexpr unsigned nv2_offset = 0x0, bytes = 8;

    std::uint64_t res0_63_12{};
    std::uint8_t ee{}, pct{};
    bool en_vm{}, ke{}, ts{}, pa{}, cx{}, res0_2{}, e2spe{}, e0hspe{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.doubleword(bits<63, 12>("RES0[63:12]", r.res0_63_12), bits<11>("EnVM", r.en_vm), bits<10>("KE", r.ke),
                     bits<9, 8>("EE", r.ee), bits<7, 6>("PCT", r.pct), bits<5>("TS", r.ts), bits<4>("PA", r.pa),
                     bits<3>("CX", r.cx), bits<2>("RES0[2]", r.res0_2), bits<1>("E2SPE", r.e2spe),
                     bits<0>("E0HSPE", r.e0hspe));
    }
    bool operator==(const PmscrEl2&) const = default;
};

/// PMSFCR_EL1, the sampling filter control register (2.3).
struct PmsfcrEl1 {
    static constexpr std::string_view name = "PMSFCR_EL1", title = "sampling filter control", section = "2.3";
    static constexpr Encoding encoding{3, 0, 9, 9, 4};
    static constexpr unsigned nv2_offset = 0x0, bytes = 8;

    std::uint32_t res0_47_21{};
    std::uint16_t res0_63_53{}, res0_15_5{};
    bool simd_m{}, fp_m{}, st_m{}, ld_m{}, b_m{}, simd{}, fp{}, st{}, ld{}, b{}, fds{}, fn_e{}, fl{}, ft{}, fe{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.doubleword(bits<63, 53>("RES0[63:53]", r.res0_63_53), bits<52>("SIMDm", r.simd_m), bits<51>("FPm", r.fp_m),
                     bits<50>("STm", r.st_m), bits<49>("LDm", r.ld_m), bits<48>("Bm", r.b_m),
                     bits<47, 21>("RES0[47:21]", r.res0_47_21), bits<20>("SIMD", r.simd), bits<19>("FP", r.fp),
                     bits<18>("ST", r.st), bits<17>("LD", r.ld), bits<16>("B", r.b),
                     bits<15, 5>("RES0[15:5]", r.res0_15_5), bits<4>("FDS", r.fds), bits<3>("FnE", r.fn_e),
                     bits<2>("FL", r.fl), bits<1>("FT", r.ft), bits<0>("FE", r.fe));
    }
    bool operator==(const PmsfcrEl1&) const = default;
};

/// PMSEVFR_EL1, the sampling event filter register (2.4): events that must be 1.
struct PmsevfrEl1 {
    static constexpr std::string_view name = "PMSEVFR_EL1", title = "sampling event filter", section = "2.4";
    static constexpr Encoding encoding{3, 0, 9, 9, 5};
    static constexpr unsigned nv2_offset = 0x830, bytes = 8;

    std::uint64_t e{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.doubleword(bits<63, 0>("E", r.e));
    }
    bool operator==(const PmsevfrEl1&) const = default;
};

/// PMSNEVFR_EL1, the sampling inverted event filter register (2.4): events that must be 0.
struct PmsnevfrEl1 {
    static constexpr std::string_view name = "PMSNEVFR_EL1", title = "sampling inverted event filter", section = "2.4";
    static constexpr Encoding encoding{3, 0, 9, 9, 1};
    static constexpr unsigned nv2_offset = 0x850, bytes = 8;

    std::uint64_t e{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.doubleword(bits<63, 0>("E", r.e));
    }
    bool operator==(const PmsnevfrEl1&) const = default;
};

/// PMSLATFR_EL1, the sampling latency filter register (2.4).
struct PmslatfrEl1 {
    static constexpr std::string_view name = "PMSLATFR_EL1", title = "sampling latency filter", section = "2.4";
    static constexpr Encoding encoding{3, 0, 9, 9, 6};
    static constexpr unsigned nv2_offset = 0x848, bytes = 8;

    std::uint64_t res0_63_16{};
    std::uint16_t minlat{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.doubleword(bits<63, 16>("RES0[63:16]", r.res0_63_16), bits<15, 0>("MINLAT", r.minlat));
    }
    bool operator==(const PmslatfrEl1&) const = default;
};

/// PMSDSFR_EL1, the sampling data source filter register (2.4): the sources to keep.
struct PmsdsfrEl1 {
    static constexpr std::string_view name = "PMSDSFR_EL1", title = "sampling data source filter", section = "2.4";
    static constexpr Encoding encoding{3, 0, 9, 10, 4};
    static constexpr unsigned nv2_offset = 0x858, bytes = 8;

    std::uint64_t s{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.doubleword(bits<63, 0>("S", r.s));
    }
    bool operator==(const PmsdsfrEl1&) const = default;
};

/// PMSIRR_EL1, the sampling interval reload register (2.5).
struct PmsirrEl1 {
    static constexpr std::string_view name = "PMSIRR_EL1", title = "sampling interval reload", section = "2.5";
    static constexpr Encoding encoding{3, 0, 9, 9, 3};
    static constexpr unsigned nv2_offset = 0x840, bytes = 8;

    std::uint32_t res0_63_32{}, interval{};
    std::uint8_t res0_7_1{};
    bool rnd{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.doubleword(bits<63, 32>("RES0[63:32]", r.res0_63_32), bits<31, 8>("INTERVAL", r.interval),
                     bits<7, 1>("RES0[7:1]", r.res0_7_1), bits<0>("RND", r.rnd));
    }
    bool operator==(const PmsirrEl1&) const = default;
};

/// PMSICR_EL1, the sampling interval counter register (2.5).
struct PmsicrEl1 {
    static constexpr std::string_view name = "PMSICR_EL1", title = "sampling interval counter", section = "2.5";
    static constexpr Encoding encoding{3, 0, 9, 9, 2};
    static constexpr unsigned nv2_offset = 0x838, bytes = 8;

    std::uint32_t res0_55_32{}, count_31_0{};
    std::uint8_t ecount{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.doubleword(bits<63, 56>("ECOUNT", r.ecount), bits<55, 32>("RES0[55:32]", r.res0_55_32),
                     bits<31, 0>("COUNT", r.count_31_0));
    }
    bool operator==(const PmsicrEl1&) const = default;
};

/// PMSIDR_EL1, the sampling profiling ID register (2.6).
struct PmsidrEl1 {
    static constexpr std::string_view name = "PMSIDR_EL1", title = "sampling profiling ID", section = "2.6";
    static constexpr Encoding encoding{3, 0, 9, 9, 7};
    static constexpr unsigned nv2_offset = 0x0, bytes = 8;

    std::uint32_t res0_63_33{};
    std::uint8_t altclk{}, format{}, count_size{}, max_size{}, interval{};
    bool sme{}, fpf{}, eft{}, crr{}, pbt{}, fds{}, fn_e{}, e_rnd{}, lds{}, arch_inst{}, fl{}, ft{}, fe{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.doubleword(bits<63, 33>("RES0[63:33]", r.res0_63_33), bits<32>("SME", r.sme),
                     bits<31, 28>("ALTCLK", r.altclk), bits<27>("FPF", r.fpf), bits<26>("EFT", r.eft),
                     bits<25>("CRR", r.crr), bits<24>("PBT", r.pbt), bits<23, 20>("Format", r.format),
                     bits<19, 16>("CountSize", r.count_size), bits<15, 12>("MaxSize", r.max_size),
                     bits<11, 8>("Interval", r.interval), bits<7>("FDS", r.fds), bits<6>("FnE", r.fn_e),
                     bits<5>("ERnd", r.e_rnd), bits<4>("LDS", r.lds), bits<3>("ArchInst", r.arch_inst),
                     bits<2>("FL", r.fl), bits<1>("FT", r.ft), bits<0>("FE", r.fe));
    }
    bool operator==(const PmsidrEl1&) const = default;
};

/// PMBLIMITR_EL1, the profiling buffer limit address register (2.7).
struct PmblimitrEl1 {
    static constexpr std::string_view name = "PMBLIMITR_EL1", title = "profiling buffer limit", section = "2.7";
    static constexpr Encoding encoding{3, 0, 9, 10, 0};
    static constexpr unsigned nv2_offset = 0x800, bytes = 8;

    std::uint64_t limit{};
    std::uint8_t res0_11_8{}, res0_4_3{}, fm{};
    bool n_vm{}, res0_6{}, pmfz{}, e{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.doubleword(bits<63, 12>("LIMIT", r.limit), bits<11, 8>("RES0[11:8]", r.res0_11_8), bits<7>("nVM", r.n_vm),
                     bits<6>("RES0[6]", r.res0_6), bits<5>("PMFZ", r.pmfz), bits<4, 3>("RES0[4:3]", r.res0_4_3),
                     bits<2, 1>("FM", r.fm), bits<0>("E", r.e));
    }
    bool operator==(const PmblimitrEl1&) const = default;
};

/// PMBPTR_EL1, the profiling buffer write pointer register (2.7).
struct PmbptrEl1 {
    static constexpr std::string_view name = "PMBPTR_EL1", title = "profiling buffer write pointer", section = "2.7";
    static constexpr Encoding encoding{3, 0, 9, 10, 1};
    static constexpr unsigned nv2_offset = 0x810, bytes = 8;

    std::uint64_t ptr{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.doubleword(bits<63, 0>("PTR", r.ptr));
    }
    bool operator==(const PmbptrEl1&) const = default;
};

/// The profiling buffer status in the form of PMBSR_EL1, PMBSR_EL2 and PMBSR_EL3 (2.7).
struct PmbsrFields {
    std::uint32_t mss2{};
    std::uint16_t mss{};
    std::uint8_t res0_63_56{}, ec{}, res0_25_20{};
    bool dl{}, ea{}, s{}, coll{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.doubleword(bits<63, 56>("RES0[63:56]", r.res0_63_56), bits<55, 32>("MSS2", r.mss2), bits<31, 26>("EC", r.ec),
                     bits<25, 20>("RES0[25:20]", r.res0_25_20), bits<19>("DL", r.dl), bits<18>("EA", r.ea),
                     bits<17>("S", r.s), bits<16>("COLL", r.coll), bits<15, 0>("MSS", r.mss));
    }
    bool operator==(const PmbsrFields&) const = default;
};

/// PMBSR_EL1, the profiling buffer status register.
struct PmbsrEl1 : PmbsrFields {
    static constexpr std::string_view name = "PMBSR_EL1", title = "profiling buffer status", section = "2.7";
    static constexpr Encoding encoding{3, 0, 9, 10, 3};
    static constexpr unsigned nv2_offset = 0x820, bytes = 8;
    bool operator==(const PmbsrEl1&) const = default;
};
/// PMBSR_EL2, the profiling buffer status register of EL2, with FEAT_SPE_EXC.
struct PmbsrEl2 : PmbsrFields {
    static constexpr std::string_view name = "PMBSR_EL2", title = "profiling buffer status, EL2", section = "2.7";
    static constexpr Encoding encoding{3, 4, 9, 10, 3};
    static constexpr unsigned nv2_offset = 0x0, bytes = 8;
    bool operator==(const PmbsrEl2&) const = default;
};
/// PMBSR_EL3, the profiling buffer status register of EL3, with FEAT_SPE_EXC.
struct PmbsrEl3 : PmbsrFields {
    static constexpr std::string_view name = "PMBSR_EL3", title = "profiling buffer status, EL3", section = "2.7";
    static constexpr Encoding encoding{3, 6, 9, 10, 3};
    static constexpr unsigned nv2_offset = 0x0, bytes = 8;
    bool operator==(const PmbsrEl3&) const = default;
};

/// PMBMAR_EL1, the profiling buffer memory attribute register (2.7).
struct PmbmarEl1 {
    static constexpr std::string_view name = "PMBMAR_EL1", title = "profiling buffer memory attributes",
                                      section = "2.7";
    static constexpr Encoding encoding{3, 0, 9, 10, 5};
    static constexpr unsigned nv2_offset = 0x0, bytes = 8;

    std::uint64_t res0_63_10{};
    std::uint8_t sh{}, attr{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.doubleword(bits<63, 10>("RES0[63:10]", r.res0_63_10), bits<9, 8>("SH", r.sh), bits<7, 0>("Attr", r.attr));
    }
    bool operator==(const PmbmarEl1&) const = default;
};

/// PMBIDR_EL1, the profiling buffer ID register (2.7).
struct PmbidrEl1 {
    static constexpr std::string_view name = "PMBIDR_EL1", title = "profiling buffer ID", section = "2.7";
    static constexpr Encoding encoding{3, 0, 9, 10, 7};
    static constexpr unsigned nv2_offset = 0x0, bytes = 8;

    std::uint32_t res0_31_12{};
    std::uint16_t res0_63_48{}, max_buff_size{};
    std::uint8_t ea{}, addr_mode{}, align{};
    bool f{}, p{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.doubleword(bits<63, 48>("RES0[63:48]", r.res0_63_48), bits<47, 32>("MaxBuffSize", r.max_buff_size),
                     bits<31, 12>("RES0[31:12]", r.res0_31_12), bits<11, 8>("EA", r.ea),
                     bits<7, 6>("AddrMode", r.addr_mode), bits<5>("F", r.f), bits<4>("P", r.p),
                     bits<3, 0>("Align", r.align));
    }
    bool operator==(const PmbidrEl1&) const = default;
};

/// MDCR_EL2, the monitor debug configuration register of EL2: the fields that concern profiling (2.8).
struct MdcrEl2 {
    static constexpr std::string_view name = "MDCR_EL2", title = "monitor debug configuration, EL2", section = "2.8";
    static constexpr Encoding encoding{3, 4, 1, 1, 1};
    static constexpr unsigned nv2_offset = 0x0, bytes = 8;

    std::uint32_t other_63_37{}, other_35_15{};
    std::uint16_t other_11_0{};
    std::uint8_t e2pb{};
    bool hpmfzs{}, tpms{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.doubleword(bits<63, 37>("other[63:37]", r.other_63_37), bits<36>("HPMFZS", r.hpmfzs),
                     bits<35, 15>("other[35:15]", r.other_35_15), bits<14>("TPMS", r.tpms),
                     bits<13, 12>("E2PB", r.e2pb), bits<11, 0>("other[11:0]", r.other_11_0));
    }
    bool operator==(const MdcrEl2&) const = default;
};

/// MDCR_EL3, the monitor debug configuration register of EL3: the fields that concern profiling (2.8).
struct MdcrEl3 {
    static constexpr std::string_view name = "MDCR_EL3", title = "monitor debug configuration, EL3", section = "2.8";
    static constexpr Encoding encoding{3, 6, 1, 3, 1};
    static constexpr unsigned nv2_offset = 0x0, bytes = 8;

    std::uint32_t other_35_14{};
    std::uint16_t other_10_0{};
    std::uint8_t other_63_56{}, other_54_53{}, pmsee{}, other_50_43{}, other_41_37{}, nspb{};
    bool en_pms4{}, en_pms3{}, en_pmsn{}, nspbe{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.doubleword(bits<63, 56>("other[63:56]", r.other_63_56), bits<55>("EnPMS4", r.en_pms4),
                     bits<54, 53>("other[54:53]", r.other_54_53), bits<52, 51>("PMSEE", r.pmsee),
                     bits<50, 43>("other[50:43]", r.other_50_43), bits<42>("EnPMS3", r.en_pms3),
                     bits<41, 37>("other[41:37]", r.other_41_37), bits<36>("EnPMSN", r.en_pmsn),
                     bits<35, 14>("other[35:14]", r.other_35_14), bits<13, 12>("NSPB", r.nspb),
                     bits<11>("NSPBE", r.nspbe), bits<10, 0>("other[10:0]", r.other_10_0));
    }
    bool operator==(const MdcrEl3&) const = default;
};

/// SCR_EL3, the secure configuration register: the fields that concern profiling (2.8).
struct ScrEl3 {
    static constexpr std::string_view name = "SCR_EL3", title = "secure configuration", section = "2.8";
    static constexpr Encoding encoding{3, 6, 1, 1, 0};
    static constexpr unsigned nv2_offset = 0x0, bytes = 8;

    std::uint64_t other_61_19{};
    std::uint32_t other_17_1{};
    bool other_63{}, nse{}, eel2{}, ns{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.doubleword(bits<63>("other[63]", r.other_63), bits<62>("NSE", r.nse),
                     bits<61, 19>("other[61:19]", r.other_61_19), bits<18>("EEL2", r.eel2),
                     bits<17, 1>("other[17:1]", r.other_17_1), bits<0>("NS", r.ns));
    }
    bool operator==(const ScrEl3&) const = default;
};

/// HCR_EL2, the hypervisor configuration register: the fields that concern profiling (2.8).
struct HcrEl2 {
    static constexpr std::string_view name = "HCR_EL2", title = "hypervisor configuration", section = "2.8";
    static constexpr Encoding encoding{3, 4, 1, 1, 0};
    static constexpr unsigned nv2_offset = 0x0, bytes = 8;

    std::uint32_t other_63_35{}, other_26_0{};
    std::uint8_t other_33_28{};
    bool e2h{}, tge{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.doubleword(bits<63, 35>("other[63:35]", r.other_63_35), bits<34>("E2H", r.e2h),
                     bits<33, 28>("other[33:28]", r.other_33_28), bits<27>("TGE", r.tge),
                     bits<26, 0>("other[26:0]", r.other_26_0));
    }
    bool operator==(const HcrEl2&) const = default;
};

/// PMCR_EL0, the performance monitors control register: the fields that concern profiling (2.8).
struct PmcrEl0 {
    static constexpr std::string_view name = "PMCR_EL0", title = "performance monitors control", section = "2.8";
    static constexpr Encoding encoding{3, 3, 9, 12, 0};
    static constexpr unsigned nv2_offset = 0x0, bytes = 8;

    std::uint32_t other_63_33{}, other_31_10{};
    std::uint16_t other_8_0{};
    bool fzs{}, fzo{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.doubleword(bits<63, 33>("other[63:33]", r.other_63_33), bits<32>("FZS", r.fzs),
                     bits<31, 10>("other[31:10]", r.other_31_10), bits<9>("FZO", r.fzo),
                     bits<8, 0>("other[8:0]", r.other_8_0));
    }
    bool operator==(const PmcrEl0&) const = default;
};

/// The fields of PSTATE that matter here, in the form of SPSR_ELx and CurrentEL: EL and nRW. SM, which these registers
/// lack, is bit 63. PSTATE has no encoding (2.8).
struct Pstate {
    static constexpr std::string_view name = "PSTATE", title = "process state", section = "2.8";
    static constexpr Encoding encoding{};
    static constexpr unsigned nv2_offset = 0, bytes = 8;

    std::uint64_t other_62_5{};
    std::uint8_t el{1}, other_1_0{};
    bool sm{}, nrw{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.doubleword(bits<63>("SM", r.sm), bits<62, 5>("other[62:5]", r.other_62_5), bits<4>("nRW", r.nrw),
                     bits<3, 2>("EL", r.el), bits<1, 0>("other[1:0]", r.other_1_0));
    }
    bool operator==(const Pstate&) const = default;
};

using Field = RegisterField;

/// A value in the usual notation of this field: binary for two and three bits, otherwise as `append_number` prints it;
/// EL is a number.
[[nodiscard]] std::string field_text(const Field& field);
/// Text such as `E1SPE=1 E0SPE=1`: the fields that are not 0; empty if all are 0.
[[nodiscard]] std::string to_text(const std::vector<Field>& fields);
/// `S3_0_C9_C9_0`.
[[nodiscard]] std::string to_text(const Encoding& encoding);

/// All registers that decide about profiling, and PSTATE. architecture.h has the effective values for a PE without EL3.
struct Registers {
    Pstate pstate;
    PmscrEl1 pmscr_el1;
    PmscrEl2 pmscr_el2;
    PmsfcrEl1 pmsfcr_el1;
    PmsevfrEl1 pmsevfr_el1;
    PmsnevfrEl1 pmsnevfr_el1;
    PmslatfrEl1 pmslatfr_el1;
    PmsdsfrEl1 pmsdsfr_el1;
    PmsirrEl1 pmsirr_el1;
    PmsicrEl1 pmsicr_el1;
    PmsidrEl1 pmsidr_el1;
    PmblimitrEl1 pmblimitr_el1;
    PmbptrEl1 pmbptr_el1;
    PmbsrEl1 pmbsr_el1;
    PmbsrEl2 pmbsr_el2;
    PmbsrEl3 pmbsr_el3;
    PmbmarEl1 pmbmar_el1;
    PmbidrEl1 pmbidr_el1;
    MdcrEl2 mdcr_el2;
    MdcrEl3 mdcr_el3;
    ScrEl3 scr_el3;
    HcrEl2 hcr_el2;
    PmcrEl0 pmcr_el0;

    /// Calls `f(register)` with every register.
    static void for_each(auto& self, auto&& f) {
        f(self.pstate), f(self.pmscr_el1), f(self.pmscr_el2), f(self.pmsfcr_el1), f(self.pmsevfr_el1);
        f(self.pmsnevfr_el1), f(self.pmslatfr_el1), f(self.pmsdsfr_el1), f(self.pmsirr_el1), f(self.pmsicr_el1);
        f(self.pmsidr_el1), f(self.pmblimitr_el1), f(self.pmbptr_el1), f(self.pmbsr_el1), f(self.pmbsr_el2);
        f(self.pmbsr_el3), f(self.pmbmar_el1), f(self.pmbidr_el1), f(self.mdcr_el2), f(self.mdcr_el3);
        f(self.scr_el3), f(self.hcr_el2), f(self.pmcr_el0);
    }

    /// The published name for another spelling of the name: lower case, the EL12 aliases, CurrentEL for PSTATE. Empty
    /// if there is no such register.
    [[nodiscard]] static std::string_view canonical(std::string_view name);

    /// Sets the register with this published name. Returns false if there is none.
    bool set(std::string_view name, std::uint64_t value);
    /// The value of the register with this name; nullopt if there is none.
    [[nodiscard]] std::optional<std::uint64_t> get(std::string_view name) const;

    /// Sets one field, by a name such as `MDCR_EL2.E2PB`. Returns false if there is no such field, or the value does
    /// not fit it.
    bool set_field(std::string_view name, std::uint64_t value);
    /// The field with such a name; nullopt if there is none.
    [[nodiscard]] std::optional<Field> field(std::string_view name) const;
    /// All fields of the register with this name; empty if there is no such register.
    [[nodiscard]] std::vector<Field> fields(std::string_view name) const;

    bool operator==(const Registers&) const = default;
};

}  // namespace waymark::spe
