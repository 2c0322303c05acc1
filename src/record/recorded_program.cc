#include "waymark/record/recorded_program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "waymark/core/wire.h"
#include "waymark/image/symbols.h"

namespace waymark::record {

namespace fs = std::filesystem;

image::ProgramKind kind_of(const std::string& program) {
    const auto kind = image::program_kind(program);
    return kind ? *kind : image::ProgramKind{};
}

Status check_executable(const std::string& program) {
    if (access(program.c_str(), X_OK) == 0 || errno != EACCES) return Nothing{};
    return Error{Errc::unreadable,
                 fmt::format("{} is not executable; chmod +x makes it so, if it is the program", program)};
}

Status check_linux_program(const std::string& program, const LinuxProgram& of) {
    std::ifstream in(program, std::ios::binary);
    if (!in) return Error{Errc::not_found, fmt::format("cannot read {}; is it a program?", program)};
    std::array<char, 20> head{};
    in.read(head.data(), head.size());
    const std::string_view little_endian(head.data(), 6);
    if (in && little_endian == std::string{'\x7f', 'E', 'L', 'F', of.elf_class, '\1'} && head[18] == of.machine)
        return Nothing{};
    return Error{Errc::unsupported, fmt::format("{} is not {}", program, of.otherwise)};
}

std::string library_folder(const std::string& sysroot, const char* cross_libraries) {
    const bool usual = sysroot.empty() && std::getenv("QEMU_LD_PREFIX") == nullptr && fs::exists(cross_libraries);
    return usual ? cross_libraries : sysroot;
}

Result<QemuOptions> linux_emulator(const std::vector<std::string>& program, const std::string& sysroot,
                                   const LinuxProgram& of) {
    WM_ASSIGN_OR_RETURN(const auto qemu, find_qemu(of.qemu, "qemu-user"));
    WM_ASSIGN_OR_RETURN(const auto plugin, find_plugin());
    QemuOptions how{qemu, plugin, {}, program};
    how.memory = true;
    if (const std::string folder = library_folder(sysroot, of.cross_libraries); !folder.empty())
        how.qemu_arguments = {"-L", folder};
    return how;
}

Result<Address> address_of(const std::string& text, const char* option, const std::string& program) {
    std::uint64_t value = 0;
    if (wire::scan_number(text, value)) return Address{value & ~std::uint64_t{1}};
    if (kind_of(program).position_independent)
        return Error{
            Errc::usage,
            fmt::format("--{} {}: {} is position-independent, so the addresses of its symbols are not known "
                        "before it runs; give an address (0x…), which a first recording shows, or link it with "
                        "-no-pie",
                        option, text, program)};
    image::Symbols symbols;
    WM_ASSIGN_OR_RETURN(const std::size_t taken, symbols.add_elf(program));
    if (const auto found = symbols.function_called(text)) return *found;
    return Error{Errc::usage,
                 fmt::format("--{} {}: {} has no such symbol{}{}; an address (0x…) works too", option, text, program,
                             taken == 0 ? " (it has none at all)" : "", taken == 0 ? "" : overloads_hint)};
}

Result<CodePlace> code_place(const std::string& text, const char* option, const std::string& program, bool system) {
    if (text.empty())
        return Error{Errc::usage, fmt::format("--{}: the symbol or address is empty; give one, as in main", option)};
    std::uint64_t value = 0;
    const image::ProgramKind kind = kind_of(program);
    const bool loaded_anywhere = !system && kind.position_independent;
    image::Symbols symbols;
    const bool number = wire::scan_number(text, value);
    // If the program is linked dynamically, or is the dynamic linker itself, other files may be mapped when it runs.
    const bool in_program = !number && symbols.add_elf(program) && symbols.function_called(text);
    if (number || (in_program ? !loaded_anywhere : system || !kind.dynamic)) {
        WM_ASSIGN_OR_RETURN(const Address address, address_of(text, option, program));
        return number ? CodePlace(address) : CodePlace(address, text);
    }
    std::error_code error;
    return CodePlace(text, in_program ? fs::canonical(program, error) : fs::path());
}

Result<PlacedRange> code_range(const std::string& text, const char* option, const std::string& program, bool system) {
    // Ignore a minus in an operator's name.
    std::size_t minus = text.find('-', text.starts_with('-') ? 1 : 0);
    while (minus != std::string::npos && text.substr(0, minus).ends_with("operator")) minus = text.find('-', minus + 1);
    if (minus != std::string::npos) {
        WM_ASSIGN_OR_RETURN(CodePlace first, code_place(text.substr(0, minus), option, program, system));
        WM_ASSIGN_OR_RETURN(CodePlace end, code_place(text.substr(minus + 1), option, program, system));
        if (first.address() && end.address() && *end.address() <= *first.address())
            return Error{Errc::usage,
                         fmt::format("--{} {}: the range ends at {:#x}, where it begins or before; STOP is the "
                                     "address after it",
                                     option, text, end.address()->value)};
        return PlacedRange{std::move(first), std::move(end)};
    }
    std::uint64_t value = 0;
    if (wire::scan_number(text, value))
        return Error{
            Errc::usage,
            fmt::format("--{} {}: an address alone is not a range; give START-STOP or the symbol of a function", option,
                        text)};
    WM_ASSIGN_OR_RETURN(CodePlace function, code_place(text, option, program, system));
    if (function.address()) {
        image::Symbols symbols;
        WM_RETURN_IF_ERROR(symbols.add_elf(program));
        const auto symbol = symbols.find(*function.address());
        if (!symbol || symbol->symbol.bytes == 0)
            return Error{Errc::usage, fmt::format("--{} {}: the symbol has no size; give START-STOP", option, text)};
        function.set_bytes(symbol->symbol.bytes);
    }
    return PlacedRange{std::move(function)};
}

}  // namespace waymark::record
