/// Access to the registers of a Program Trace Macrocell, or of an ETMv3 for instruction trace, by software and
/// debuggers (docs/spec/pft.md, 3 and 3.1; docs/spec/etmv3.md, 9): names, numbers, and the registers and bits that a
/// unit has.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/registers.h"
#include "waymark/pft/registers.h"

namespace waymark::pft {

/// Numbers of the registers without effect on the selection of trace; the byte offset is four times the number.
namespace management {
inline constexpr unsigned oslar = 0xc0, oslsr = 0xc1, pdcr = 0xc4, pdsr = 0xc5;
inline constexpr unsigned claimset = 0x3e8, claimclr = 0x3e9, lar = 0x3ec, lsr = 0x3ed;
}  // namespace management

/// A register of `Registers`.
struct RegisterPlace {
    std::string name;        ///< with its number: `ETMACVR3`, `ETMSQ12EVR`
    unsigned number = 0;     ///< section 3
    std::string_view title;  ///< in words
    bool operator==(const RegisterPlace&) const = default;
};
/// All registers.
[[nodiscard]] const std::vector<RegisterPlace>& register_places();
/// Calls `f(register, place)` for each.
void for_each_place(const Registers& registers, auto&& f) {
    unsigned at = 0;
    Registers::for_each(registers, [&](const auto& one) { f(one, register_places()[at++]); });
}
/// The register with this name; null if there is none.
[[nodiscard]] const RegisterPlace* register_called(std::string_view name);

/// How a register may be accessed. All registers for tracing except ETMCR are written only while the Programming bit is
/// set.
struct RegisterAccess {
    bool present = false;  ///< otherwise the unit, by ETMCCR, ETMCCER and ETMIDR, does not have it
    bool readable = false, writable = false;
    std::uint32_t mask = 0;  ///< writable bits
};
/// `unit`: with an ETMCCR of 0, the unit has every feature.
[[nodiscard]] RegisterAccess register_access(const Registers& unit, unsigned number);
/// Whether the unit has an OS Lock, which exists from PFT v1.1 and ETMv3.5 on.
[[nodiscard]] bool has_os_lock(const Registers& unit);

/// The UNPREDICTABLE parts of a program, as sentences: the register, its value, and the allowed values.
[[nodiscard]] std::vector<std::string> objections_to(const Registers& unit);

}  // namespace waymark::pft
