/// `waymark record --unit spe`: a statistical profile of an AArch64 program.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../output.h"
#include "waymark/core/result.h"
#include "waymark/record/qemu.h"

namespace waymark::cli {

/// What is said of every recording of a Linux program.
struct RecordCommon {
    std::string output, sysroot;
    std::vector<std::string> program, qemu_options;
    std::uint64_t limit = 0;
    bool quiet = false, force = false;
};

/// Errors: `unreadable`: QEMU would refuse to run it, for it has no permission to be executed.
[[nodiscard]] waymark::Status check_executable(const std::string& program);

struct SpeRecordOptions {
    std::string event = "arm_spe//", machine_file;
    std::vector<std::string> machine;
    std::uint32_t period = 4096;
    std::uint64_t buffer_kib = 1024, seed = 1;
    unsigned info_version = 1;

    /// Adds them to the command; what was added is appended to `added`.
    void add_to(CLI::App& command, std::vector<CLI::Option*>& added);
};

[[nodiscard]] ExitStatus run_record_spe(const RecordCommon& common, const SpeRecordOptions& options);

/// Exit statuses beside those of every command.
enum RecordStatus : int {
    program_died = 4,  ///< by a signal
    interrupted = 5,   ///< a signal asked us to end
    cut_off = 6,       ///< something could not be written, code changed too often, or execution lost its way
};
[[nodiscard]] std::string signal_name(int number);
/// Says that a signal ended the recording or the program, and gives its status; none: neither.
[[nodiscard]] std::optional<ExitStatus> ended_by_signal(const record::Ending& ending);

/// A Linux program for QEMU's user mode, as its ELF header says: class, machine.
struct LinuxProgram {
    char elf_class, machine;
    const char *qemu, *cross_libraries;
    std::string_view otherwise;  ///< what to say of another, after its name
};
/// Errors: `not_found`: it cannot be read; `unsupported`: it is another.
[[nodiscard]] waymark::Status check_linux_program(const std::string& program, const LinuxProgram& of);
/// How to run the program: QEMU, the plugin, and the folder of libraries. Errors: `not_found`.
[[nodiscard]] Result<record::QemuOptions> linux_emulator(const RecordCommon& common, const LinuxProgram& of);

}  // namespace waymark::cli
