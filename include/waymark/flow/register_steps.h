/// The sequence of register accesses that programs a trace unit, as software or a debugger performs it; and the
/// interface that receives them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/flow/register_access.h"

namespace waymark::flow {

/// One access: a word is written, or read until some of its bits have a value.
struct RegisterStep {
    enum class Kind : std::uint8_t { write, wait };
    Kind kind = Kind::write;
    unsigned offset = 0;              ///< in bytes, in the component's 4 KB; a multiple of 4
    std::uint32_t value = 0;          ///< value to write; value to wait for in the bits of `mask`
    std::uint32_t mask = 0xffffffff;  ///< of a wait
    std::string name;                 ///< name of the register; with `[63:32]` for the upper word of 64 bits
    std::string why;                  ///< a clause for a comment
    bool operator==(const RegisterStep&) const = default;
};

[[nodiscard]] RegisterStep write_step(unsigned offset, std::uint32_t value, std::string name, std::string why);
[[nodiscard]] RegisterStep wait_step(unsigned offset, std::uint32_t mask, std::uint32_t value, std::string name,
                                     std::string why);

/// A write to a file of Linux's driver for a component, in its folder below /sys/bus/coresight/devices.
struct DriverFile {
    std::string name, value;  ///< `mode`, `0x1020`
    bool operator==(const DriverFile&) const = default;
};

/// Programs a component, starting from any state.
struct ComponentProgram {
    /// `release`: the accesses after trace and registers were read.
    std::vector<RegisterStep> enable, disable, release;
    /// The same through Linux's driver, up to enabling; and settings that its files cannot express, as text.
    std::vector<DriverFile> driver_files;
    std::vector<std::string> not_in_files;
    /// Features that the component must have for this program, by its identification registers: `TRCIDR0.RETSTACK (bit
    /// 9) is 1`.
    std::vector<std::string> needs;
};

/// The registers of a component, by the offset of a word. `cycle` never decreases.
class RegisterPort {
public:
    virtual ~RegisterPort() = default;
    virtual AccessResult write(unsigned offset, std::uint32_t value, std::uint64_t cycle) = 0;
    [[nodiscard]] virtual ReadResult read(unsigned offset, std::uint64_t cycle) = 0;
};

/// Performs the accesses. Each takes one cycle and advances `cycle`. Errors: `bad_format`: the port refuses an access,
/// or a wait has not ended after `most_reads`; the message names the step.
[[nodiscard]] Status carry_out(std::span<const RegisterStep> steps, RegisterPort& port, std::uint64_t& cycle,
                               std::uint64_t most_reads = 100'000);

/// The result in words: `the register is read-only`.
[[nodiscard]] std::string_view text_of(AccessResult result);

}  // namespace waymark::flow
