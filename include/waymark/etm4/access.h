/// Access to the registers of an ETMv4 or ETE trace unit by software and debuggers (docs/spec/etm4-registers.md,
/// section 1): names, offsets and encodings, the registers and bits that a unit has, and values that are not allowed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/registers.h"
#include "waymark/etm4/registers.h"

namespace waymark::etm4 {

/// A register of `Registers`, by the offset of its first word.
struct RegisterPlace {
    std::string name;        ///< with its number: `TRCACVR3`, `TRCRSCTLR2`
    unsigned offset = 0;     ///< offset in the 4 KB of the unit
    unsigned bytes = 4;      ///< 4 or 8
    std::string_view title;  ///< in words
    bool operator==(const RegisterPlace&) const = default;
};

/// All registers, by offset.
[[nodiscard]] const std::vector<RegisterPlace>& register_places();
/// The register with this name, `TRCEXTINSELR` for TRCEXTINSELR0 too; null if there is none.
[[nodiscard]] const RegisterPlace* register_called(std::string_view name);
/// The register with a word at this offset; null if there is none.
[[nodiscard]] const RegisterPlace* register_at(unsigned offset);

/// The operands of MRS and MSR; op0 is 2 and op1 is 1 (1.1).
struct SystemEncoding {
    unsigned crn = 0, crm = 0, op2 = 0;
    bool operator==(const SystemEncoding&) const = default;
};
[[nodiscard]] constexpr SystemEncoding system_encoding(unsigned offset) {
    const unsigned n = offset / 4;
    return {n >> 7 & 7U, n & 0xfU, n >> 4 & 7U};
}
/// nullopt for CRn of 8 and above, where the trace unit has no register.
[[nodiscard]] constexpr std::optional<unsigned> offset_of(SystemEncoding e) {
    if (e.crn >= 8 || e.crm >= 16 || e.op2 >= 8) return std::nullopt;
    return 4 * (e.crn << 7 | e.op2 << 4 | e.crm);
}

/// How a word of a unit's registers may be accessed (1.1 to 1.6).
struct WordAccess {
    bool present = false;  ///< otherwise the unit, by its ID registers, does not have it
    bool readable = false, writable = false;
    /// Accessible in every state: the management and claim registers and TRCPRGCTLR; all others are trace registers,
    /// which may only be written in Idle.
    bool always = false;
    std::uint32_t mask = 0;  ///< writable bits; the others are RES0
};
/// `unit`: the registers whose ID registers decide.
[[nodiscard]] WordAccess word_access(const Registers& unit, unsigned offset);

/// A field whose value is reserved by the architecture, or contradicts another field.
struct Objection {
    unsigned offset = 0;  ///< of the register
    std::string message;  ///< names the register and field, its value, and the allowed values
};
/// For a unit that is about to be enabled: values that are reserved or UNPREDICTABLE (1.2 to 1.4, 2.5 to 2.7), by
/// offset. The model nevertheless has a defined behaviour for each.
[[nodiscard]] std::vector<Objection> objections_to(const Registers& unit);

}  // namespace waymark::etm4
