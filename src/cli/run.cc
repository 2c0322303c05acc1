#include <exception>
#include <filesystem>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "commands.h"
#include "help/complete.h"
#include "help/formatter.h"
#include "help/man_page.h"
#include "help/texts.h"
#include "help/version.h"
#include "mistakes.h"
#include "terminal.h"

namespace waymark::cli {

namespace {

/// Calls `each` with the command and all commands below it.
void for_all(CLI::App& command, const std::function<void(CLI::App&)>& each) {
    each(command);
    for (CLI::App* sub : command.get_subcommands(std::function<bool(CLI::App*)>{})) for_all(*sub, each);
}

/// --no-pager, before or after the command. Help shows it where a command prints something to read.
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

/// `waymark __man DIR`: the man page of each command, for the build.
ExitStatus write_man_pages(CLI::App& app, const std::string& folder) {
    ExitStatus status = decoded;
    const std::string date = page_date();
    for_all(app, [&](CLI::App& command) {
        auto out = Output::open((std::filesystem::path(folder) / (page_name(command) + ".1")).string());
        if (!out) {
            say("error", out.error().message);
            status = unreadable;
            return;
        }
        out->write(man_page(command, date));
        if (out->close() != decoded) status = unreadable;
    });
    return status;
}

ExitStatus parse_and_go(CLI::App& app, const std::vector<std::pair<CLI::App*, Run>>& commands, int argc, char** argv) {
    try {
        app.parse(argc, argv);
        for (const auto& [command, go] : commands)
            if (command->parsed()) return go();
    } catch (const CLI::CallForHelp&) {
        return print(app.help());
    } catch (const CLI::CallForVersion& version) {
        return print(version.what() + std::string("\n"));
    } catch (const CLI::ParseError& error) {
        // Options that only print a list.
        if (error.get_exit_code() == 0) return decoded;
        const CLI::App* const last = innermost(app);
        const std::string sentence = sentence_of(error, app, argc, argv);
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

}  // namespace

int run(int argc, char** argv) {
    CLI::App app{
        "Waymark decodes Arm program flow trace (PTM, ETMv4, ETE), statistical profiles (SPE) and StarCore DPU "
        "captures: which "
        "code "
        "ran, when, and what was lost.",
        "waymark"};
    app.require_subcommand(1);
    app.formatter(std::make_shared<HelpFormatter>(text_columns()));
    app.set_version_flag("--version", version_text, "Print the version, and those of libraries, and exit");
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
    // After the commands, which would take it over.
    app.footer(
        "Exit status: 0 success; 1 there is nothing to show, or trace was lost and --strict is given; 2 invalid "
        "command "
        "line; 3 an input cannot be read completely, or the output cannot be written (also if 1 applies). Everything "
        "that could be read is shown in any case.\n"
        "\n"
        "Environment:\n"
        "  PAGER     The program that shows output on a terminal; default: less, which ends by itself if all fits the "
        "screen. cat or nothing: none\n"
        "  LESS      Options of less; default: FRX\n"
        "  NO_COLOR  If set to anything, no colours are used\n"
        "\n"
        "waymark COMMAND --help describes each command, and so does 'man waymark-COMMAND'.\n");
    for_all(app, add_no_pager);
    const std::span<char*> arguments(argv, static_cast<std::size_t>(argc));
    // Hidden, for the scripts of shells and for the build.
    if (argc > 2 && arguments[1] == std::string_view("__complete"))
        return run_complete(app, {arguments.begin() + 2, arguments.end()});
    if (argc == 3 && arguments[1] == std::string_view("__man")) return write_man_pages(app, arguments[2]);
    const ExitStatus status = parse_and_go(app, commands, argc, argv);
    end_terminal_output();
    return status;
}

}  // namespace waymark::cli
