#include "waymark/doctor/explain_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "waymark/capture/text_file.h"
#include "waymark/core/wire.h"
#include "waymark/open/container.h"

namespace waymark::doctor {

namespace {

/// `NAME=VALUE`, `NAME.FIELD=VALUE`.
Result<flow::RegisterSetting> setting_of(const std::string& argument) {
    const std::size_t equals = argument.find('=');
    flow::RegisterSetting out;
    out.where = argument;
    const std::string name = argument.substr(0, equals);
    const std::size_t dot = name.find('.');
    out.name = name.substr(0, dot);
    if (dot != name.npos) out.field = name.substr(dot + 1);
    if (!wire::scan_number(argument.substr(equals + 1), out.value))
        return Error{Errc::usage, fmt::format("{}: '{}' is not a number; expected NAME=VALUE or NAME.FIELD=VALUE, a "
                                              "decimal number or a hexadecimal one after 0x",
                                              argument, argument.substr(equals + 1))};
    return out;
}

/// Converts lines as `grep . /sys/bus/coresight/devices/etm0/mgmt/*` prints them, `PATH/trcconfig:0x41`, to lines of a
/// register file; other lines stay unchanged.
std::string without_paths(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        std::string line(text.substr(0, text.find('\n')));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        const std::size_t colon = line.find(':'), slash = line.rfind('/', colon);
        std::uint64_t value = 0;
        if (colon != line.npos && line.find('(') == line.npos &&
            wire::scan_number(std::string_view(line).substr(colon + 1), value)) {
            line[colon] = ' ';
            if (slash != line.npos) line = line.substr(slash + 1);
        }
        out += line + "\n";
    }
    return out;
}

}  // namespace

Result<std::vector<ExplainedSource>> explain_arguments(const std::vector<std::string>& arguments, std::string_view core,
                                                       bool cost, const std::function<void(const std::string&)>& note) {
    GivenRegisters given;
    for (const std::string& argument : arguments) {
        std::error_code none;
        if (argument != "-" && !std::filesystem::exists(argument, none)) {
            if (argument.find('=') == argument.npos) {
                if (registers_called(argument))
                    return Error{Errc::usage,
                                 argument +
                                     ": a name without a value shows the purpose of a register, and cannot be given "
                                     "together with values or files; give only the name, or add a value: NAME=VALUE"};
                return Error{Errc::not_found, argument +
                                                  ": there is no such file, and no unit has a register with that name "
                                                  "(docs/registers/ lists them); values are given as NAME=VALUE"};
            }
            WM_ASSIGN_OR_RETURN(flow::RegisterSetting setting, setting_of(argument));
            given.settings.push_back(std::move(setting));
            continue;
        }
        const open::Container container = argument == "-" ? open::Container{} : open::identify(argument);
        const bool capture = container.is_folder || container.is_perf();
        if (capture) {
            if (arguments.size() != 1)
                return Error{Errc::usage,
                             argument + ": registers cannot be given together with a capture; leave them out"};
            return explain_capture(argument, cost, note);
        }
        WM_ASSIGN_OR_RETURN(const std::string text, capture::read_text_file(argument, capture::most_settings_bytes));
        given.files.push_back({argument, without_paths(text)});
    }
    return explain_registers(given, core);
}

Result<std::vector<NamedRegister>> named_registers(const std::vector<std::string>& arguments) {
    std::vector<NamedRegister> out;
    for (const std::string& argument : arguments) {
        std::error_code none;
        if (argument == "-" || argument.find('=') != argument.npos || std::filesystem::exists(argument, none))
            return std::vector<NamedRegister>{};
        auto found = registers_called(argument);
        if (!found) {
            // The name of a file that does not exist may also contain a point.
            if (!registers_called(argument.substr(0, argument.find('.')))) return std::vector<NamedRegister>{};
            return found.error();
        }
        std::move(found->begin(), found->end(), std::back_inserter(out));
    }
    return out;
}

Result<spe::ExplainInput> profiler_settings(const std::vector<std::string>& arguments,
                                            const std::map<std::string, std::string>& registers,
                                            const spe::ExplainedUnit& unit) {
    spe::ExplainInput input;
    for (const std::string& path : arguments) {
        if (path.find('=') != path.npos) continue;
        std::error_code none;
        if (path != "-" && !std::filesystem::exists(path, none))
            return Error{Errc::not_found, path +
                                              ": there is no such file; a register is given as NAME=VALUE, and an "
                                              "argument without a = is a file"};
        WM_ASSIGN_OR_RETURN(const std::string text, capture::read_text_file(path, capture::most_settings_bytes));
        WM_RETURN_IF_ERROR(input.add_file(path, text));
    }
    for (const auto& [name, value] : registers)
        if (!value.empty()) WM_RETURN_IF_ERROR(input.add(name, value));
    for (const std::string& argument : arguments)
        if (const std::size_t equals = argument.find('='); equals != argument.npos)
            WM_RETURN_IF_ERROR(input.add(argument.substr(0, equals), argument.substr(equals + 1)));
    WM_RETURN_IF_ERROR(input.finish(unit));
    return input;
}

}  // namespace waymark::doctor
