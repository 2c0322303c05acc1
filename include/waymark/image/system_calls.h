/// System calls of Linux: which one the code in front of a supervisor call asks for. A trace contains the supervisor
/// call, but not the register with its number.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "waymark/image/symbols.h"
#include "waymark/isa/isa.h"

namespace waymark::image {

/// A system call: its number is in X8 (AArch64) or R7 (32-bit Arm, EABI).
struct SystemCall {
    std::uint32_t number{};
    bool aarch64{};
    /// `openat`; empty if Linux 6.1 has no system call of this number. In static storage.
    [[nodiscard]] std::string_view name() const;
    friend bool operator==(const SystemCall&, const SystemCall&) = default;
};

/// The system call whose supervisor call (`SVC #0`) lies directly before `back`. It is known if code of the same
/// function, at most 256 bytes before, moves a constant into the register, and no instruction between the two names the
/// register, branches, or is the target of a direct branch of this function. Indirect branches are assumed not to lead
/// there. nullopt: not known, no supervisor call, or a function of more than 16 KiB. `space`: the memory that `back`
/// belongs to. Where no symbol contains `back`, 256 bytes before and behind it count as the function, and T32 code is
/// not known.
[[nodiscard]] std::optional<SystemCall> system_call_before(const isa::CodeReader& code, const isa::Space& space,
                                                           const Symbols& symbols, Address back);

}  // namespace waymark::image
