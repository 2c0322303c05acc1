/// The texts that commands show with --help, split into parts, so that help and man pages come from the same words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "waymark/listing/text.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace waymark::command_line {

/// One part of the text below a command's options.
struct TextPart {
    enum class Kind {
        paragraph,  ///< words that are filled into lines of any width
        heading,    ///< a line such as `Examples:`
        verbatim,   ///< lines that are kept unchanged: commands, files
        item,       ///< a term and its meaning
    };
    Kind kind = Kind::paragraph;
    std::string term;  ///< of an item
    std::string text;  ///< verbatim parts contain line breaks
    bool after_blank = false;
};

/// Splits the text of a footer into parts. Consecutive lines without indentation form a paragraph; a single word with a
/// colon is a heading. Indented lines are items if each has a term, two spaces and more words, or continues such a line
/// further to the right. Other indented lines are verbatim.
[[nodiscard]] std::vector<TextPart> parts_of(std::string_view footer);

using listing::wrapped;

/// The name of an option's value, as help shows it: `FORMAT`; empty for a flag. The types and checks that the parser
/// appends are removed.
[[nodiscard]] std::string value_name(const CLI::Option& option);

/// The option's possible values, if they are a fixed set of words; otherwise empty.
[[nodiscard]] std::vector<std::string> choices_of(const CLI::Option& option);

/// An option with its short name: `-o, --output`; for a positional argument its name.
[[nodiscard]] std::string shown_names(const CLI::Option& option);

/// `waymark spe records`.
[[nodiscard]] std::string full_name(const CLI::App& command);
/// `waymark`, of any of its commands.
[[nodiscard]] std::string program_of(const CLI::App& command);
/// Whether the line is a command of the same program: whether it begins with `waymark `.
[[nodiscard]] bool is_own_command(const CLI::App& command, std::string_view line);

/// The commands of a command, in the order of --help.
[[nodiscard]] std::vector<const CLI::App*> commands_of(const CLI::App& command);

/// The options that help shows, in groups, each once, without positional arguments.
struct OptionGroup {
    std::string name;
    std::vector<const CLI::Option*> options;
};
[[nodiscard]] std::vector<OptionGroup> option_groups(const CLI::App& command);
[[nodiscard]] std::vector<const CLI::Option*> arguments_of(const CLI::App& command);

/// The usage line, such as `waymark flow [OPTIONS] CAPTURE`.
[[nodiscard]] std::string usage_of(const CLI::App& command);

}  // namespace waymark::command_line
