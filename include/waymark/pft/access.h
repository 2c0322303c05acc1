/// Registers of a Program Trace Macrocell as software and debuggers reach them (docs/spec/pft.md, 3 and 3.1): names,
/// numbers, which registers and bits a unit has.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/registers.h"
#include "waymark/pft/registers.h"

namespace waymark::pft {

/// Numbers of the registers that say nothing of what is traced; the byte offset is four times the number.
namespace management {
inline constexpr unsigned oslar = 0xc0, oslsr = 0xc1, pdcr = 0xc4, pdsr = 0xc5;
inline constexpr unsigned claimset = 0x3e8, claimclr = 0x3e9, lar = 0x3ec, lsr = 0x3ed;
}  // namespace management

/// One register of those that `Registers` has.
struct RegisterPlace {
    std::string name;        ///< with its number: `ETMACVR3`, `ETMSQ12EVR`
    unsigned number = 0;     ///< section 3
    std::string_view title;  ///< in words
    bool operator==(const RegisterPlace&) const = default;
};
/// All of them.
[[nodiscard]] const std::vector<RegisterPlace>& register_places();
/// By its name; null if there is none.
[[nodiscard]] const RegisterPlace* register_called(std::string_view name);

/// How a register may be accessed. All that trace are written while the Programming bit is set only, but ETMCR.
struct RegisterAccess {
    bool present = false;  ///< else the unit, by ETMCCR, ETMCCER and ETMIDR, does not have it
    bool readable = false, writable = false;
    std::uint32_t mask = 0;  ///< bits that keep what is written
};
/// `unit`: an ETMCCR of 0 is that of a unit with everything there can be.
[[nodiscard]] RegisterAccess register_access(const Registers& unit, unsigned number);
/// From PFT v1.1 on.
[[nodiscard]] bool has_os_lock(const Registers& unit);

/// What of a program is UNPREDICTABLE, each in words: which register, what it holds, what it may hold.
[[nodiscard]] std::vector<std::string> objections_to(const Registers& unit);

}  // namespace waymark::pft
