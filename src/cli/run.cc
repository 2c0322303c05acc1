#include <exception>
#include <memory>
#include <new>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "commands.h"

namespace waymark::cli {

namespace {

/// Text in lines of at most `columns`.
std::string wrapped(const std::string& text, std::size_t columns) {
    std::istringstream words(text);
    std::string out, word;
    std::size_t column = 0;
    while (words >> word) {
        if (column != 0 && column + 1 + word.size() > columns) {
            out += '\n';
            column = 0;
        } else if (column != 0) {
            out += ' ';
            ++column;
        }
        out += word;
        column += word.size();
    }
    return out;
}

/// Help that fits a terminal.
class Help final : public CLI::Formatter {
public:
    Help() { column_width(30); }
    [[nodiscard]] std::string make_option_desc(const CLI::Option* option) const override {
        return wrapped(option->get_description(), 100 - get_column_width());
    }
    [[nodiscard]] std::string make_option_opts(const CLI::Option* option) const override {
        std::string out;
        if (option->get_type_size() != 0 && !option->get_type_name().empty() && !option->get_positional())
            out += " " + option->get_type_name();
        if (!option->get_default_str().empty()) out += " (" + option->get_default_str() + ")";
        return out;
    }
};

std::string names_of(const std::vector<const CLI::App*>& commands) {
    std::string out;
    for (const CLI::App* command : commands)
        out += (out.empty() ? "" : command == commands.back() ? " or " : ", ") + command->get_name();
    return out;
}

/// The command named last: `records` of `waymark spe records`. Null if none was.
const CLI::App* innermost(const CLI::App& app) {
    const CLI::App* found = nullptr;
    for (const CLI::App* at = &app; !at->get_subcommands().empty();) found = at = at->get_subcommands().front();
    return found;
}
std::string full_name(const CLI::App& command) {
    return (command.get_parent() == nullptr ? "" : full_name(*command.get_parent()) + " ") + command.get_name();
}

/// What is wrong with the command line.
std::string sentence_of(const CLI::ParseError& error, const CLI::App& app, int argc, char** argv) {
    const std::vector<CLI::App*> parsed = app.get_subcommands();
    if (parsed.empty()) {
        const std::string all = names_of(app.get_subcommands(std::function<bool(const CLI::App*)>{}));
        for (int i = 1; i < argc; ++i)
            if (argv[i][0] != '-')
                return fmt::format("'{}' is not a waymark command; the commands are {}", argv[i], all);
        return argc > 1 ? fmt::format("'{}' is no option of waymark itself; name a command first: {}", argv[1], all)
                        : "name a command: " + all;
    }
    const CLI::App& last = *innermost(app);
    const std::string command = full_name(last), what = error.what();
    const std::string option = what.substr(0, what.find(':'));
    const auto own = last.get_subcommands(std::function<bool(const CLI::App*)>{});
    if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
        const std::vector<std::string> extras = last.remaining();
        for (const std::string& extra : extras)
            if (extra.size() > 1 && extra[0] == '-') return fmt::format("{} has no option '{}'", command, extra);
        if (!own.empty())
            return fmt::format("'{}' is not a command of {}; the commands are {}", extras.front(), command,
                               names_of(own));
        return fmt::format("unexpected argument '{}': {} takes one CAPTURE", extras.front(), command);
    }
    if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
        const std::string name = last.get_name();
        if (!own.empty()) {
            const std::vector<std::string> extras = last.remaining();
            return extras.empty() ? fmt::format("{} needs a command: {}", command, names_of(own))
                                  : fmt::format("'{}' is not a command of {}; the commands are {}", extras.front(),
                                                command, names_of(own));
        }
        if (name == "record")
            return fmt::format(
                "{} needs an output and a program: {} -o DIR -- PROGRAM [ARGS…], or with --as perf or --unit spe -o "
                "FILE",
                command, command);
        for (const char* needed : {"--output", "--for"})
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
        if (name == "program") return fmt::format("no register program given: {} needs its file, or -", command);
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
                   ? fmt::format("{} may be given once only", option)
                   : fmt::format("{} needs a value", option);
    if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) {
        // "Could not convert: --jobs = -1"
        const std::size_t at = what.find("--"), equals = what.find(" = ");
        if (at != what.npos && equals != what.npos && at < equals)
            return fmt::format("{} takes a whole number, not '{}'", what.substr(at, equals - at),
                               what.substr(equals + 3));
    }
    return what;
}

}  // namespace

CLI::Validator one_of(std::vector<std::string> words) {
    return CLI::Validator(
        [words = std::move(words)](std::string& value) -> std::string {
            std::string list;
            for (const std::string& word : words) {
                if (CLI::detail::to_lower(word) == CLI::detail::to_lower(value)) {
                    value = word;
                    return {};
                }
                list += (list.empty() ? "" : &word == &words.back() ? " or " : ", ") + word;
            }
            return fmt::format("'{}' is not {}", value, list);
        },
        "", "one of");
}

CLI::Validator not_negative() {
    return CLI::Validator(
        [](std::string& value) -> std::string {
            return value.starts_with('-') ? fmt::format("'{}' is below 0", value) : std::string();
        },
        "", "from 0 up");
}

CLI::Validator not_empty() {
    return CLI::Validator(
        [](std::string& value) -> std::string {
            return value.empty() ? "it is empty; leave it out, or give a name" : "";
        },
        "", "not empty");
}

int run(int argc, char** argv) {
    CLI::App app{
        "Waymark decodes Arm program flow trace (PTM, ETMv4, ETE), statistical profiles (SPE) and StarCore DPU "
        "captures: which "
        "code "
        "ran, when, and what was lost.",
        "waymark"};
    app.require_subcommand(1);
    app.formatter(std::make_shared<Help>());
    app.set_version_flag("--version", "waymark " WAYMARK_VERSION);
    app.footer(
        "Exit status: 0 success; 1 there is nothing to show, or trace was lost and --strict is given; 2 invalid "
        "command\n"
        "line; 3 an input cannot be read completely, or the output cannot be written (also if 1 applies). Everything\n"
        "that could be read is shown in any case.\n"
        "waymark COMMAND --help describes each command.");
    std::vector<std::pair<CLI::App*, Run>> commands;
    const auto add = [&](Run command) { commands.emplace_back(app.get_subcommands({}).back(), std::move(command)); };
    add(add_info(app));
    add(add_packets(app));
    add(add_flow(app));
    add(add_report(app));
    add(add_profile(app));
    add(add_coverage(app));
    add(add_branches(app));
    add(add_loops(app));
    add(add_exceptions(app));
    add(add_diff(app));
    add(add_record(app));
    add(add_verify(app));
    add(add_doctor(app));
    for (const auto& add_command : unit_commands()) add(add_command(app));
    add(add_answers(app));
    add(add_merge(app));
    add(add_fleet(app));
    add(add_pgo(app));
    add(add_export(app));
    add(add_query(app));
    try {
        app.parse(argc, argv);
        for (const auto& [command, go] : commands)
            if (command->parsed()) return go();
    } catch (const CLI::ParseError& error) {
        // Help and version are no errors, and come this way too.
        if (error.get_exit_code() == 0) return app.exit(error);
        const CLI::App* const last = innermost(app);
        say("error", fmt::format("{}. See {} --help", sentence_of(error, app, argc, argv),
                                 full_name(last == nullptr ? app : *last)));
        return usage;
    } catch (const std::bad_alloc&) {
        say("error", "out of memory");
        return unreadable;
    } catch (const std::exception& error) {
        say("error", error.what());
        return unreadable;
    }
    return usage;
}

}  // namespace waymark::cli
