/// Register programs as text: lines of writes, plain or JSON, read and checked before anything runs (docs/spec/dpu.md,
/// section 3).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/dpu/config.h"

namespace waymark::dpu {

/// One write to a register.
struct RegisterWrite {
    std::uint64_t cycle{};  ///< cycle in which it takes effect
    std::uint32_t offset{}, value{};
    unsigned line{};  ///< line in the text, from 1; 0: none
    bool operator==(const RegisterWrite& other) const {
        return cycle == other.cycle && offset == other.offset && value == other.value;
    }
};
/// Writes in order of their cycles.
using RegisterProgram = std::vector<RegisterWrite>;

/// Reads a program, with a write on each line:
///
///     # comment
///     DP_TSA 0x20000000
///     DP_TAC TENM=immediate CEG=2 CMODE=trace TCEN=1      fields; other fields are 0
///     @5000 DP_TC TMODE=TASK SAMPLE=1 EN=1                in cycle 5000
///     {"at": 6000, "register": "DP_TD", "value": "0xcafe0001"}
///     {"register": "DP_TC", "fields": {"TMPDIS": 1, "EN": 1}}
///
/// A register has its name from the specification, with or without `DP_`, or its offset (`0x7c`). A write without a
/// cycle takes place in the cycle of the line above, at first 0. Numbers are hexadecimal with `0x`, binary with `0b`,
/// else decimal; codes of fields also have names. `bad_format` names the line, the mistake and the correction: no such
/// register or field, a value that does not fit, a register that can only be read, a cycle before the cycle of the line
/// above. Text over 1 MiB is refused. Values that the unit would not understand are reported by diagnose().
[[nodiscard]] Result<RegisterProgram> read_program(std::string_view text);

/// Writes a program as such lines, each with its cycle.
[[nodiscard]] std::string to_text(const RegisterProgram& program);

/// An error in a program that can be read.
struct Diagnosis {
    std::uint64_t cycle{};
    unsigned line{};      ///< 0: the whole program
    std::string message;  ///< the mistake and the remedy
    /// The unit accepts it, but it is probably a mistake.
    bool doubtful = false;
};
/// Applies the program to a model of the unit, without any activity around it, and reports its errors: reserved codes,
/// an impossible buffer, a mode changed while tracing is on, an EOnCE that does not trace what the mode needs, tracing
/// turned on before the buffer is set, and programs that neither count nor trace. Doubtful: a mode with counters in
/// which no counter counts, and a request line outside of the buffer. Empty if there is no error.
[[nodiscard]] std::vector<Diagnosis> diagnose(const RegisterProgram& program, const ModelConfig& config);

}  // namespace waymark::dpu
