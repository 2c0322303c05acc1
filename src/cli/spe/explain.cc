/// `waymark spe explain`: why a Statistical Profiling unit takes samples or does not.
#include <fmt/ranges.h>

#include <filesystem>
#include <map>
#include <memory>

#include "../options.h"
#include "commands.h"
#include "waymark/capture/text_file.h"
#include "waymark/spe/explanation.h"

namespace waymark::cli {

namespace {

struct ExplainOptions {
    std::vector<std::string> arguments;
    std::map<std::string, std::string> registers;  ///< by published name
    spe::ExplainedUnit unit;
    std::string format = "text", output;
};

Result<spe::ExplainInput> read(const ExplainOptions& options) {
    spe::ExplainInput input;
    for (const std::string& path : options.arguments) {
        if (path.find('=') != path.npos) continue;
        std::error_code none;
        if (path != "-" && !std::filesystem::exists(path, none))
            return Error{Errc::not_found, path +
                                              ": there is no such file; a register is given as NAME=VALUE, and an "
                                              "argument without a = is a file"};
        WM_ASSIGN_OR_RETURN(const std::string text, capture::read_text_file(path, capture::most_settings_bytes));
        WM_RETURN_IF_ERROR(input.add_file(path, text));
    }
    for (const auto& [name, value] : options.registers)
        if (!value.empty()) WM_RETURN_IF_ERROR(input.add(name, value));
    for (const std::string& argument : options.arguments)
        if (const std::size_t equals = argument.find('='); equals != argument.npos)
            WM_RETURN_IF_ERROR(input.add(argument.substr(0, equals), argument.substr(equals + 1)));
    WM_RETURN_IF_ERROR(input.finish(options.unit));
    return input;
}

ExitStatus explain(const ExplainOptions& options) {
    const auto input = read(options);
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

Run add_spe_explain(CLI::App& spe_commands) {
    auto options = std::make_shared<ExplainOptions>();
    CLI::App& command =
        *spe_commands.add_subcommand("explain", "Explain from register values why a unit takes samples or not");
    command
        .add_option(
            "SETTING", options->arguments,
            "A register or one of its fields, PMSCR_EL1=0x6b or MDCR_EL2.E2PB=0b11; or a file of registers (- is "
            "standard input): lines 'NAME VALUE', or JSON")
        ->take_all();
    command.add_option("--spe", options->unit.version, "Version of the extension: v1.0 to v1.5, or none")
        ->type_name("VERSION")
        ->transform(one_of({"none", "v1.0", "v1.1", "v1.2", "v1.3", "v1.4", "v1.5"}))
        ->transform([](std::string text) { return text.starts_with("1.") ? "v" + text : text; })
        ->capture_default_str();
    command
        .add_option("--revision", options->unit.revision,
                    "Text of the functions to follow: first (Armv8.2) or modern; that of the version if not given")
        ->type_name("NAME")
        ->transform(one_of({"first", "modern"}));
    command.add_flag("--as-printed", options->unit.as_printed,
                     "Read CollectContextIDR2 of the first revision as printed, with its test inverted");
    const std::vector<std::string> names = spe::ExplainedUnit::features();
    command
        .add_option("--with", options->unit.with,
                    fmt::format("Implemented: {}. May be repeated", fmt::join(names, ", ")))
        ->type_name("FEATURE")
        ->transform(one_of(names))
        ->allow_extra_args(false)
        ->take_all();
    command
        .add_option("--without", options->unit.without,
                    "Not implemented. EL2, EL3 and what --spe and PMSIDR_EL1 name are implemented unless left out here")
        ->type_name("FEATURE")
        ->transform(one_of(names))
        ->allow_extra_args(false)
        ->take_all();
    add_choice(command, "--format", options->format, {"text", "json"}, "text or json");
    add_output(command, options->output);
    const spe::Registers registers;
    spe::Registers::for_each(registers, [&](const auto& r) {
        command.add_option("--" + std::string(r.name), options->registers[std::string(r.name)], std::string(r.title))
            ->type_name("VALUE")
            ->group("Registers (0x hexadecimal, 0b binary, else decimal; see below)");
    });
    command.footer(
        "For each exception level it shows whether operations are sampled, and if not, each condition that prevents "
        "it\n"
        "and the value that would remove the condition; which level owns the profiling buffer; which register accesses "
        "trap,\n"
        "and to where; what a record would contain; and how filters, interval and buffer affect the samples. If "
        "PSTATE.EL\n"
        "is given, only that level is shown. References in brackets, such as (3.4 row 7), are sections of "
        "docs/spec/spe.md.\n"
        "'first' and 'modern' are the two revisions that its section 3 distinguishes; RME belongs to the modern one.\n"
        "\n"
        "Registers not given count as 0, except three fields that software can seldom read: MDCR_EL3.NSPB gives\n"
        "the buffer to Non-secure state, SCR_EL3.NS is Non-secure, and MDCR_EL2.E2PB gives the buffer to EL1, or keeps "
        "it\n"
        "for EL2 if HCR_EL2.TGE is 1 or PMSCR_EL2 is given. Conditions that depend on such a value say '(not given)'. "
        "If\n"
        "the interval or the write pointer is not given, it is not checked, and a note says so.\n"
        "\n"
        "A number without 0x or 0b is decimal, unless it has a letter from a to f or sixteen digits: then it is "
        "hexadecimal,\nand so are all other numbers without a prefix in the same file. A note lists the registers "
        "that this "
        "affects. A\nregister on the command line overrides that of a file, and a field overrides its register.\n"
        "\n"
        "  waymark spe explain PMBLIMITR_EL1=0x80001 PMSCR_EL1.E0SPE=1 PMSIRR_EL1=0x1000\n"
        "  waymark spe explain registers.txt --spe v1.2 PMBSR_EL1=0\n"
        "\n"
        "Exit status: 0 samples are taken; 1 none are; 2 usage; 3 a file cannot be read, or the output "
        "cannot be written.\n");
    return [options] { return explain(*options); };
}

}  // namespace waymark::cli
