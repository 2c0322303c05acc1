/// Register values as people have them: `NAME=VALUE`, a dump of lines, or JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/result.h"

namespace waymark::spe {

/// One register, or one field of one, and its value. The name is the published one (`PMSCR_EL1`, `MDCR_EL2.E2PB`).
struct Setting {
    std::string name;
    std::uint64_t value = 0;
    bool operator==(const Setting&) const = default;
};

struct Settings {
    std::vector<Setting> settings;     ///< in their order; a register stands before fields of it
    std::vector<std::string> unknown;  ///< names of other registers, as they stand there
    bool operator==(const Settings&) const = default;
};

/// A value: `0x` hexadecimal, `0b` binary, else decimal; sixteen digits without a prefix are hexadecimal, as kernels
/// and debuggers print registers. `_` between digits counts for nothing. `usage`: not a number of 64 bits.
[[nodiscard]] Result<std::uint64_t> read_value(std::string_view text);

/// `NAME=VALUE`. `usage`: no such register or field, or a value it does not hold.
[[nodiscard]] Result<Setting> read_setting(std::string_view name, std::string_view value);

/// A file of either kind; it is JSON if it begins with a brace.
///
/// A dump has a register on each line, `NAME VALUE` with blanks, `=` or `:` between; what follows the value is left
/// alone, and so are lines empty or begun by `#`. JSON is one object: names and values, where a value is a number, such
/// a number in quotes, or an object of fields; the object `registers` of an object counts for its own.
///
/// Names of registers that do not concern profiling are `unknown`. `bad_format`: anything else that is not so, and a
/// register or field given twice. Text over 1 MiB is refused.
[[nodiscard]] Result<Settings> read_settings(std::string_view text);

}  // namespace waymark::spe
