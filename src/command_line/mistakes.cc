#include "mistakes.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "help.h"
#include "suggest.h"

namespace waymark::command_line {

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
                       of.get_parent() == nullptr ? of.get_name() + " command" : "command of " + full_name(of),
                       meant.empty() ? "; the commands are " + names_of(commands) : meant);
}

}  // namespace

const CLI::App* innermost(const CLI::App& app) {
    const CLI::App* found = nullptr;
    for (const CLI::App* at = &app; !at->get_subcommands().empty();) found = at = at->get_subcommands().front();
    return found;
}

std::string sentence_of(const CLI::ParseError& error, const CLI::App& app, const Texts& texts, int argc, char** argv) {
    const std::vector<CLI::App*> parsed = app.get_subcommands();
    if (parsed.empty()) {
        const std::string all = names_of(commands_of(app));
        for (int i = 1; i < argc; ++i)
            if (argv[i][0] != '-') return no_command(argv[i], app);
        if (argc > 1)
            if (const std::string meant = did_you_mean(argv[1], option_names(app)); !meant.empty())
                return fmt::format("{} has no option '{}'{}", app.get_name(), argv[1], meant);
        return argc > 1 ? fmt::format("'{}' is no option of {} itself; name a command first: {}", argv[1],
                                      app.get_name(), all)
                        : "name a command: " + all;
    }
    const CLI::App& last = *innermost(app);
    const std::string command = full_name(last), what = error.what();
    const std::string option = what.substr(0, what.find(':'));
    const auto own = commands_of(last);
    if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
        std::vector<std::string> extras = last.remaining();
        const bool before_dashes = !extras.empty();
        if (!before_dashes) {
            // CLI11 leaves the words after "--" to the outermost command.
            extras = app.remaining(true);
            if (const auto stray = texts.sentence(command, "stray")) return *stray;
            if (extras.empty()) return fmt::format("{}: {}", command, what);
        } else {
            for (const std::string& extra : extras)
                if (extra.size() > 1 && extra[0] == '-')
                    return fmt::format("{} has no option '{}'{}", command, extra, option_meant(extra, last));
            if (!own.empty()) return no_command(extras.front(), last);
        }
        return fmt::format("unexpected argument '{}': {} takes one CAPTURE{}", extras.front(), command,
                           texts.sentence(command, "too many").value_or(""));
    }
    if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
        if (!own.empty()) {
            const std::vector<std::string> extras = last.remaining();
            return extras.empty() ? fmt::format("{} needs a command: {}", command, names_of(own))
                                  : no_command(extras.front(), last);
        }
        if (what.starts_with("--")) {
            const std::string needed = what.substr(0, what.find(' '));
            return texts.sentence(command, "missing " + needed).value_or(fmt::format("{} needs {}", command, needed));
        }
        return texts.sentence(command, "missing").value_or(what);
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

}  // namespace waymark::command_line
