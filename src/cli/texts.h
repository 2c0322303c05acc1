/// The texts of commands and options, from the files of texts/. The first line of a file is `waymark COMMAND`, and the
/// title of the command follows; or it is `options of waymark COMMAND`, for options that several commands below that
/// one share.
///
/// A line that begins an option has its names, the name of its value (-: empty), and `{a,b}` if the value is one of
/// these words. Behind two blanks, in brackets, are properties: `default` (help shows the default; of words it is the
/// first if the program has none), `not negative`, `not empty`, `required`, `several` (a list), `repeated` (a list with
/// one value behind each mention). Indented lines below are its help. A line `# Names` begins a group of options.
///
/// The footer follows a line `===`. In it, consecutive lines form a paragraph, and indented ones stay as they are
/// (help/texts.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace waymark::cli {

struct CommandText {
    std::string title;
    std::string footer;
};
struct OptionText {
    std::string names, type, help, group;
    std::vector<std::string> words;
    std::vector<std::string_view> properties;
};

/// `command`: `waymark spe records`.
[[nodiscard]] std::optional<CommandText> text_of_command(std::string_view command);
/// `option`: one of its names.
[[nodiscard]] std::optional<OptionText> text_of_option(std::string_view command, std::string_view option);

}  // namespace waymark::cli
