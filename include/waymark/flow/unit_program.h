/// How a recording programs a trace unit beyond its few usual options: registers by name, and ranges of addresses.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/registers.h"
#include "waymark/core/result.h"
#include "waymark/core/types.h"

namespace waymark::flow {

/// Addresses [first, end).
struct AddressRange {
    Address first{}, end{};
    bool operator==(const AddressRange&) const = default;
};

/// A line of a file of registers: a whole register, or one field of a register.
struct RegisterSetting {
    std::string name, field;  ///< `TRCVICTLR`; `SSSTATUS`, or empty
    std::uint64_t value{};
    std::string where;  ///< for messages: `unit.txt:3`
};

/// Reads lines `NAME value`, `NAME.FIELD value`, `NAME FIELD=value …` or `NAME = value`; `NAME(…)=value` too, as device
/// files of snapshots have it, of which the section `[regs]` counts. Numbers are decimal, or hexadecimal after 0x. `#`
/// and `;` begin a comment. `name`: for messages. Errors: `bad_format`: a line is none of these; the message has file
/// and line.
[[nodiscard]] Result<std::vector<RegisterSetting>> read_register_settings(std::string_view text,
                                                                          const std::string& name);

/// A register as it may be set, of a unit at hand.
struct SettableRegister {
    std::string name;
    std::uint64_t value{};     ///< as it is
    std::uint64_t writable{};  ///< bits that keep what is written; 0: it is read-only
    unsigned bytes = 4;        ///< 4 or 8
    std::vector<RegisterField> fields{};
};
/// The register's value after `setting`. Errors: `usage`: it is read-only (a setting to what it is passes), the unit
/// lacks bits that are set, the value is too large, or there is no such field. Messages say what is expected.
[[nodiscard]] Result<std::uint64_t> value_after(const RegisterSetting& setting, const SettableRegister& r);
/// For a name that no register has. `names`: those there are; `unit`: `a PTM`.
[[nodiscard]] Error unknown_register(const RegisterSetting& setting, std::string_view unit,
                                     const std::vector<std::string_view>& names);

/// Which blocks of instructions a unit traces by their addresses alone: the rule of include and exclude ranges, without
/// the unit. A block is what runs from one waypoint or P0 instruction up to the next, or to an exception.
struct SelectedBlocks {
    std::vector<AddressRange> include{}, exclude{};  ///< no include range: all but what is excluded
    /// An include range must hold the address of an instruction; else it is enough that it overlaps the block.
    bool by_instruction = false;

    [[nodiscard]] bool all() const { return include.empty() && exclude.empty(); }
    /// `first`, `last`: addresses of the first and the last instruction; `step`: the least size of an instruction.
    [[nodiscard]] bool selects(Address first, Address last, unsigned step) const {
        const auto in = [&](const AddressRange& r) {
            if (r.first > last || r.end <= first) return false;
            if (!by_instruction || r.first <= first) return true;
            const std::uint64_t next = first.value + (r.first - first + step - 1) / step * step;
            return next < r.end.value && next <= last.value;
        };
        const auto whole = [&](const AddressRange& r) { return r.first <= first && r.end > last; };
        return (include.empty() || std::any_of(include.begin(), include.end(), in)) &&
               std::none_of(exclude.begin(), exclude.end(), whole);
    }
};

}  // namespace waymark::flow
