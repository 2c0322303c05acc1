/// A program with commands: its command line, --help in the width of the terminal, man pages, completion in shells, and
/// sentences about wrong command lines. CLI11 parses the command line, in this layer alone.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/command_line/command.h"
#include "waymark/command_line/output.h"
#include "waymark/command_line/texts.h"

namespace waymark::command_line {

/// Runs a command that was parsed.
using Run = std::function<ExitStatus()>;

struct NamedCommand {
    std::string_view name;
    Run (*add)(const Command& program);
};
/// Adds commands below `command`, and returns what runs the parsed one.
[[nodiscard]] Run add_below(const Command& command, const std::vector<std::function<Run(const Command&)>>& adds);

/// What begins with these words belongs to a topic: a part of the help that is shown only on request, as in
/// `waymark record --help spe`. The first row that matches applies.
struct TopicStart {
    std::string_view begins, topic;
};
struct Topics {
    std::vector<TopicStart> groups;      ///< of options
    std::vector<TopicStart> paragraphs;  ///< of footers
    /// The topic of the options that many commands share; `help TOPIC` explains them once.
    std::string_view shared;
    std::string shared_about;         ///< what stands above these options
    std::string_view shared_command;  ///< a command with all these options

    [[nodiscard]] std::string_view of_group(std::string_view name) const;
    [[nodiscard]] std::string_view of_paragraph(std::string_view text) const;
    /// Whether it is a topic, or `all`.
    [[nodiscard]] bool has(std::string_view word) const;
};

/// One possible word, and its description.
struct Candidate {
    std::string word, about;
};
/// What was typed before the word that is completed.
struct Typed {
    std::string_view command;  ///< the innermost, such as `records`
    std::vector<std::string> arguments{};
    std::map<std::string, std::string> values{};  ///< of options, by name: `--protocol`
};
/// An option whose values the program finds, for completion.
struct OptionLookup {
    std::string_view option;
    std::vector<Candidate> (*find)(const Typed&);
};

struct Program {
    std::string name;
    /// As man pages show it: "Waymark 0.9.0".
    std::string versioned_name;
    std::string (*version)();
    const Texts* texts;  ///< with a text of the program itself
    /// In the order of --help.
    std::vector<NamedCommand> commands;
    /// Commands without --format that print text for readers; their lines are wrapped.
    std::vector<std::string_view> commands_of_text;
    Topics topics;
    std::vector<OptionLookup> lookups;
};

/// Runs the command that the words name, and returns the exit status; never throws. Only the options of that command
/// are set up, unless help or a message needs all commands. Hidden commands serve shells and the build:
/// `__complete WORD…` prints a line for each candidate for the last word, with its description after a tab, and then
/// `:files` or `:folders`; it ends after five seconds. `__man DIR` writes the man page of each command.
[[nodiscard]] int run(const Program& program, int argc, char** argv);

}  // namespace waymark::command_line
