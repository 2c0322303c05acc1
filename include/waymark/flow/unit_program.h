/// Programming of a trace unit for recordings, beyond the usual options: registers by name, and ranges of addresses.
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
    std::string name, field;  ///< such as `TRCVICTLR`; such as `SSSTATUS`, or empty
    std::uint64_t value{};
    std::string where;  ///< for messages: `unit.txt:3`
};

/// Reads lines `NAME value`, `NAME.FIELD value`, `NAME FIELD=value …` or `NAME = value`; also `NAME(…)=value` as in
/// device files of snapshots, of which only the section `[regs]` is used. Numbers are decimal, or hexadecimal after 0x.
/// `#` and `;` begin a comment. `name`: for messages. Errors: `bad_format`: a line has another form; the message has
/// file and line.
[[nodiscard]] Result<std::vector<RegisterSetting>> read_register_settings(std::string_view text,
                                                                          const std::string& name);

/// A register that can be set, with the properties it has in a particular unit.
struct SettableRegister {
    std::string name;
    std::uint64_t value{};     ///< as it is
    std::uint64_t writable{};  ///< writable bits; 0: read-only
    unsigned bytes = 4;        ///< 4 or 8
    std::vector<RegisterField> fields{};
};
/// The register's value after `setting`. Errors: `usage`: it is read-only (setting its present value is allowed), bits
/// are set that the unit lacks, the value is too large, or there is no such field. Messages state what is expected.
[[nodiscard]] Result<std::uint64_t> value_after(const RegisterSetting& setting, const SettableRegister& r);
/// The error for a name that no register has. `names`: the existing names; `unit`: such as `a PTM`.
[[nodiscard]] Error unknown_register(const RegisterSetting& setting, std::string_view unit,
                                     const std::vector<std::string_view>& names);

/// Decides which blocks of instructions a unit traces if only addresses matter: the rule of include and exclude ranges.
/// A block is the code from one waypoint or P0 instruction up to the next, or to an exception.
struct SelectedBlocks {
    std::vector<AddressRange> include{}, exclude{};  ///< no include range: everything that is not excluded
    /// An include range must contain the address of an instruction; otherwise it is enough that it overlaps the block.
    bool by_instruction = false;

    [[nodiscard]] bool all() const { return include.empty() && exclude.empty(); }
    /// `first`, `last`: addresses of the first and the last instruction; `step`: the minimum size of an instruction.
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
