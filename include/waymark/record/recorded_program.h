/// The program that is recorded: whether QEMU can run it, and where the places lie that options name in it.
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

/// How the program is run; of a file that is none, which is found out when it is read, nothing is known.
[[nodiscard]] image::ProgramKind kind_of(const std::string& program);
/// Errors: `unreadable`: QEMU would refuse to run it, for it has no permission to be executed.
[[nodiscard]] Status check_executable(const std::string& program);

/// A Linux program for QEMU's user mode, as its ELF header says: class, machine.
struct LinuxProgram {
    char elf_class, machine;
    const char *qemu, *cross_libraries;
    std::string_view otherwise;  ///< what to say of another, after its name
};
/// Errors: `not_found`: it cannot be read; `unsupported`: it is another.
[[nodiscard]] Status check_linux_program(const std::string& program, const LinuxProgram& of);
/// Where dynamic linker and libraries are: `sysroot`; if that is empty, the cross compiler's libraries, if they exist
/// and the environment names no others for QEMU; empty: QEMU's own.
[[nodiscard]] std::string library_folder(const std::string& sysroot, const char* cross_libraries);
/// How to run the program, with its arguments: QEMU, the plugin, and the folder of libraries. Errors: `not_found`.
[[nodiscard]] Result<QemuOptions> linux_emulator(const std::vector<std::string>& program, const std::string& sysroot,
                                                 const LinuxProgram& of);

/// After a message that a name is not found.
inline constexpr std::string_view overloads_hint =
    ", or several functions of that name; give the parameters too, as in 'sort(int*, int)', or the symbol as nm prints "
    "it";

/// An address, or where a symbol of the program is. `option`: for messages, without its dashes. Errors: `usage`: there
/// is no such symbol, or it is not known before the program runs where it will be.
[[nodiscard]] Result<Address> address_of(const std::string& text, const char* option, const std::string& program);
/// Where recording begins or stops: a symbol may be of a file that is mapped anywhere. `system`: a whole system, whose
/// image is all there is. Errors: as above.
[[nodiscard]] Result<CodePlace> code_place(const std::string& text, const char* option, const std::string& program,
                                           bool system);
/// `START-STOP`, or a symbol for all of its function. Errors: as above; `usage`: it is no range.
[[nodiscard]] Result<PlacedRange> code_range(const std::string& text, const char* option, const std::string& program,
                                             bool system);

}  // namespace waymark::record
