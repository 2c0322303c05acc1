/// `waymark explain`: why a trace unit traces or does not.
#include <fmt/ranges.h>

#include <memory>

#include "commands.h"
#include "options.h"
#include "waymark/command_line/terminal.h"
#include "waymark/doctor/explain_arguments.h"
#include "waymark/isa/cores.h"
#include "waymark/listing/explanation.h"

namespace waymark::cli {

namespace {

struct UnitExplainOptions {
    std::vector<std::string> arguments;
    std::string core, format = "text", output;
    bool no_cost = false;
};

/// Prints the purposes of registers, without values.
ExitStatus show_registers(const std::vector<doctor::NamedRegister>& named, const UnitExplainOptions& options) {
    auto out = Output::open(options.output);
    if (!out) return fail(out.error());
    listing::print_registers(*out, named, listing::format_of(options.format), text_columns());
    return out->close() == decoded ? decoded : unreadable;
}

ExitStatus explain(const UnitExplainOptions& options) {
    const auto named = doctor::named_registers(options.arguments);
    if (!named) return fail(named.error());
    if (!named->empty()) return show_registers(*named, options);
    if (const auto core = isa::check_core("--core", options.core); !options.core.empty() && !core)
        return fail(core.error());
    const auto units = doctor::explain_arguments(options.arguments, options.core, !options.no_cost,
                                                 [](const std::string& note) { say("note", note); });
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
