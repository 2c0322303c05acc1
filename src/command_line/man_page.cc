#include "man_page.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <ctime>
#include <sstream>
#include <utility>
#include <vector>

#include "help.h"

namespace waymark::command_line {

namespace {

constexpr std::string_view words_of_status = "Exit status:";
// Less than the usual 80 bytes, since some characters have several bytes.
constexpr std::size_t columns_of_source = 70;

/// Escapes text so that the formatter of man pages prints it unchanged.
std::string as_roff(std::string_view text) {
    std::string out;
    for (const char c : text) {
        switch (c) {
            case '\\': out += "\\e"; break;
            // A hyphen that can be copied into a shell.
            case '-': out += "\\-"; break;
            case '\'': out += "\\(aq"; break;
            case '`': out += "\\(ga"; break;
            case '^': out += "\\(ha"; break;
            case '~': out += "\\(ti"; break;
            default: out += c;
        }
    }
    return out;
}

/// A line that begins with a control character would be a request. A zero-width escape before it prevents that.
void add_roff(std::string& out, const std::string& line) { out += (line.starts_with('.') ? "\\&" : "") + line + '\n'; }

void add_roff_text(std::string& out, std::string_view text) {
    for (const std::string& line : wrapped(as_roff(text), columns_of_source)) add_roff(out, line);
}

void add_roff_section(std::string& out, const char* macro, std::string_view title) {
    out += fmt::format("{} {}{}{}\n", macro, title.find(' ') == title.npos ? "" : "\"", as_roff(title),
                       title.find(' ') == title.npos ? "" : "\"");
}

void add_roff_item(std::string& out, const std::string& term, std::string_view text) {
    out += ".TP\n";
    add_roff(out, term);
    add_roff_text(out, text);
}

std::string in_capitals(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
    return text;
}

void add_roff_option(std::string& out, const CLI::Option& option) {
    const std::string value = value_name(option), &otherwise = option.get_default_str();
    std::string text = option.get_description();
    if (!value.empty() && !otherwise.empty()) text += fmt::format(" (default: {})", otherwise);
    add_roff_item(out,
                  fmt::format("\\fB{}\\fR{}", as_roff(shown_names(option)),
                              value.empty() ? "" : fmt::format(" \\fI{}\\fR", as_roff(value))),
                  text);
}

/// The text below the options, divided into the sections of a man page.
struct Sections {
    std::string description, environment, status, examples;
};

/// Begins a paragraph, unless a section or heading has just begun one.
void begin_paragraph(std::string& out) {
    const std::size_t last_line = out.empty() ? 0 : out.rfind('\n', out.size() - 2) + 1;
    if (!out.empty() && !out.substr(last_line).starts_with(".S")) out += ".PP\n";
}

void add_roff_part(std::string& out, const TextPart& part) {
    switch (part.kind) {
        case TextPart::Kind::paragraph:
            begin_paragraph(out);
            add_roff_text(out, part.text);
            break;
        case TextPart::Kind::heading: add_roff_section(out, ".SS", part.text.substr(0, part.text.size() - 1)); break;
        case TextPart::Kind::item: add_roff_item(out, fmt::format("\\fB{}\\fR", as_roff(part.term)), part.text); break;
        case TextPart::Kind::verbatim: {
            begin_paragraph(out);
            out += ".nf\n";
            std::istringstream lines(part.text);
            for (std::string line; std::getline(lines, line);) add_roff(out, as_roff(line));
            out += ".fi\n";
        }
    }
}

Sections sections_of(const CLI::App& command) {
    Sections out;
    // The section of the last heading gets items and verbatim lines.
    std::string* below = &out.description;
    for (const TextPart& part : parts_of(command.get_footer())) {
        const bool is_example = is_own_command(command, part.text) || is_own_command(command, part.term);
        if (part.kind == TextPart::Kind::heading) {
            below = part.text.starts_with("Example")       ? &out.examples
                    : part.text.starts_with("Environment") ? &out.environment
                                                           : &out.description;
            if (below == &out.description) add_roff_part(out.description, part);
        } else if (part.kind == TextPart::Kind::paragraph) {
            TextPart text = part;
            const bool is_status = text.text.starts_with(words_of_status);
            if (is_status) text.text.erase(0, words_of_status.size());
            below = is_status ? &out.status : &out.description;
            add_roff_part(*below, text);
        } else {
            std::string& into = is_example ? out.examples : *below;
            add_roff_part(into, part);
        }
    }
    return out;
}

void add_see_also(std::string& out, const CLI::App& command) {
    std::vector<std::string> others;
    if (command.get_parent() != nullptr) others.push_back(page_name(*command.get_parent()));
    for (const CLI::App* sub : commands_of(command)) others.push_back(page_name(*sub));
    if (others.empty()) return;
    add_roff_section(out, ".SH", "SEE ALSO");
    for (const std::string& page : others)
        out += fmt::format(".BR {} (1){}\n", as_roff(page), &page == &others.back() ? "" : ",");
}

}  // namespace

std::string page_name(const CLI::App& command) {
    std::string out = full_name(command);
    std::replace(out.begin(), out.end(), ' ', '-');
    return out;
}

std::string page_date() {
    const char* const epoch = std::getenv("SOURCE_DATE_EPOCH");
    const std::time_t when = epoch == nullptr ? std::time(nullptr) : std::strtoll(epoch, nullptr, 10);
    return fmt::format("{:%Y-%m-%d}", fmt::gmtime(when));
}

std::string man_page(const CLI::App& command, const std::string& from, const std::string& date) {
    const Sections sections = sections_of(command);
    std::string out =
        fmt::format(".\\\" Made from the texts of '{} \\-\\-help'.\n.TH {} 1 {} \"{}\" \"{}\"\n", full_name(command),
                    as_roff(in_capitals(page_name(command))), date, from, from.substr(0, from.find(' ')));
    // Words are not hyphenated, and lines are not filled with spaces.
    out += ".nh\n.ad l\n";
    add_roff_section(out, ".SH", "NAME");
    std::string about = command.get_description();
    if (command.get_parent() == nullptr) about = about.substr(0, about.find(':'));
    // An unescaped dash would be printed as a hyphen, not as the minus sign that separates the name.
    for (const std::string& line :
         wrapped(as_roff(fmt::format("{} - {}", page_name(command), about)), columns_of_source))
        add_roff(out, line);
    add_roff_section(out, ".SH", "SYNOPSIS");
    const std::string usage = usage_of(command), name = full_name(command);
    out += fmt::format("\\fB{}\\fR {}\n", as_roff(name), as_roff(usage.substr(name.size() + 1)));
    add_roff_section(out, ".SH", "DESCRIPTION");
    add_roff_text(out, command.get_description() + (command.get_description().ends_with('.') ? "" : "."));
    if (!sections.description.empty())
        out += (sections.description.starts_with(".") ? "" : ".PP\n") + sections.description;
    if (const auto arguments = arguments_of(command); !arguments.empty()) {
        add_roff_section(out, ".SH", "ARGUMENTS");
        for (const CLI::Option* argument : arguments)
            add_roff_item(out, fmt::format("\\fI{}\\fR", as_roff(shown_names(*argument))), argument->get_description());
    }
    if (const auto commands = commands_of(command); !commands.empty()) {
        add_roff_section(out, ".SH", "COMMANDS");
        for (const CLI::App* sub : commands)
            add_roff_item(out, fmt::format("\\fB{}\\fR(1)", as_roff(page_name(*sub))), sub->get_description());
    }
    add_roff_section(out, ".SH", "OPTIONS");
    bool first = true;
    for (const OptionGroup& group : option_groups(command)) {
        if (!std::exchange(first, false)) add_roff_section(out, ".SS", group.name);
        for (const CLI::Option* option : group.options) add_roff_option(out, *option);
    }
    const std::array<std::pair<const char*, const std::string*>, 3> last{
        {{"EXIT STATUS", &sections.status}, {"ENVIRONMENT", &sections.environment}, {"EXAMPLES", &sections.examples}}};
    for (const auto& [title, text] : last) {
        if (text->empty()) continue;
        add_roff_section(out, ".SH", title);
        out += *text;
    }
    add_see_also(out, command);
    return out;
}

}  // namespace waymark::command_line
