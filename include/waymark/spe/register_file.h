/// Register values in the forms that people use: `NAME=VALUE`, a dump of lines, or JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/result.h"

namespace waymark::spe {

/// One register, or one field of a register, and its value. The name is the published one (`PMSCR_EL1`,
/// `MDCR_EL2.E2PB`).
struct NamedValue {
    std::string name;
    std::uint64_t value = 0;
    bool operator==(const NamedValue&) const = default;
};

struct Settings {
    std::vector<NamedValue> settings;  ///< in file order; a register comes before its fields
    std::vector<std::string> unknown;  ///< names of other registers, as in the file
    std::vector<std::string> notes;    ///< the reading of ambiguous numbers
    bool operator==(const Settings&) const = default;
};

/// Parses a value: `0x` hexadecimal, `0b` binary, otherwise decimal, unless it can only be hexadecimal: with a letter
/// from a to f, or sixteen digits, as kernels and debuggers print registers. `hexadecimal`: every number without a
/// prefix is hexadecimal. `_` between digits has no effect. `usage`: not a number of 64 bits.
[[nodiscard]] Result<std::uint64_t> read_value(std::string_view text, bool hexadecimal = false);

/// Whether a value would differ in hexadecimal and nothing shows the base: `80101001`.
[[nodiscard]] bool base_unclear(std::string_view text);

/// Parses `NAME=VALUE`. `usage`: there is no such register or field, or the value does not fit it.
[[nodiscard]] Result<NamedValue> read_setting(std::string_view name, std::string_view value, bool hexadecimal = false);

/// Reads a file of either kind; it is JSON if it begins with a brace.
///
/// A dump has a register on each line, `NAME VALUE`, separated by blanks, `=` or `:`. Text after the value is ignored,
/// and so are empty lines and lines that begin with `#`. JSON is one object with names and values. A value is a number,
/// a number in quotes in one of the notations of a dump, or an object of fields; the members of an object `registers`
/// count as members of the object around it.
///
/// If one number without prefix can only be hexadecimal, all numbers without prefix are hexadecimal, except JSON's own
/// numbers. Otherwise they are decimal. A note names each whole register for which that matters.
///
/// Names of registers that do not concern profiling are in `unknown`. `bad_format`: anything else, and a register or
/// field that is given twice. `unsupported`: over 1 MiB, or compressed.
[[nodiscard]] Result<Settings> read_settings(std::string_view text);

}  // namespace waymark::spe
