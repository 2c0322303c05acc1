#include "formatter.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "texts.h"
#include "waymark/listing/text.h"

namespace waymark::cli {

namespace {

void add_paragraph(std::string& out, std::string_view text, std::size_t columns) {
    for (const std::string& line : wrapped(text, columns)) out += line + '\n';
}

/// A line that must stay as it is. A command of a shell that is too long for the terminal goes on in the next line, as
/// a shell takes it.
void add_verbatim(std::string& out, const std::string& line, std::size_t columns, bool is_command) {
    constexpr std::size_t indent = 2, deeper = 6, mark = 2;
    if (line.size() + indent <= columns || !is_command) {
        out += std::string(line.empty() ? 0 : indent, ' ') + line + '\n';
        return;
    }
    const auto lines = wrapped(line, columns - deeper - mark);
    for (std::size_t i = 0; i < lines.size(); ++i)
        out += std::string(i == 0 ? indent : deeper, ' ') + lines[i] + (i + 1 == lines.size() ? "\n" : " \\\n");
}

}  // namespace

HelpFormatter::HelpFormatter(std::size_t columns)
    : columns_(std::max<std::size_t>(columns, 40)), left_(columns_ >= 90 ? 30 : columns_ / 3) {}

void HelpFormatter::add_row(std::string& out, const std::string& left, std::string_view right) const {
    std::string line = "  " + left;
    // At least two spaces between the columns.
    if (line.size() + 2 > left_) {
        out += line + '\n';
        line.clear();
    }
    for (const std::string& words : wrapped(right, columns_ - left_)) {
        line.resize(left_, ' ');
        out += line + words + '\n';
        line.clear();
    }
    if (!line.empty()) out += line + '\n';
}

void HelpFormatter::add_footer(std::string& out, const CLI::App& command) const {
    bool first = true;
    for (const TextPart& part : parts_of(command.get_footer())) {
        if (std::exchange(first, false) || part.after_blank) out += '\n';
        switch (part.kind) {
            case TextPart::Kind::heading: out += part.text + '\n'; break;
            case TextPart::Kind::paragraph: add_paragraph(out, part.text, columns_); break;
            case TextPart::Kind::item: {
                const bool is_command = part.term.starts_with("waymark ");
                if (is_command) add_verbatim(out, part.term, columns_, true);
                add_row(out, is_command ? "" : part.term, part.text);
                break;
            }
            case TextPart::Kind::verbatim: {
                std::istringstream lines(part.text);
                const bool commands = part.text.starts_with("waymark ");
                for (std::string line; std::getline(lines, line);) add_verbatim(out, line, columns_, commands);
            }
        }
    }
}

std::string HelpFormatter::make_help(const CLI::App* command, std::string, CLI::AppFormatMode) const {
    std::string out;
    add_paragraph(out, command->get_description(), columns_);
    std::string_view before = "Usage: ";
    constexpr std::size_t usage_indent = 7;
    for (const std::string& line : wrapped(usage_of(*command), columns_ - usage_indent)) {
        out += std::string(before) + line + '\n';
        before = "       ";
    }
    if (const auto arguments = arguments_of(*command); !arguments.empty()) {
        out += "\nArguments:\n";
        for (const CLI::Option* argument : arguments) add_row(out, shown_names(*argument), argument->get_description());
    }
    for (const OptionGroup& group : option_groups(*command)) {
        out += '\n';
        add_paragraph(out, group.name + ':', columns_);
        for (const CLI::Option* option : group.options) {
            const std::string value = value_name(*option);
            const std::string& otherwise = option->get_default_str();
            add_row(out,
                    shown_names(*option) + (value.empty() ? "" : " " + value) +
                        (otherwise.empty() || value.empty() ? "" : " (" + otherwise + ")"),
                    option->get_description());
        }
    }
    if (const auto commands = commands_of(*command); !commands.empty()) {
        out += "\nCommands:\n";
        for (const CLI::App* sub : commands) add_row(out, sub->get_name(), sub->get_description());
    }
    add_footer(out, *command);
    return out;
}

}  // namespace waymark::cli
