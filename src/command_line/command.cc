#include "waymark/command_line/command.h"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <optional>
#include <type_traits>

#include "help.h"
#include "suggest.h"
#include "waymark/command_line/texts.h"
#include "waymark/core/result.h"

namespace waymark::command_line {

namespace {

CLI::Validator validator_of(const Check& check) { return CLI::Validator(check.wrong, check.words); }

Check check_of(const CLI::Validator& validator) {
    return {[validator](std::string& value) { return validator(value); }, validator.get_description()};
}

OptionText text_of(const Texts& texts, const CLI::App& command, std::string_view name) {
    auto text = texts.option(full_name(command), name);
    WM_CHECK(text.has_value());
    return *std::move(text);
}

/// Gives the option the properties that its text names.
Option described(CLI::Option* raw, const OptionText& text) {
    const Option option(raw);
    if (!text.group.empty()) option.group(text.group);
    if (!text.type.empty()) option.type_name(text.type == "-" ? "" : text.type);
    if (!text.words.empty()) option.transform(one_of(text.words));
    for (const std::string_view property : text.properties) {
        if (property == "default")
            option.capture_default_str();
        else if (property == "not negative")
            option.check(not_negative());
        else if (property == "not empty")
            option.check(not_empty());
        else if (property == "required")
            option.required();
        else if (property == "several")
            option.take_all();
        else if (property == "repeated")
            option.repeated();
        else
            WM_CHECK(false);  // texts.h lists the properties
    }
    return option;
}

}  // namespace

Check one_of(std::vector<std::string> words) {
    // In the form that choices_of parses.
    std::string shown = fmt::format("{{{}}}", fmt::join(words, ","));
    return {[words = std::move(words)](std::string& value) -> std::string {
                std::string list;
                for (const std::string& word : words) {
                    if (CLI::detail::to_lower(word) == CLI::detail::to_lower(value)) {
                        value = word;
                        return {};
                    }
                    list += (list.empty() ? "" : &word == &words.back() ? " or " : ", ") + word;
                }
                constexpr std::size_t few = 8;
                const std::string meant = did_you_mean(value, words);
                if (meant.empty()) return fmt::format("'{}' is not {}", value, list);
                return words.size() > few ? fmt::format("'{}' is not one of its values{}", value, meant)
                                          : fmt::format("'{}' is not {}{}", value, list, meant);
            },
            std::move(shown)};
}

Check not_negative() {
    return {[](std::string& value) -> std::string {
        return value.starts_with('-') ? fmt::format("'{}' is below 0", value) : std::string();
    }};
}

Check not_empty() {
    return {[](std::string& value) -> std::string {
        return value.empty() ? "it is empty; leave it out, or give a name" : "";
    }};
}

template <class T>
Check range(T least, T most) {
    return check_of(CLI::Range(least, most));
}
template Check range(int, int);
template Check range(unsigned, unsigned);
template Check range(std::uint64_t, std::uint64_t);
template Check range(double, double);

Check with_unit(const std::map<std::string, std::uint64_t>& units) {
    return check_of(CLI::AsNumberWithUnit(units, CLI::AsNumberWithUnit::CASE_INSENSITIVE));
}
Check with_size_unit(bool decimal) { return check_of(CLI::AsSizeValue(decimal)); }

std::optional<std::string> parse_options(const Texts& texts, const std::string& command,
                                         const std::vector<std::string>& arguments,
                                         const std::function<void(const Command&)>& add) {
    CLI::App app{"", command};
    add(Command(app, texts));
    try {
        app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    } catch (const CLI::ParseError& error) {
        return error.what();
    }
    return std::nullopt;
}

void refuse_value(const std::string& option, const std::string& sentence) {
    throw CLI::ValidationError(option, sentence);
}

const Option& Option::type_name(const std::string& name) const { return option_->type_name(name), *this; }
const Option& Option::description(const std::string& text) const { return option_->description(text), *this; }
const Option& Option::group(const std::string& name) const { return option_->group(name), *this; }
const Option& Option::required(bool is) const { return option_->required(is), *this; }
const Option& Option::take_all() const { return option_->take_all(), *this; }
const Option& Option::repeated() const { return option_->allow_extra_args(false)->take_all(), *this; }
const Option& Option::expected(int least, int most) const { return option_->expected(least, most), *this; }
const Option& Option::delimiter(char between) const { return option_->delimiter(between), *this; }
const Option& Option::check(const Check& check) const { return option_->check(validator_of(check)), *this; }
const Option& Option::transform(const Check& check) const { return option_->transform(validator_of(check)), *this; }
const Option& Option::capture_default_str() const { return option_->capture_default_str(), *this; }
const Option& Option::default_str(const std::string& text) const { return option_->default_str(text), *this; }
const Option& Option::option_text(const std::string& text) const { return option_->option_text(text), *this; }
const Option& Option::excludes(const Option& other) const { return option_->excludes(other.option_), *this; }
const Option& Option::needs(const Option& other) const { return option_->needs(other.option_), *this; }
std::size_t Option::count() const { return option_->count(); }
std::string Option::get_name() const { return option_->get_name(); }
bool Option::is_flag() const { return option_->get_type_size() == 0; }
std::string Option::get_type_name() const { return option_->get_type_name(); }
const std::vector<std::string>& Option::results() const { return option_->results(); }

Command Command::add(const std::string& name) const {
    const auto text = texts_->command(full_name(*app_) + " " + name);
    WM_CHECK(text.has_value());
    const Command out = add(name, text->title);
    if (!text->footer.empty()) out.footer(text->footer);
    return out;
}
Command Command::add(const std::string& name, const std::string& title) const {
    return Command(*app_->add_subcommand(name, title), *texts_);
}

template <class T>
Option Command::option(std::string_view name, T& value) const {
    const OptionText text = text_of(*texts_, *app_, name);
    if constexpr (std::is_same_v<T, std::string>)
        if (value.empty() && std::ranges::find(text.properties, "default") != text.properties.end() &&
            !text.words.empty())
            value = text.words.front();
    return described(app_->add_option(text.names, value, text.help), text);
}
template <class T>
Option Command::add_option(const std::string& names, T& value, const std::string& help) const {
    return Option(app_->add_option(names, value, help));
}
#define WM_OPTION_OF(...)                                                  \
    template Option Command::option(std::string_view, __VA_ARGS__&) const; \
    template Option Command::add_option(const std::string&, __VA_ARGS__&, const std::string&) const
WM_OPTION_OF(std::string);
WM_OPTION_OF(std::vector<std::string>);
WM_OPTION_OF(std::vector<std::uint32_t>);
WM_OPTION_OF(std::uint16_t);
WM_OPTION_OF(std::uint32_t);
WM_OPTION_OF(std::uint64_t);
WM_OPTION_OF(double);
WM_OPTION_OF(std::optional<std::uint32_t>);
WM_OPTION_OF(std::optional<std::uint64_t>);
WM_OPTION_OF(std::optional<double>);
#undef WM_OPTION_OF

Option Command::flag(std::string_view name, bool& value) const {
    const OptionText text = text_of(*texts_, *app_, name);
    return described(app_->add_flag(text.names, value, text.help), text);
}
Option Command::add_flag(const std::string& names, bool& value, const std::string& help) const {
    return Option(app_->add_flag(names, value, help));
}
Option Command::add_function(const std::string& names, const std::function<void(const std::string&)>& take,
                             const std::string& help) const {
    return Option(app_->add_option_function<std::string>(names, take, help));
}
Option Command::print(std::string_view name, const std::function<std::string()>& what) const {
    const OptionText text = text_of(*texts_, *app_, name);
    return Option(app_->add_flag_callback(
        text.names,
        [what] {
            std::fputs(what().c_str(), stdout);
            throw CLI::Success{};
        },
        text.help));
}

void Command::footer(const std::string& text) const { app_->footer(text); }
void Command::fill_footer(std::string_view name, std::string_view by) const {
    std::string text = app_->get_footer();
    const std::string mark = fmt::format("{{{}}}", name);
    const std::size_t at = text.find(mark);
    WM_CHECK(at != text.npos);
    app_->footer(text.replace(at, mark.size(), by));
}
std::string Command::get_footer() const { return app_->get_footer(); }
Option Command::get_option(const std::string& name) const { return Option(app_->get_option(name)); }
std::vector<Option> Command::get_options() const {
    std::vector<Option> out;
    for (CLI::Option* option : app_->get_options({})) out.emplace_back(option);
    return out;
}
void Command::remove_option(const std::string& name) const { app_->remove_option(app_->get_option(name)); }
bool Command::parsed() const { return app_->parsed(); }

}  // namespace waymark::command_line
