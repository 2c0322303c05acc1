/// `waymark spe explain`: why a Statistical Profiling unit takes samples or does not.
#include <fmt/ranges.h>

#include <map>
#include <memory>

#include "../options.h"
#include "commands.h"
#include "waymark/doctor/explain_arguments.h"

namespace waymark::cli {

namespace {

struct ExplainOptions {
    std::vector<std::string> arguments;
    std::map<std::string, std::string> registers;  ///< by published name
    spe::ExplainedUnit unit;
    std::string format = "text", output;
};

ExitStatus explain(const ExplainOptions& options) {
    const auto input = doctor::profiler_settings(options.arguments, options.registers, options.unit);
    if (!input) return fail(input.error());
    for (const std::string& note : input->notes()) say("note", note);
    const spe::Explanation explanation = input->explain();
    auto out = Output::open(options.output);
    if (!out) return fail(out.error());
    out->write(options.format == "json" ? explanation_json(*input, explanation)
                                        : explanation_text(*input, explanation));
    if (out->close() != decoded) return unreadable;
    return explanation.samples() ? decoded : nothing;
}

}  // namespace

Run add_spe_explain(const Command& spe_commands) {
    auto options = std::make_shared<ExplainOptions>();
    const Command command = spe_commands.add("explain");
    command.option("SETTING", options->arguments);
    command.option("--spe", options->unit.version)->transform({[](std::string& text) {
        if (text.starts_with("1.")) text.insert(0, "v");
        return std::string();
    }});
    command.option("--revision", options->unit.revision);
    command.flag("--as-printed", options->unit.as_printed);
    const std::vector<std::string> names = spe::ExplainedUnit::features();
    command
        .add_option("--with", options->unit.with,
                    fmt::format("Implemented: {}. May be repeated", fmt::join(names, ", ")))
        ->type_name("FEATURE")
        ->transform(one_of(names))
        ->repeated();
    command.option("--without", options->unit.without)->transform(one_of(names));
    command.option("--format", options->format);
    command.option("--output", options->output);
    const spe::Registers registers;
    spe::Registers::for_each(registers, [&](const auto& r) {
        command.add_option("--" + std::string(r.name), options->registers[std::string(r.name)], std::string(r.title))
            ->type_name("VALUE")
            ->group("Registers (0x hexadecimal, 0b binary, else decimal; see below)");
    });
    return [options] { return explain(*options); };
}

}  // namespace waymark::cli
