/// `waymark explain`: why a trace unit traces or does not.
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>

#include "commands.h"
#include "options.h"
#include "terminal.h"
#include "waymark/capture/text_file.h"
#include "waymark/core/wire.h"
#include "waymark/doctor/explain.h"
#include "waymark/doctor/register_reference.h"
#include "waymark/isa/cores.h"
#include "waymark/listing/explanation.h"
#include "waymark/open/container.h"

namespace waymark::cli {

namespace {

struct UnitExplainOptions {
    std::vector<std::string> arguments;
    std::string core, format = "text", output;
    bool no_cost = false;
};

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

Result<std::vector<doctor::ExplainedSource>> explained(const UnitExplainOptions& options) {
    doctor::GivenRegisters given;
    for (const std::string& argument : options.arguments) {
        std::error_code none;
        if (argument != "-" && !std::filesystem::exists(argument, none)) {
            if (argument.find('=') == argument.npos) {
                if (doctor::registers_called(argument))
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
            if (options.arguments.size() != 1)
                return Error{Errc::usage,
                             argument + ": registers cannot be given together with a capture; leave them out"};
            return doctor::explain_capture(argument, !options.no_cost,
                                           [](const std::string& note) { say("note", note); });
        }
        WM_ASSIGN_OR_RETURN(const std::string text, capture::read_text_file(argument, capture::most_settings_bytes));
        given.files.push_back({argument, without_paths(text)});
    }
    return doctor::explain_registers(given, options.core);
}

/// The registers that the arguments name. Empty: one of the arguments is not a register, but a file or a value. Errors:
/// `not_found`: a register has no such field.
Result<std::vector<doctor::NamedRegister>> named_registers(const UnitExplainOptions& options) {
    std::vector<doctor::NamedRegister> out;
    for (const std::string& argument : options.arguments) {
        std::error_code none;
        if (argument == "-" || argument.find('=') != argument.npos || std::filesystem::exists(argument, none))
            return std::vector<doctor::NamedRegister>{};
        auto found = doctor::registers_called(argument);
        if (!found) {
            // The name of a file that does not exist may also contain a point.
            if (!doctor::registers_called(argument.substr(0, argument.find('.'))))
                return std::vector<doctor::NamedRegister>{};
            return found.error();
        }
        std::move(found->begin(), found->end(), std::back_inserter(out));
    }
    return out;
}

/// Prints the purposes of registers, without values.
ExitStatus show_registers(const std::vector<doctor::NamedRegister>& named, const UnitExplainOptions& options) {
    auto out = Output::open(options.output);
    if (!out) return fail(out.error());
    listing::print_registers(*out, named, listing::format_of(options.format), text_columns());
    return out->close() == decoded ? decoded : unreadable;
}

ExitStatus explain(const UnitExplainOptions& options) {
    const auto named = named_registers(options);
    if (!named) return fail(named.error());
    if (!named->empty()) return show_registers(*named, options);
    if (const auto core = isa::check_core("--core", options.core); !options.core.empty() && !core)
        return fail(core.error());
    const auto units = explained(options);
    if (!units) return fail(units.error());
    auto out = Output::open(options.output);
    if (!out) return fail(out.error());
    listing::print_explanation(*out, *units, listing::format_of(options.format), text_columns());
    for (const auto& unit : *units)
        for (const std::string& remark : unit.remarks) say("note", remark);
    for (const auto& unit : *units)
        if (!unit.ignored.empty())
            say("note", fmt::format("not registers of {}, and ignored: {}", unit.explanation.unit,
                                    fmt::join(unit.ignored, ", ")));
    if (out->close() != decoded) return unreadable;
    constexpr auto cannot_be_said = static_cast<ExitStatus>(4);
    switch (listing::tracing_of(*units)) {
        case listing::Tracing::yes: return decoded;
        case listing::Tracing::no: return nothing;
        case listing::Tracing::not_known: break;
    }
    return cannot_be_said;
}

}  // namespace

Run add_explain(const Command& app) {
    auto options = std::make_shared<UnitExplainOptions>();
    const Command command = app.add("explain");
    command.option("WHAT", options->arguments);
    command.option("--core", options->core);
    command.flag("--no-cost", options->no_cost);
    command.option("--format", options->format);
    command.option("--output", options->output);
    return [options] { return explain(*options); };
}

}  // namespace waymark::cli
