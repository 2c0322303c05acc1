/// The program to record: whether QEMU can run it, and the addresses of places that options name.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/core/types.h"
#include "waymark/image/program_kind.h"
#include "waymark/record/code_place.h"
#include "waymark/record/qemu.h"
#include "waymark/record/recorder.h"

namespace waymark::record {

/// How the program runs. For a file that is not a program the result is unknown, and reading it will fail later.
[[nodiscard]] image::ProgramKind kind_of(const std::string& program);
/// Errors: `unreadable`: QEMU would refuse to run it, since it has no permission to execute.
[[nodiscard]] Status check_executable(const std::string& program);

/// Requirements on a Linux program for QEMU's user mode, by its ELF header: class, machine.
struct LinuxProgram {
    char elf_class, machine;
    const char *qemu, *cross_libraries;
    std::string_view otherwise;  ///< the sentence about another kind of program, after its name
};
/// Errors: `not_found`: it cannot be read; `unsupported`: it is another kind of program.
[[nodiscard]] Status check_linux_program(const std::string& program, const LinuxProgram& of);
/// The folder of the dynamic linker and libraries: `sysroot`. If that is empty: the cross compiler's libraries, if they
/// exist and the environment names no others for QEMU; otherwise empty, which means QEMU's own.
[[nodiscard]] std::string library_folder(const std::string& sysroot, const char* cross_libraries);
/// How to run the program, with its arguments: QEMU, the plugin, and the folder of libraries. Errors: `not_found`.
[[nodiscard]] Result<QemuOptions> linux_emulator(const std::vector<std::string>& program, const std::string& sysroot,
                                                 const LinuxProgram& of);

/// Text for messages about a name that was not found.
inline constexpr std::string_view overloads_hint =
    ", or several functions of that name; give the parameters too, as in 'sort(int*, int)', or the symbol as nm prints "
    "it";

/// An address, or the place of a symbol of the program. `option`: for messages, without its dashes. Errors: `usage`:
/// there is no such symbol, or its address is not known before the program runs.
[[nodiscard]] Result<Address> address_of(const std::string& text, const char* option, const std::string& program);
/// The place where recording begins or stops: a symbol may belong to any mapped file. `system`: a whole system, whose
/// only file is its image. Errors: as above.
[[nodiscard]] Result<CodePlace> code_place(const std::string& text, const char* option, const std::string& program,
                                           bool system);
/// A range `START-STOP`, or a symbol for its whole function. Errors: as above; `usage`: it is not a range.
[[nodiscard]] Result<PlacedRange> code_range(const std::string& text, const char* option, const std::string& program,
                                             bool system);

}  // namespace waymark::record
