#include "completion.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string_view>

#include "help.h"

namespace waymark::command_line {

namespace {

/// Candidates for a word.
struct Completion {
    /// Names that the shell completes itself.
    enum class Files { none, files, folders };
    std::vector<Candidate> candidates{};
    Files files = Files::none;
};

/// The words of a command line, as far as they could be parsed.
struct Words {
    const CLI::App* command;
    Typed before{};                            ///< what was typed before the last word
    const CLI::Option* wants_value = nullptr;  ///< the option that takes the last word as its value
    std::vector<const CLI::Option*> given{};   ///< options among the words before the last one
    bool after_dashes = false;                 ///< one of these words is --
};

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

const CLI::Option* find_option(const CLI::App& command, std::string_view word) {
    const bool is_long = word.starts_with("--");
    const std::string name(word.substr(is_long ? 2 : 1, word.find('=') - (is_long ? 2 : 1)));
    for (const CLI::Option* option : command.get_options()) {
        const auto& names = is_long ? option->get_lnames() : option->get_snames();
        if (std::find(names.begin(), names.end(), name) != names.end()) return option;
    }
    return nullptr;
}

const CLI::App* find_command(const CLI::App& in, const std::string& name) {
    for (const CLI::App* command : commands_of(in))
        if (command->get_name() == name) return command;
    return nullptr;
}

Words understood(const CLI::App& app, const std::vector<std::string>& words) {
    Words out{.command = &app};
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
        const std::string& word = words[i];
        out.wants_value = nullptr;
        if (out.after_dashes) {
            out.before.arguments.push_back(word);
        } else if (word == "--") {
            out.after_dashes = true;
        } else if (word.size() > 1 && word.front() == '-') {
            const CLI::Option* const option = find_option(*out.command, word);
            if (option == nullptr) continue;
            out.given.push_back(option);
            const std::size_t equals = word.find('=');
            std::string value = equals == word.npos ? std::string() : word.substr(equals + 1);
            if (takes_value(*option) && equals == word.npos) {
                if (i + 2 == words.size()) {
                    out.wants_value = option;
                    break;
                }
                value = words[++i];
            }
            if (!value.empty()) out.before.values[option->get_name()] = value;
        } else if (const CLI::App* const command = find_command(*out.command, word);
                   command != nullptr && out.before.arguments.empty()) {
            out.command = command;
        } else {
            out.before.arguments.push_back(word);
        }
    }
    out.before.command = out.command->get_name();
    return out;
}

Completion value_of(const std::vector<OptionLookup>& lookups, const CLI::Option& option, const Typed& typed) {
    Completion out;
    for (const std::string& word : choices_of(option)) out.candidates.push_back({word, ""});
    if (!out.candidates.empty()) return out;
    for (const OptionLookup& lookup : lookups)
        if (option.get_name() == lookup.option) {
            out.candidates = lookup.find(typed);
            return out;
        }
    const std::string value = value_name(option);
    if (value.starts_with("DIR"))
        out.files = Completion::Files::folders;
    else if (value.starts_with("FILE") || value.starts_with("PATH"))
        out.files = Completion::Files::files;
    return out;
}

/// A description, shortened to fit on the line of its word.
std::string short_text(std::string text) {
    constexpr std::size_t most = 60;
    text = text.substr(0, text.find(". "));
    return wrapped(text, most).size() < 2 ? text : wrapped(text, most).front() + " …";
}

Completion options_of(const Words& line) {
    Completion out;
    for (const OptionGroup& group : option_groups(*line.command))
        for (const CLI::Option* option : group.options) {
            const bool given = std::find(line.given.begin(), line.given.end(), option) != line.given.end();
            if (given && option->get_expected_max() <= 1) continue;
            for (const std::string& name : option->get_lnames())
                out.candidates.push_back({"--" + name, short_text(option->get_description())});
        }
    return out;
}

/// Candidates for the last of the words, which may be empty. For `--option=beginning` they are values alone.
Completion complete(const std::vector<OptionLookup>& lookups, const CLI::App& app,
                    const std::vector<std::string>& words) {
    if (words.empty()) return {};
    const Words line = understood(app, words);
    std::string begin = words.back();
    Completion out;
    if (line.after_dashes) {
        out.files = Completion::Files::files;
    } else if (line.wants_value != nullptr) {
        out = value_of(lookups, *line.wants_value, line.before);
    } else if (begin.starts_with("--") && begin.find('=') != begin.npos) {
        const CLI::Option* const option = find_option(*line.command, begin);
        if (option == nullptr) return out;
        out = value_of(lookups, *option, line.before);
        begin = begin.substr(begin.find('=') + 1);
    } else if (begin.starts_with("-")) {
        out = options_of(line);
    } else if (const auto commands = commands_of(*line.command); !commands.empty()) {
        for (const CLI::App* command : commands)
            out.candidates.push_back({command->get_name(), short_text(command->get_description())});
    } else if (!arguments_of(*line.command).empty()) {
        out.files = Completion::Files::files;
    }
    std::erase_if(out.candidates, [&](const Candidate& each) { return !each.word.starts_with(begin); });
    return out;
}

}  // namespace

int run_complete(const std::vector<OptionLookup>& lookups, const CLI::App& app, const std::vector<std::string>& words) {
    constexpr unsigned seconds = 5;
    ::alarm(seconds);
    const Completion found = complete(lookups, app, words);
    std::string out;
    for (const Candidate& each : found.candidates)
        out += one_line(each.word) + (each.about.empty() ? "" : "\t" + one_line(each.about)) + "\n";
    if (found.files == Completion::Files::files) out += ":files\n";
    if (found.files == Completion::Files::folders) out += ":folders\n";
    std::fwrite(out.data(), 1, out.size(), stdout);
    return 0;
}

}  // namespace waymark::command_line
