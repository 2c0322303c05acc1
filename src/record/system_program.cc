#include "waymark/record/system_program.h"

#include <algorithm>

#include "waymark/record/recorded_program.h"

namespace waymark::record {

Status check_a64_log(const std::vector<std::string>& qemu_options) {
    if (std::none_of(qemu_options.begin(), qemu_options.end(),
                     [](const std::string& o) { return o == "-d" || o == "-D"; }))
        return Nothing{};
    return Error{Errc::usage,
                 "--qemu=-d and --qemu=-D cannot be used with --system and an AArch64 image: QEMU has one log, from "
                 "which this reads the exceptions"};
}

std::vector<std::string> system_arguments(const SystemProgram& program) {
    std::vector<std::string> out{"-M", program.machine, "-cpu", program.cpu, "-smp"};
    out.push_back(std::to_string(program.processors));
    // With this option the lines of its log stay together.
    if (program.aarch64) out.insert(out.end(), {"-accel", "tcg,thread=single"});
    // A board with a sound chip would otherwise complain about missing sound cards.
    out.insert(out.end(), {"-display", "none", "-monitor", "none", "-serial", "stdio", "-audiodev", "none,id=silent"});
    out.push_back("-semihosting-config");
    std::string semihosting = "enable=on,target=native";
    for (const std::string& argument : program.command) {
        semihosting += ",arg=";
        for (const char c : argument) semihosting += c == ',' ? ",," : std::string(1, c);
    }
    out.push_back(semihosting);
    const auto is_network = [](const std::string& o) { return o == "-nic" || o == "-net" || o == "-netdev"; };
    if (std::none_of(program.qemu_options.begin(), program.qemu_options.end(), is_network))
        out.insert(out.end(), {"-nic", "none"});
    out.insert(out.end(), program.qemu_options.begin(), program.qemu_options.end());
    out.push_back("-kernel");
    return out;
}

Result<QemuOptions> a64_system_emulator(const SystemProgram& program, const image::MemoryMap& memory, A64Needs needs) {
    WM_RETURN_IF_ERROR(check_a64_log(program.qemu_options));
    const std::string& image = program.command.front();
    WM_ASSIGN_OR_RETURN(const auto qemu, find_qemu("qemu-system-aarch64", "qemu-system-arm"));
    WM_ASSIGN_OR_RETURN(const auto plugin, find_plugin());
    QemuOptions how{.qemu = qemu, .plugin = plugin, .program = {image}, .aarch64 = true};
    how.qemu_arguments = system_arguments(program);
    how.input = false;
    how.watched = after_register_writes(memory, needs);
    const Address entry = kind_of(image).entry;
    how.watched.emplace_back(entry, entry + 4);
    return how;
}

}  // namespace waymark::record
