#include "complete.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>

#include "../options.h"
#include "../unit_answers.h"
#include "texts.h"
#include "waymark/answers/file.h"
#include "waymark/exports/tables.h"
#include "waymark/isa/cores.h"
#include "waymark/pipeline/answers_file.h"
#include "waymark/pipeline/protocols.h"

namespace waymark::cli {

namespace {

/// The words of a command line, as far as they could be parsed.
struct Typed {
    const CLI::App* command;
    std::vector<std::string> arguments{};      ///< words before the last one
    const CLI::Option* wants_value = nullptr;  ///< the option that takes the last word as its value
    std::vector<const CLI::Option*> given{};   ///< options among the words before the last one
    std::string protocol{};                    ///< value of --protocol
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

Typed understood(const CLI::App& app, const std::vector<std::string>& words) {
    Typed out{.command = &app};
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
        const std::string& word = words[i];
        out.wants_value = nullptr;
        if (out.after_dashes) {
            out.arguments.push_back(word);
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
            if (option->get_name() == "--protocol") out.protocol = value;
        } else if (const CLI::App* const command = find_command(*out.command, word);
                   command != nullptr && out.arguments.empty()) {
            out.command = command;
        } else {
            out.arguments.push_back(word);
        }
    }
    return out;
}

/// Only an existing file or folder is opened, never a pipe or standard input.
std::string capture_of(const Typed& typed) {
    std::error_code none;
    for (const std::string& argument : typed.arguments)
        if (std::filesystem::is_regular_file(argument, none) || std::filesystem::is_directory(argument, none))
            return argument;
    return {};
}

/// The answers in the named file; nullopt if it is not an answers file or does not exist.
std::optional<answers::Answers> answers_in(const InputOptions& named) {
    if (named.capture.empty() || named.container().contents() != Content::answers) return std::nullopt;
    auto read = pipeline::read_answers_file(named.capture);
    return read ? std::optional(std::move(*read)) : std::nullopt;
}

InputOptions named_by(const Typed& typed) {
    InputOptions out;
    out.capture = capture_of(typed);
    out.protocol = typed.protocol;
    return out;
}

std::vector<Candidate> source_names(const Typed& typed) {
    std::vector<Candidate> out;
    const InputOptions options = named_by(typed);
    if (options.capture.empty() || options.container().contents() == Content::answers) return out;
    const auto session = doctor::open_capture(options, nullptr, [](const std::string&) {});
    if (!session) return out;
    for (const pipeline::Source& source : session->sources) {
        out.push_back({source.id_text(), source.label()});
        if (source.trace_id && !source.name.empty()) out.push_back({source.name, source.label()});
    }
    return out;
}

std::vector<Candidate> function_names(const Typed& typed) {
    std::vector<Candidate> out;
    const auto answers = answers_in(named_by(typed));
    if (!answers) return out;
    std::set<std::string> names;
    for (const answers::Function& function : answers->functions)
        if (!function.synthetic) names.insert(function.name);
    for (const std::string& name : names) out.push_back({name, "function"});
    return out;
}

std::vector<Candidate> metric_names(const Typed& typed) {
    std::vector<Candidate> out;
    if (const auto answers = answers_in(named_by(typed)))
        for (const answers::Metric& metric : answers->metrics) out.push_back({metric.name, metric.unit});
    return out;
}

std::vector<Candidate> table_names(const Typed&) {
    std::vector<Candidate> out;
    for (const exports::TableInfo& table : exports::tables())
        out.push_back({std::string(table.name), std::string(table.what)});
    return out;
}

/// Words of a sentence: letters, digits, dots and dashes.
std::vector<std::string> words_of(std::string_view sentence) {
    std::vector<std::string> out(1);
    for (const char c : sentence) {
        const bool is_part = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
        if (is_part)
            out.back() += c;
        else if (!out.back().empty())
            out.emplace_back();
    }
    return out;
}

std::vector<Candidate> protocol_names(const Typed&) {
    std::vector<Candidate> out;
    for (const std::string& word : words_of(doctor::protocol_option_names()))
        if (const pipeline::Protocol* protocol = pipeline::protocol_of_option(word))
            out.push_back({word, protocol->type_of_option(word)});
    return out;
}

std::vector<Candidate> buffer_formats(const Typed&) {
    using Format = capture::Buffer::Format;
    return {{std::string(name(Format::coresight)), "16-byte formatter frames"},
            {std::string(name(Format::source_data)), "the bytes of one source"},
            {std::string(name(Format::dstream_coresight)), "formatter frames with synchronisation packets"}};
}

/// For a bare file the known cores; for a recording the cores that have the unit.
std::vector<Candidate> core_names(const Typed& typed) {
    std::vector<Candidate> out;
    const bool records = typed.command->get_name() == "record";
    for (const std::string_view name : isa::core_names()) {
        if (!records) {
            out.push_back({std::string(name), ""});
            continue;
        }
        std::string word(name);
        for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        for (const flow::UnitFactory* units : pipeline::flow_units()) {
            flow::UnitOptions with = units->defaults();
            with.core = word;
            if (units->check(with)) out.push_back({word, pipeline::option_name(*units)});
        }
    }
    return out;
}

/// Options whose values are looked up in the capture or the program.
struct Lookup {
    std::string_view option;
    std::vector<Candidate> (*find)(const Typed&);
};
constexpr std::array lookups{
    Lookup{"--source", source_names},          Lookup{"--only", function_names}, Lookup{"--function", function_names},
    Lookup{"--metric", metric_names},          Lookup{"--table", table_names},   Lookup{"--protocol", protocol_names},
    Lookup{"--buffer-format", buffer_formats}, Lookup{"--core", core_names}};

Completion value_of(const CLI::Option& option, const Typed& typed) {
    Completion out;
    for (const std::string& word : choices_of(option)) out.candidates.push_back({word, ""});
    if (!out.candidates.empty()) return out;
    for (const Lookup& lookup : lookups)
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

Completion options_of(const Typed& typed) {
    Completion out;
    for (const OptionGroup& group : option_groups(*typed.command))
        for (const CLI::Option* option : group.options) {
            const bool given = std::find(typed.given.begin(), typed.given.end(), option) != typed.given.end();
            if (given && option->get_expected_max() <= 1) continue;
            for (const std::string& name : option->get_lnames())
                out.candidates.push_back({"--" + name, short_text(option->get_description())});
        }
    return out;
}

}  // namespace

Completion complete(const CLI::App& app, const std::vector<std::string>& words) {
    if (words.empty()) return {};
    const Typed typed = understood(app, words);
    std::string begin = words.back();
    Completion out;
    if (typed.after_dashes) {
        out.files = Completion::Files::files;
    } else if (typed.wants_value != nullptr) {
        out = value_of(*typed.wants_value, typed);
    } else if (begin.starts_with("--") && begin.find('=') != begin.npos) {
        const CLI::Option* const option = find_option(*typed.command, begin);
        if (option == nullptr) return out;
        out = value_of(*option, typed);
        begin = begin.substr(begin.find('=') + 1);
    } else if (begin.starts_with("-")) {
        out = options_of(typed);
    } else if (const auto commands = commands_of(*typed.command); !commands.empty()) {
        for (const CLI::App* command : commands)
            out.candidates.push_back({command->get_name(), short_text(command->get_description())});
    } else if (!arguments_of(*typed.command).empty()) {
        out.files = Completion::Files::files;
    }
    std::erase_if(out.candidates, [&](const Candidate& each) { return !each.word.starts_with(begin); });
    return out;
}

int run_complete(const CLI::App& app, const std::vector<std::string>& words) {
    constexpr unsigned seconds = 5;
    ::alarm(seconds);
    const Completion found = complete(app, words);
    std::string out;
    for (const Candidate& each : found.candidates)
        out += one_line(each.word) + (each.about.empty() ? "" : "\t" + one_line(each.about)) + "\n";
    if (found.files == Completion::Files::files) out += ":files\n";
    if (found.files == Completion::Files::folders) out += ":folders\n";
    std::fwrite(out.data(), 1, out.size(), stdout);
    return 0;
}

}  // namespace waymark::cli
