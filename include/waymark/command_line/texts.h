/// The texts of commands and options. The first line of a text is `waymark COMMAND`, and the title of the command
/// follows; or it is `options of waymark COMMAND`, for what several commands below that one share.
///
/// A line that begins an option has its names, the name of its value (-: empty), and `{a,b}` if the value is one of
/// these words. Behind two blanks, in brackets, are properties: `default` (help shows the default; of words it is the
/// first if the program has none), `not negative`, `not empty`, `required`, `several` (a list), `repeated` (a list with
/// one value behind each mention). Indented lines below are its help. A line `# Names` begins a group of options.
///
/// A line such as `missing: no capture given: {} needs a folder` is a sentence about a wrong command line; `{}` stands
/// for the name of the command:
///   `missing`           a required argument is not there
///   `missing --option`  a required option is not there
///   `too many`          what follows "takes one CAPTURE" if there are more
///   `stray`             an argument before -- belongs to no option
/// A program may look up sentences of further kinds.
///
/// The footer follows a line `===`. In it, consecutive lines form a paragraph, and indented ones stay as they are.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace waymark::command_line {

struct CommandText {
    std::string title;
    std::string footer;
};
struct OptionText {
    std::string names, type, help, group;
    std::vector<std::string> words;
    std::vector<std::string_view> properties;
};

/// All texts of a program. `command` is, for example, `waymark spe records`.
class Texts {
public:
    /// `texts` outlive this object.
    explicit Texts(std::span<const std::string_view> texts);
    [[nodiscard]] std::optional<CommandText> command(std::string_view command) const;
    /// `option`: one of its names. The command's own text comes before the texts that commands share, and of these the
    /// text of the innermost command first.
    [[nodiscard]] std::optional<OptionText> option(std::string_view command, std::string_view option) const;
    /// The sentence of a kind, such as `missing`, with the command's name in it; found in the same order.
    [[nodiscard]] std::optional<std::string> sentence(std::string_view command, std::string_view kind) const;

private:
    /// A text: its first line, and the rest.
    struct Headed {
        std::string_view head, rest;
    };
    /// Calls `find` with the text of the command, then with those that it shares, until it finds something.
    template <class Find>
    auto first_of(std::string_view command, const Find& find) const -> decltype(find(std::string_view()));

    std::vector<Headed> texts_{};
};

}  // namespace waymark::command_line
