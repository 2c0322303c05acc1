#include "mistakes.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "commands.h"
#include "help/suggest.h"
#include "help/texts.h"

namespace waymark::cli {

namespace {

std::string names_of(const std::vector<const CLI::App*>& commands) {
    std::string out;
    for (const CLI::App* command : commands)
        out += (out.empty() ? "" : command == commands.back() ? " or " : ", ") + command->get_name();
    return out;
}

/// The long names of the options, as they are typed.
std::vector<std::string> option_names(const CLI::App& command) {
    std::vector<std::string> out;
    for (const CLI::Option* option : command.get_options())
        if (!option->get_group().empty())
            for (const std::string& name : option->get_lnames()) out.push_back("--" + name);
    return out;
}

/// Options that an unknown option may stand for. Also handles a value that people take for an option, such as --json.
std::string option_meant(const std::string& given, const CLI::App& command) {
    const std::string word = given.substr(0, given.find('='));
    for (const CLI::Option* option : command.get_options())
        for (const std::string& choice : choices_of(*option))
            if (word == "--" + choice) return fmt::format("; did you mean {} {}?", option->get_name(), choice);
    return did_you_mean(word, option_names(command));
}

std::string no_command(const std::string& word, const CLI::App& of) {
    const std::vector<const CLI::App*> commands = commands_of(of);
    std::vector<std::string> names;
    for (const CLI::App* command : commands) names.push_back(command->get_name());
    const std::string meant = did_you_mean(word, names);
    return fmt::format("'{}' is not a {}{}", word,
                       of.get_parent() == nullptr ? "waymark command" : "command of " + full_name(of),
                       meant.empty() ? "; the commands are " + names_of(commands) : meant);
}

}  // namespace

const CLI::App* innermost(const CLI::App& app) {
    const CLI::App* found = nullptr;
    for (const CLI::App* at = &app; !at->get_subcommands().empty();) found = at = at->get_subcommands().front();
    return found;
}

/// What shows several captures, where a command shows one.
std::string_view for_more_captures(const CLI::App& command) {
    if (command.get_name() == "serve")
        return "; serve each with its own command, or compare two with waymark report BEFORE --against AFTER";
    if (command.get_name() == "report") return "; --against AFTER compares it with another";
    return "";
}

std::string sentence_of(const CLI::ParseError& error, const CLI::App& app, int argc, char** argv) {
    const std::vector<CLI::App*> parsed = app.get_subcommands();
    if (parsed.empty()) {
        const std::string all = names_of(commands_of(app));
        for (int i = 1; i < argc; ++i)
            if (argv[i][0] != '-') return no_command(argv[i], app);
        if (argc > 1)
            if (const std::string meant = did_you_mean(argv[1], option_names(app)); !meant.empty())
                return fmt::format("waymark has no option '{}'{}", argv[1], meant);
        return argc > 1 ? fmt::format("'{}' is no option of waymark itself; name a command first: {}", argv[1], all)
                        : "name a command: " + all;
    }
    const CLI::App& last = *innermost(app);
    const std::string command = full_name(last), what = error.what();
    const std::string option = what.substr(0, what.find(':'));
    const auto own = commands_of(last);
    if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
        std::vector<std::string> extras = last.remaining();
        if (extras.empty()) {
            // CLI11 leaves the words after "--" to the outermost command.
            extras = app.remaining(true);
            if (last.get_name() == "record")
                return fmt::format("an argument before -- belongs to no option: {} [OPTIONS] -- PROGRAM [ARGS…]",
                                   command);
            if (extras.empty()) return fmt::format("{}: {}", command, what);
            return fmt::format("unexpected argument '{}': {} takes one CAPTURE{}", extras.front(), command,
                               for_more_captures(last));
        }
        for (const std::string& extra : extras)
            if (extra.size() > 1 && extra[0] == '-')
                return fmt::format("{} has no option '{}'{}", command, extra, option_meant(extra, last));
        if (!own.empty()) return no_command(extras.front(), last);
        return fmt::format("unexpected argument '{}': {} takes one CAPTURE{}", extras.front(), command,
                           for_more_captures(last));
    }
    if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
        const std::string name = last.get_name();
        if (!own.empty()) {
            const std::vector<std::string> extras = last.remaining();
            return extras.empty() ? fmt::format("{} needs a command: {}", command, names_of(own))
                                  : no_command(extras.front(), last);
        }
        if (name == "record")
            return fmt::format("{} needs a program: {} [-o DIR] -- PROGRAM [ARGS…]", command, command);
        for (const char* needed : {"--output", "--for", "--function"})
            if (what.starts_with(needed)) return fmt::format("{} needs {}", command, needed);
        if (last.get_parent() != nullptr && last.get_parent()->get_name() == "fleet")
            return name == "plan" ? fmt::format("{} needs captures, and the folder of the job with -o", command)
                                  : fmt::format("{} needs the folder of a job{}", command,
                                                name == "add"         ? ", and captures"
                                                : name == "run-shard" ? ", and the number of a shard"
                                                                      : "");
        if (name == "merge") return fmt::format("no file given: {} needs answers files", command);
        if (last.get_parent() != nullptr && last.get_parent()->get_name() == "spe" && name != "explain")
            return fmt::format("no capture given: {} needs a perf.data file, or the bare bytes of a buffer", command);
        if (name == "run")
            return fmt::format("no {} given: {} needs a register program and a stimulus, as in examples/stimuli",
                               "stimulus", command);
        const bool of_dpu = last.get_parent() != nullptr && last.get_parent()->get_name() == "dpu";
        if (name == "program" && of_dpu)
            return fmt::format("no register program given: {} needs its file, or -", command);
        if (name == "program")
            return fmt::format("{} needs --unit and --for, as in waymark program --unit ptm --for devmem", command);
        if (last.get_parent() != nullptr && last.get_parent()->get_name() == "dpu")
            return fmt::format(
                "no capture given: {} needs a folder with a dpu.ini, as 'waymark record --unit dpu' writes it",
                command);
        if (name == "doctor")
            return fmt::format("no capture given: {} needs a folder, a perf.data file, or bare trace files", command);
        if (name == "query")
            return fmt::format("no file given: {} needs one that 'waymark export --to sqlite' wrote", command);
        if (name == "verify") return fmt::format("no recording given: {} needs its folder", command);
        return fmt::format(
            "no capture given: {} needs a snapshot folder, a perf.data file, a folder with a dpu.ini, or a bare trace "
            "file and --protocol",
            command);
    }
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr)
        return what.find("At Most") != what.npos || what.find("at most") != what.npos
                   ? fmt::format("{} may be given only once", option)
                   : fmt::format("{} needs a value", option);
    if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) {
        // The message is, for example, "Could not convert: --jobs = -1".
        const std::size_t at = what.find("--"), equals = what.find(" = ");
        if (at != what.npos && equals != what.npos && at < equals)
            return fmt::format("{} takes a whole number, not '{}'", what.substr(at, equals - at),
                               what.substr(equals + 3));
    }
    return what;
}

}  // namespace waymark::cli
