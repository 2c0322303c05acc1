#include "waymark/command_line/program.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "completion.h"
#include "formatter.h"
#include "help.h"
#include "man_page.h"
#include "mistakes.h"
#include "waymark/command_line/terminal.h"
#include "waymark/core/result.h"
#include "wrap.h"

namespace waymark::command_line {

namespace {

/// Calls `each` with the command and all commands below it.
void for_all(CLI::App& command, const std::function<void(CLI::App&)>& each) {
    each(command);
    for (CLI::App* sub : command.get_subcommands(std::function<bool(CLI::App*)>{})) for_all(*sub, each);
}

/// Adds --no-pager, before or after the command. Help shows it for commands that print text for reading.
void add_no_pager(CLI::App& command) {
    CLI::Option* const option = command.add_flag_callback(
        "--no-pager", refuse_pager, "Write long output straight to the terminal, not through a pager");
    if (command.get_parent() != nullptr && command.get_option_no_throw("--format") == nullptr) option->group("");
}

ExitStatus print(const std::string& text) {
    auto out = Output::open("-");
    if (!out) return unreadable;
    out->write(text);
    return out->close();
}

/// Writes the man page of each command.
ExitStatus write_man_pages(CLI::App& app, const std::string& from, const std::string& folder) {
    ExitStatus status = decoded;
    const std::string date = page_date();
    for_all(app, [&](CLI::App& command) {
        auto out = Output::open((std::filesystem::path(folder) / (page_name(command) + ".1")).string());
        if (!out) {
            say("error", out.error().message);
            status = unreadable;
            return;
        }
        out->write(man_page(command, from, date));
        if (out->close() != decoded) status = unreadable;
    });
    return status;
}

/// The command line with all commands, or with only the command that is named first: setting up the options of all
/// commands takes longer than decoding a small capture.
struct CommandLine {
    const Program& program;
    CLI::App app;
    std::shared_ptr<HelpFormatter> help;
    std::vector<std::pair<CLI::App*, Run>> commands;
    bool complete = true;

    /// `only`: the name of a command, or --version, which needs no command. For any other word, the command line gets
    /// all commands.
    CommandLine(const Program& program, std::string_view only);
};

/// Whether the parsed command prints text for readers, in lines as wide as the terminal.
bool prints_text(const Program& program, const CLI::App& command) {
    const auto given = [&](const char* name) {
        const CLI::Option* const option = command.get_option_no_throw(name);
        return option != nullptr && option->count() != 0;
    };
    if (given("--wide")) return false;
    if (given("--list")) return true;
    const CLI::Option* const format = command.get_option_no_throw("--format");
    if (format == nullptr)
        return std::ranges::find(program.commands_of_text, command.get_name()) != program.commands_of_text.end();
    const auto value = format->as<std::string>();
    return value == "text" || value == "summary" || value == "calls";
}

/// Runs the command. Returns nullopt if help or an error message needs the complete command line.
std::optional<ExitStatus> parse_and_go(CommandLine& line, int argc, char** argv) {
    CLI::App& app = line.app;
    bool parsed = false;
    try {
        app.parse(argc, argv);
        parsed = true;
        if (const CLI::App* const last = innermost(app); last != nullptr && prints_text(line.program, *last))
            wrap_lines();
        for (const auto& [command, go] : line.commands)
            if (command->parsed()) return go();
    } catch (const CLI::CallForHelp&) {
        if (!line.complete) return {};
        if (const std::string mistake = mistake_in_help(line.program.topics, app, argc, argv); !mistake.empty()) {
            say("error", mistake);
            return usage;
        }
        line.help->show(topic_asked_for(line.program.topics, argc, argv));
        return print(app.help());
    } catch (const CLI::CallForVersion& version) {
        return print(version.what() + std::string("\n"));
    } catch (const CLI::ParseError& error) {
        // Options that print a list and exit.
        if (error.get_exit_code() == 0) return decoded;
        if (!line.complete && !parsed) return {};
        const CLI::App* const last = innermost(app);
        const std::string sentence = sentence_of(error, app, *line.program.texts, argc, argv);
        say("error", fmt::format("{}{} See {} --help", sentence, sentence.ends_with('?') ? "" : ".",
                                 full_name(last == nullptr ? app : *last)));
    } catch (const std::bad_alloc&) {
        say("error", "out of memory");
        return unreadable;
    } catch (const std::exception& error) {
        say("error", error.what());
        return unreadable;
    }
    return usage;
}

CommandLine::CommandLine(const Program& of, std::string_view only)
    : program{of}, app{"", of.name}, help{std::make_shared<HelpFormatter>(of.topics, text_columns())} {
    const std::optional<CommandText> text = of.texts->command(of.name);
    WM_CHECK(text.has_value());
    app.description(text->title);
    app.require_subcommand(1);
    app.formatter(help);
    app.set_version_flag("--version", of.version, "Print the version, and the versions of libraries, and exit");
    const auto is_only = [only](const NamedCommand& command) { return command.name == only; };
    complete = only != "--version" && std::ranges::none_of(of.commands, is_only);
    for (const NamedCommand& command : of.commands) {
        if (!complete && !is_only(command)) continue;
        Run run = command.add(Command(app, *of.texts));
        commands.emplace_back(app.get_subcommand(std::string(command.name)), std::move(run));
    }
    // The footer is set after the commands are added, since they would inherit it.
    app.footer(text->footer);
    for_all(app, add_no_pager);
}

}  // namespace

Run add_below(const Command& command, const std::vector<std::function<Run(const Command&)>>& adds) {
    CLI::App& app = command.app();
    app.require_subcommand(1);
    std::vector<std::pair<CLI::App*, Run>> commands;
    for (const auto& add : adds) {
        Run run = add(command);
        commands.emplace_back(app.get_subcommands({}).back(), std::move(run));
    }
    return [commands = std::move(commands)] {
        for (const auto& [below, go] : commands)
            if (below->parsed()) return go();
        return usage;
    };
}

int run(const Program& program, int argc, char** argv) {
    std::vector<std::string> as_option = as_help_option(program.topics, argc, argv);
    std::vector<char*> words;
    for (std::string& word : as_option) words.push_back(word.data());
    if (!words.empty()) {
        argc = static_cast<int>(words.size());
        words.push_back(nullptr);
        argv = words.data();
    }
    const std::vector<std::string_view> arguments(argv, argv + argc);
    const std::string_view first = argc > 1 ? arguments[1] : "";
    const auto line = std::make_unique<CommandLine>(program, first);
    if (argc > 2 && first == "__complete")
        return run_complete(program.lookups, line->app, {arguments.begin() + 2, arguments.end()});
    if (argc == 3 && first == "__man") return write_man_pages(line->app, program.versioned_name, argv[2]);
    std::optional<ExitStatus> status = parse_and_go(*line, argc, argv);
    if (!status) status = parse_and_go(*std::make_unique<CommandLine>(program, ""), argc, argv);
    end_terminal_output();
    return status.value_or(usage);
}

}  // namespace waymark::command_line
