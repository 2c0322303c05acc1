/// Commands and their options, whose texts are apart from the program (texts.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace waymark::command_line {

/// A condition for the value of an option.
struct Check {
    std::function<std::string(std::string& value)> wrong;  ///< a sentence; empty: the value is right
    std::string words{};                                   ///< the possible values as `{a,b}`, if they are words
};

/// The value is one of these words, in any case. For Option::transform, which replaces the value by the word as given
/// here.
[[nodiscard]] Check one_of(std::vector<std::string> words);
/// The value, a number from 0 up, has no sign.
[[nodiscard]] Check not_negative();
/// The value is not empty. An unset variable of a shell gives an empty value.
[[nodiscard]] Check not_empty();
/// `T`: int, unsigned, std::uint64_t, double.
template <class T>
[[nodiscard]] Check range(T least, T most);
/// Replaces a number with one of these units behind it, in any case, by a number.
[[nodiscard]] Check with_unit(const std::map<std::string, std::uint64_t>& units);
/// The same for sizes: K, M and G; `decimal`: 1000 of a unit are the next, else 1024.
[[nodiscard]] Check with_size_unit(bool decimal);

/// Ends parsing: the value of this option is wrong.
[[noreturn]] void refuse_value(const std::string& option, const std::string& sentence);

class Command;
class Texts;
/// Parses options that `add` adds to a command of this name; returns what is wrong with them.
[[nodiscard]] std::optional<std::string> parse_options(const Texts& texts, const std::string& command,
                                                       const std::vector<std::string>& arguments,
                                                       const std::function<void(const Command&)>& add);

/// An option or argument of a command; a handle, which is copied.
class Option {
public:
    Option() = default;
    explicit Option(CLI::Option* option) : option_(option) {}
    const Option* operator->() const { return this; }
    explicit operator bool() const { return option_ != nullptr; }
    friend bool operator==(const Option&, const Option&) = default;

    const Option& type_name(const std::string& name) const;
    const Option& description(const std::string& text) const;
    const Option& group(const std::string& name) const;
    const Option& required(bool is = true) const;
    /// A list: each value is separate, and later ones are added.
    const Option& take_all() const;
    /// The same with one value behind each mention of the option.
    const Option& repeated() const;
    const Option& expected(int least, int most) const;
    const Option& delimiter(char between) const;
    const Option& check(const Check& check) const;
    const Option& transform(const Check& check) const;
    /// Help shows the present value as the default.
    const Option& capture_default_str() const;
    const Option& default_str(const std::string& text) const;
    const Option& option_text(const std::string& text) const;
    const Option& excludes(const Option& other) const;
    const Option& needs(const Option& other) const;

    /// How often it was given.
    [[nodiscard]] std::size_t count() const;
    /// `--long`, else `-s`.
    [[nodiscard]] std::string get_name() const;
    [[nodiscard]] bool is_flag() const;
    [[nodiscard]] std::string get_type_name() const;
    [[nodiscard]] const std::vector<std::string>& results() const;

private:
    CLI::Option* option_ = nullptr;
};

/// A command; a handle, which is copied.
class Command {
public:
    Command() = default;
    Command(CLI::App& app, const Texts& texts) : app_(&app), texts_(&texts) {}
    [[nodiscard]] CLI::App& app() const { return *app_; }

    /// A command below this one, with its text.
    [[nodiscard]] Command add(const std::string& name) const;
    /// The same with a title and without a text.
    [[nodiscard]] Command add(const std::string& name, const std::string& title) const;
    /// An option with the text of its name: of the command, else of all commands.
    template <class T>
    Option option(std::string_view name, T& value) const;
    Option flag(std::string_view name, bool& value) const;
    /// The same with the text in the call.
    template <class T>
    Option add_option(const std::string& names, T& value, const std::string& help = {}) const;
    Option add_flag(const std::string& names, bool& value, const std::string& help) const;
    Option add_function(const std::string& names, const std::function<void(const std::string&)>& take,
                        const std::string& help) const;
    /// A flag that prints a text and ends the program.
    Option print(std::string_view name, const std::function<std::string()>& what) const;

    void footer(const std::string& text) const;
    /// Replaces `{name}` in the footer.
    void fill_footer(std::string_view name, std::string_view by) const;
    [[nodiscard]] std::string get_footer() const;
    [[nodiscard]] Option get_option(const std::string& name) const;
    [[nodiscard]] std::vector<Option> get_options() const;
    void remove_option(const std::string& name) const;
    [[nodiscard]] bool parsed() const;

private:
    CLI::App* app_ = nullptr;
    const Texts* texts_ = nullptr;
};

}  // namespace waymark::command_line
