/// The texts that commands show with --help, in parts, so that help and man pages are made from the same words.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace waymark::cli {

/// One part of the text below a command's options.
struct TextPart {
    enum class Kind {
        paragraph,  ///< words that fill lines of any width
        heading,    ///< a line such as `Examples:`
        verbatim,   ///< lines that stay as they are: commands, files
        item,       ///< a term and what it means
    };
    Kind kind = Kind::paragraph;
    std::string term;  ///< of an item
    std::string text;  ///< of verbatim parts with line breaks between lines
    bool after_blank = false;
};

/// Takes the text of a footer apart. Lines without indentation that follow each other are one paragraph; one that is a
/// single word and a colon is a heading; indented lines are items if each has a term, two spaces and more words, or
/// continues such a line further to the right; other indented lines are verbatim.
[[nodiscard]] std::vector<TextPart> parts_of(std::string_view footer);

/// Words in lines of at most `columns`; a word that is longer has a line of its own.
[[nodiscard]] std::vector<std::string> wrapped(std::string_view text, std::size_t columns);

/// The value that an option takes, as help shows it: `FORMAT`; empty for a flag. Without the types and checks that the
/// parser adds to it.
[[nodiscard]] std::string value_name(const CLI::Option& option);

/// The words that are the option's only values; empty if it takes others.
[[nodiscard]] std::vector<std::string> choices_of(const CLI::Option& option);

/// `--format` with its short name: `-o, --output`; of a positional argument its name.
[[nodiscard]] std::string shown_names(const CLI::Option& option);

/// `waymark spe records`.
[[nodiscard]] std::string full_name(const CLI::App& command);

/// The commands of a command, in the order of --help.
[[nodiscard]] std::vector<const CLI::App*> commands_of(const CLI::App& command);

/// Options that help shows, in groups, each once; positional arguments are not among them.
struct OptionGroup {
    std::string name;
    std::vector<const CLI::Option*> options;
};
[[nodiscard]] std::vector<OptionGroup> option_groups(const CLI::App& command);
[[nodiscard]] std::vector<const CLI::Option*> arguments_of(const CLI::App& command);

/// `waymark flow [OPTIONS] CAPTURE`.
[[nodiscard]] std::string usage_of(const CLI::App& command);

}  // namespace waymark::cli
