/// The state of an AArch64 system's processors in a recording: exception level, security state and Context ID, from
/// QEMU's log.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "waymark/core/types.h"
#include "waymark/flow/exception.h"
#include "waymark/flow/flow.h"
#include "waymark/flow/unit.h"
#include "waymark/image/memory_map.h"
#include "waymark/record/a64_registers.h"

namespace waymark::record {

/// The type of an exception taken to AArch64. `number`: QEMU's number; `exception_class`: EC of the syndrome register
/// (Arm Architecture Reference Manual, ESR_ELx). `returns_after`: whether the preferred return address is after the
/// instruction that caused it; an SMC that a higher exception level traps returns to itself.
[[nodiscard]] flow::ExceptionClass a64_exception(std::uint32_t number, std::uint32_t exception_class,
                                                 bool returns_after);
/// Whether the instruction that caused the exception began and did not complete; with other exceptions, all
/// instructions before ELR completed.
[[nodiscard]] bool stops_instruction(flow::ExceptionClass kind);

class A64State {
public:
    /// `vmid`: the register with the traced VMID.
    explicit A64State(flow::VmidRegister vmid = flow::VmidRegister::none) : vmid_(vmid) {}
    /// Sets the state from here on, in the form of `words::state`.
    void state(std::uint32_t bits);
    void wrote(A64Register reg, std::uint64_t value);
    [[nodiscard]] bool aarch32() const { return aarch32_; }
    /// The Context ID is CONTEXTIDR_EL1; Context ID and VMID are 0 until they are written, and the same at every level.
    [[nodiscard]] flow::Context context() const;

private:
    flow::VmidRegister vmid_;
    std::uint8_t el_ = 3;
    bool ns_ = false;  ///< of the exception levels below EL3
    bool aarch32_ = false;
    std::uint64_t hcr_el2_ = 0;
    std::uint64_t vttbr_el2_ = 0;
    std::uint32_t contextidr_el1_ = 0, contextidr_el2_ = 0;
};

/// Which registers a recording needs besides SCR_EL3, HCR_EL2 and those with the Context ID.
struct A64Needs {
    bool vmid = false;       ///< those on which only the VMID depends
    bool profiling = false;  ///< those on which only statistical profiling depends
    [[nodiscard]] bool includes(A64Register reg) const {
        if (reg == A64Register::contextidr_el2) return vmid || profiling;
        return reg != A64Register::none && (vmid || !is_of_vmid_only(reg)) && (profiling || !is_of_profiling_only(reg));
    }
};
/// Places at which QEMU's log has to show registers, so that it shows what instructions wrote to system registers:
/// after each such instruction, and, if `needs.profiling`, at the entries of everything that may be a vector table,
/// since QEMU takes an exception where it has no such register. The places are in the image's executable parts, 4 bytes
/// each, ascending, at most `most_watched_writes` of each kind.
[[nodiscard]] std::vector<std::pair<Address, Address>> after_register_writes(const image::MemoryMap& memory,
                                                                             A64Needs needs);
/// Whether the image writes to registers of a profiling unit.
[[nodiscard]] bool programs_profiling(const image::MemoryMap& memory);
inline constexpr std::size_t most_watched_writes = 256;

}  // namespace waymark::record
