#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <set>

#include "commands.h"
#include "options.h"
#include "unit_answers.h"
#include "waymark/answers/file.h"
#include "waymark/exports/tables.h"
#include "waymark/isa/cores.h"
#include "waymark/pipeline/answers_file.h"
#include "waymark/pipeline/protocols.h"

namespace waymark::cli {

namespace {

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
    if (const auto protocol = typed.values.find("--protocol"); protocol != typed.values.end())
        out.protocol = protocol->second;
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
    const bool records = typed.command == "record";
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

}  // namespace

std::vector<OptionLookup> lookups() {
    return {{"--source", source_names},          {"--only", function_names}, {"--function", function_names},
            {"--metric", metric_names},          {"--table", table_names},   {"--protocol", protocol_names},
            {"--buffer-format", buffer_formats}, {"--core", core_names}};
}

}  // namespace waymark::cli
