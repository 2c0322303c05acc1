/// How QEMU runs a program without an operating system.
#pragma once

#include <string>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/image/memory_map.h"
#include "waymark/record/a64_system.h"
#include "waymark/record/qemu.h"

namespace waymark::record {

/// QEMU's board with all exception levels and both security states.
inline constexpr const char* a64_board = "virt,secure=on,virtualization=on";

/// A bare-metal image, and the machine for it.
struct SystemProgram {
    std::vector<std::string> command;  ///< the image; it reads its arguments through semihosting
    std::string machine, cpu;          ///< by QEMU's names
    unsigned processors = 1;
    bool aarch64 = true;
    std::vector<std::string> qemu_options{};
};

/// Refuses options that QEMU's log, which shows the exceptions, does not permit: `-d`, `-D`. Errors: `usage`.
[[nodiscard]] Status check_a64_log(const std::vector<std::string>& qemu_options);

/// Arguments of QEMU before the image; a comma in a value is doubled.
[[nodiscard]] std::vector<std::string> system_arguments(const SystemProgram& program);

/// How to run an AArch64 image, whose code `memory` has: QEMU, the plugin, and the places where QEMU's log shows
/// registers. Errors: `usage`: see check_a64_log; `not_found`: QEMU or the plugin.
[[nodiscard]] Result<QemuOptions> a64_system_emulator(const SystemProgram& program, const image::MemoryMap& memory,
                                                      A64Needs needs);

}  // namespace waymark::record
