#include "help.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>
#include <utility>

namespace waymark::command_line {

namespace {

constexpr std::string_view status_words = "Exit status:";
constexpr std::size_t footer_indent = 2;

std::vector<std::string> lines_of(std::string_view text) {
    std::vector<std::string> out;
    std::istringstream in{std::string(text)};
    for (std::string line; std::getline(in, line);) out.push_back(line);
    return out;
}

bool is_heading(std::string_view line) {
    return line.ends_with(':') && line.find(' ') == line.npos && line.find(':') == line.size() - 1;
}

bool is_continuation(std::string_view line) { return line.starts_with("     "); }

/// Position of the words after the term; npos if there is no term.
std::size_t words_after_term(std::string_view line) {
    const std::size_t gap = line.find("  ", footer_indent);
    return gap == line.npos ? gap : line.find_first_not_of(' ', gap);
}

/// Adds consecutive indented lines.
void add_indented(std::vector<TextPart>& out, const std::vector<std::string>& lines, bool after_blank) {
    const bool items = std::all_of(lines.begin(), lines.end(), [](const std::string& line) {
        return is_continuation(line) || words_after_term(line) != line.npos;
    });
    if (!items || is_continuation(lines.front())) {
        TextPart part{TextPart::Kind::verbatim, {}, {}, after_blank};
        for (const std::string& line : lines) part.text += (part.text.empty() ? "" : "\n") + line.substr(footer_indent);
        out.push_back(std::move(part));
        return;
    }
    for (const std::string& line : lines) {
        if (is_continuation(line)) {
            out.back().text += ' ' + line.substr(line.find_first_not_of(' '));
            continue;
        }
        const std::size_t words = words_after_term(line);
        const std::string term = line.substr(footer_indent, line.find("  ", footer_indent) - footer_indent);
        out.push_back({TextPart::Kind::item, term, line.substr(words), std::exchange(after_blank, false)});
    }
}

}  // namespace

std::vector<TextPart> parts_of(std::string_view footer) {
    std::vector<TextPart> out;
    const std::vector<std::string> lines = lines_of(footer);
    bool after_blank = false;
    for (std::size_t i = 0; i < lines.size();) {
        const std::string& line = lines[i];
        if (line.find_first_not_of(' ') == line.npos) {
            after_blank = true;
            ++i;
        } else if (line.starts_with("  ")) {
            std::vector<std::string> indented;
            for (; i < lines.size() && lines[i].starts_with("  "); ++i) indented.push_back(lines[i]);
            add_indented(out, indented, std::exchange(after_blank, false));
        } else if (is_heading(line)) {
            out.push_back({TextPart::Kind::heading, {}, line, std::exchange(after_blank, false)});
            ++i;
        } else {
            TextPart part{TextPart::Kind::paragraph, {}, line, std::exchange(after_blank, false)};
            for (++i; i < lines.size() && !lines[i].empty() && lines[i].front() != ' ' && !is_heading(lines[i]) &&
                      !lines[i].starts_with(status_words);
                 ++i)
                part.text += ' ' + lines[i];
            out.push_back(std::move(part));
        }
    }
    return out;
}

std::string value_name(const CLI::Option& option) {
    if (option.get_type_size() == 0) return {};
    if (!option.get_option_text().empty()) return option.get_option_text();
    const std::string type = option.get_type_name();
    return type.substr(0, type.find(':'));
}

std::vector<std::string> choices_of(const CLI::Option& option) {
    const std::string type = option.get_type_name();
    const std::size_t open = type.find(":{");
    if (open == type.npos || type.back() != '}') return {};
    std::vector<std::string> out;
    std::istringstream words(type.substr(open + 2, type.size() - open - 3));
    for (std::string word; std::getline(words, word, ',');) out.push_back(word);
    return out;
}

std::string shown_names(const CLI::Option& option) {
    if (option.get_positional()) return option.get_name(true, false);
    std::string out;
    for (const std::string& name : option.get_snames()) out += (out.empty() ? "-" : ", -") + name;
    for (const std::string& name : option.get_lnames()) out += (out.empty() ? "--" : ", --") + name;
    return out;
}

std::string full_name(const CLI::App& command) {
    return (command.get_parent() == nullptr ? "" : full_name(*command.get_parent()) + " ") + command.get_name();
}

std::string program_of(const CLI::App& command) {
    return command.get_parent() == nullptr ? command.get_name() : program_of(*command.get_parent());
}

bool is_own_command(const CLI::App& command, std::string_view line) {
    return line.starts_with(program_of(command) + ' ');
}

std::vector<const CLI::App*> commands_of(const CLI::App& command) {
    return command.get_subcommands([](const CLI::App* sub) { return !sub->get_group().empty(); });
}

std::vector<OptionGroup> option_groups(const CLI::App& command) {
    std::vector<OptionGroup> out;
    for (const CLI::Option* option : command.get_options()) {
        if (option->get_group().empty() || option->get_positional()) continue;
        const auto found = std::find_if(out.begin(), out.end(),
                                        [&](const OptionGroup& group) { return group.name == option->get_group(); });
        if (found == out.end())
            out.push_back({option->get_group(), {option}});
        else
            found->options.push_back(option);
    }
    return out;
}

std::vector<const CLI::Option*> arguments_of(const CLI::App& command) {
    return command.get_options(
        [](const CLI::Option* option) { return option->get_positional() && !option->get_group().empty(); });
}

std::string usage_of(const CLI::App& command) {
    std::string out = full_name(command) + " [OPTIONS]";
    for (const CLI::Option* argument : arguments_of(command)) {
        const std::string name = argument->get_name(true, false) +
                                 (argument->get_expected_max() >= CLI::detail::expected_max_vector_size ? "..." : "");
        out += argument->get_required() ? " " + name : " [" + name + "]";
    }
    if (!commands_of(command).empty()) out += " COMMAND";
    return out;
}

}  // namespace waymark::command_line
