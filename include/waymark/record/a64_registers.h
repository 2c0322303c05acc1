/// System registers whose values a recording of an AArch64 system needs, and the instructions that write them. The
/// plugin API of QEMU does not show registers. But QEMU ends a block at such an instruction, and its log of the next
/// block shows the general-purpose register that was written. Header only, for the plugin.
#pragma once

#include <cstdint>

namespace waymark::record {

enum class A64Register : std::uint8_t {
    none,
    scr_el3,          ///< security state of the lower exception levels
    hcr_el2,          ///< which register EL2 means by CONTEXTIDR_EL1
    vttbr_el2,        ///< the VMID of a guest
    contextidr_el1,   ///< as the instruction names it; at EL2 it may mean CONTEXTIDR_EL2
    contextidr_el12,  ///< EL1's, of a host at EL2
    contextidr_el2,
    // What statistical profiling depends on besides. QEMU has no register of the unit: such an MSR is undefined there.
    mdcr_el2,
    mdcr_el3,
    pmscr_el1,
    pmscr_el2,
    pmscr_el12,
    pmsfcr_el1,
    pmsevfr_el1,
    pmsnevfr_el1,
    pmslatfr_el1,
    pmsdsfr_el1,
    pmsirr_el1,
    pmsicr_el1,
    pmblimitr_el1,
    pmbptr_el1,
    pmbsr_el1,
};

/// The register that this instruction (MSR) writes.
[[nodiscard]] constexpr A64Register a64_register_written(std::uint32_t word) {
    switch (word & 0xffffffe0) {
        case 0xd51e1100: return A64Register::scr_el3;
        case 0xd51c1100: return A64Register::hcr_el2;
        case 0xd51c2100: return A64Register::vttbr_el2;
        case 0xd518d020: return A64Register::contextidr_el1;
        case 0xd51dd020: return A64Register::contextidr_el12;
        case 0xd51cd020: return A64Register::contextidr_el2;
        case 0xd51c1120: return A64Register::mdcr_el2;
        case 0xd51e1320: return A64Register::mdcr_el3;
        case 0xd5189900: return A64Register::pmscr_el1;
        case 0xd51c9900: return A64Register::pmscr_el2;
        case 0xd51d9900: return A64Register::pmscr_el12;
        case 0xd5189980: return A64Register::pmsfcr_el1;
        case 0xd51899a0: return A64Register::pmsevfr_el1;
        case 0xd5189920: return A64Register::pmsnevfr_el1;
        case 0xd51899c0: return A64Register::pmslatfr_el1;
        case 0xd5189a80: return A64Register::pmsdsfr_el1;
        case 0xd5189960: return A64Register::pmsirr_el1;
        case 0xd5189940: return A64Register::pmsicr_el1;
        case 0xd5189a00: return A64Register::pmblimitr_el1;
        case 0xd5189a20: return A64Register::pmbptr_el1;
        case 0xd5189a60: return A64Register::pmbsr_el1;
        default: return A64Register::none;
    }
}

/// Whether of a recording of flow only the VMID depends on this register.
[[nodiscard]] constexpr bool is_of_vmid_only(A64Register reg) {
    return reg == A64Register::vttbr_el2 || reg == A64Register::contextidr_el2;
}

/// Whether only statistical profiling depends on this register.
[[nodiscard]] constexpr bool is_of_profiling_only(A64Register reg) { return reg >= A64Register::mdcr_el2; }
/// Whether QEMU has no such register.
[[nodiscard]] constexpr bool is_unknown_to_qemu(A64Register reg) { return reg >= A64Register::pmscr_el1; }

/// The general-purpose register that contains the value: its number; 31: XZR.
[[nodiscard]] constexpr unsigned a64_register_source(std::uint32_t word) { return word & 0x1f; }

}  // namespace waymark::record
