#include "formatter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <sstream>
#include <utility>

#include "help.h"
#include "suggest.h"
#include "waymark/listing/text.h"

namespace waymark::command_line {

namespace {

constexpr std::string_view all_topics = "all";

std::string_view topic_in(const std::vector<TopicStart>& rows, std::string_view text) {
    for (const TopicStart& row : rows)
        if (text.starts_with(row.begins)) return row.topic;
    return {};
}

std::vector<std::string_view> topics_of(const Topics& topics, const CLI::App& command) {
    std::vector<std::string_view> out;
    for (const OptionGroup& group : option_groups(command)) {
        const std::string_view topic = topics.of_group(group.name);
        if (!topic.empty() && std::ranges::find(out, topic) == out.end()) out.push_back(topic);
    }
    return out;
}

void add_paragraph(std::string& out, std::string_view text, std::size_t columns) {
    for (const std::string& line : wrapped(text, columns)) out += line + '\n';
}

/// Adds a line that must not be wrapped freely. A shell command that is too long for the terminal is continued as a
/// shell allows.
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

std::string_view Topics::of_group(std::string_view name) const { return topic_in(groups, name); }
std::string_view Topics::of_paragraph(std::string_view text) const { return topic_in(paragraphs, text); }
bool Topics::has(std::string_view word) const {
    const auto names = [word](const TopicStart& row) { return row.topic == word; };
    return word == all_topics || std::ranges::any_of(groups, names) || std::ranges::any_of(paragraphs, names);
}

std::string_view topic_asked_for(const Topics& topics, int argc, char** argv) {
    for (int i = 1; i + 1 < argc; ++i)
        if (const std::string_view word = argv[i]; word == "--help" || word == "-h")
            return topics.has(argv[i + 1]) ? std::string_view(argv[i + 1]) : std::string_view();
    return {};
}

std::vector<std::string> as_help_option(const Topics& topics, int argc, char** argv) {
    if (argc < 2 || std::string_view(argv[1]) != "help") return {};
    std::vector<std::string> out(argv, argv + argc);
    out.erase(out.begin() + 1);
    if (out.size() == 2 && out[1] == topics.shared) out.insert(out.begin() + 1, std::string(topics.shared_command));
    const bool with_topic = out.size() > 2 && topics.has(out.back());
    out.insert(out.end() - (with_topic ? 1 : 0), "--help");
    return out;
}

std::string mistake_in_help(const Topics& topics, const CLI::App& app, int argc, char** argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    const CLI::App* at = &app;
    const auto sentence = [&at](std::string text) {
        return text + fmt::format("{} See {} --help", text.ends_with('?') ? "" : ".", full_name(*at));
    };
    for (const std::string& word : words) {
        const std::vector<const CLI::App*> below = at->get_subcommands({});
        if (word.starts_with('-') || below.empty()) break;
        const auto found = std::ranges::find(below, word, [](const CLI::App* c) { return c->get_name(); });
        if (found == below.end()) {
            if (at == &app && word == topics.shared)
                return sentence(fmt::format("'{} help {}' takes no other word", app.get_name(), topics.shared));
            std::vector<std::string> known;
            for (const CLI::App* command : below) known.push_back(command->get_name());
            if (at == &app) known.emplace_back(topics.shared);
            return sentence(fmt::format("'{}' is not a {} command{}", word, full_name(*at), did_you_mean(word, known)));
        }
        at = *found;
    }
    // The word after --help may be a capture.
    const auto help = std::ranges::find_if(words, [](std::string_view w) { return w == "--help" || w == "-h"; });
    if (words.end() - help != 2 || words.back().starts_with('-') || topics.has(words.back())) return {};
    std::error_code error;
    if (std::filesystem::exists(words.back(), error)) return {};
    std::set<std::string> parts{std::string(all_topics)};
    for (const std::string_view topic : topics_of(topics, *at)) parts.emplace(topic);
    return sentence(fmt::format("the help has no part '{}'; its parts: {}", words.back(), fmt::join(parts, ", ")));
}

HelpFormatter::HelpFormatter(const Topics& topics, std::size_t columns)
    : topics_(topics), columns_(std::max<std::size_t>(columns, 40)), left_(columns_ >= 90 ? 30 : columns_ / 3) {}

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

bool HelpFormatter::shows(std::string_view topic) const { return topic_ == all_topics || topic == topic_; }

void HelpFormatter::add_options(std::string& out, const CLI::App& command) const {
    for (const OptionGroup& group : option_groups(command)) {
        if (!shows(topics_.of_group(group.name))) continue;
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
}

void HelpFormatter::add_topics(std::string& out, const CLI::App& command) const {
    const auto topics = topics_of(topics_, command);
    if (topics.empty()) return;
    out += "\nMore options:\n";
    for (const std::string_view topic : topics) {
        std::string groups;
        for (const OptionGroup& group : option_groups(command))
            if (topics_.of_group(group.name) == topic) groups += (groups.empty() ? "" : "; ") + group.name;
        const bool shared = topic == topics_.shared;
        add_row(out,
                shared ? fmt::format("{} help {}", program_of(command), topic)
                       : fmt::format("{} --help {}", full_name(command), topic),
                groups);
    }
    add_row(out, fmt::format("{} --help {}", full_name(command), all_topics), "all of them");
}

void HelpFormatter::add_footer(std::string& out, const CLI::App& command) const {
    bool first = true;
    for (const TextPart& part : parts_of(command.get_footer())) {
        const bool explains = part.kind == TextPart::Kind::paragraph;
        if (!shows(explains ? topics_.of_paragraph(part.text) : std::string_view())) continue;
        if (std::exchange(first, false) || part.after_blank) out += '\n';
        switch (part.kind) {
            case TextPart::Kind::heading: out += part.text + '\n'; break;
            case TextPart::Kind::paragraph: add_paragraph(out, part.text, columns_); break;
            case TextPart::Kind::item: {
                const bool is_command = is_own_command(command, part.term);
                if (is_command) add_verbatim(out, part.term, columns_, true);
                add_row(out, is_command ? "" : part.term, part.text);
                break;
            }
            case TextPart::Kind::verbatim: {
                std::istringstream lines(part.text);
                const bool commands = is_own_command(command, part.text);
                for (std::string line; std::getline(lines, line);) add_verbatim(out, line, columns_, commands);
            }
        }
    }
}

std::string HelpFormatter::make_help(const CLI::App* command, std::string, CLI::AppFormatMode) const {
    std::string out;
    if (!topic_.empty() && topic_ == topics_.shared) {
        add_paragraph(out, topics_.shared_about, columns_);
        add_options(out, *command);
        return out;
    }
    add_paragraph(out, command->get_description(), columns_);
    std::string_view before = "Usage: ";
    constexpr std::size_t usage_indent = 7;
    for (const std::string& line : wrapped(usage_of(*command), columns_ - usage_indent)) {
        out += std::string(before) + line + '\n';
        before = "       ";
    }
    if (!topic_.empty() && topic_ != all_topics) {
        add_options(out, *command);
        add_footer(out, *command);
        return out;
    }
    if (const auto arguments = arguments_of(*command); !arguments.empty()) {
        out += "\nArguments:\n";
        for (const CLI::Option* argument : arguments) add_row(out, shown_names(*argument), argument->get_description());
    }
    add_options(out, *command);
    if (topic_.empty()) add_topics(out, *command);
    if (const auto commands = commands_of(*command); !commands.empty()) {
        out += "\nCommands:\n";
        for (const CLI::App* sub : commands) add_row(out, sub->get_name(), sub->get_description());
    }
    add_footer(out, *command);
    return out;
}

}  // namespace waymark::command_line
