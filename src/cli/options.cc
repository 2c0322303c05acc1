#include "options.h"

#include <fmt/format.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "trouble.h"
#include "waymark/capture/text_file.h"
#include "waymark/pipeline/damage.h"

namespace waymark::cli {

void InputOptions::add_to(const Command& command) {
    command.option("CAPTURE", capture);
    command.option("--source", sources);
    command.option("--image", images);
    command.option("--symbols", symbols);
    add_folders_to(command);
    add_generated_to(command);
    command.option("--output", output);
    command.option("--protocol", protocol)
        ->description(fmt::format("Protocol of the trace in the file: {}", doctor::protocol_option_names()));
    command.option("--buffer-format", buffer_format);
    command.option("--trace-id", trace_ids);
    for (const protocol::RegisterOption& option : doctor::register_options())
        command.add_option(std::string(option.option), registers[std::string(option.option)], std::string(option.help))
            ->type_name("VALUE")
            ->group("Bare trace files");
    command.option("--register", named_registers);
    command.option("--core", core);
}

void InputOptions::add_folders_to(const Command& command) {
    command.option("--symfs", symfs);
    command.option("--debug-dir", debug_folders);
    command.option("--symdir", symbol_folders);
}

void InputOptions::add_generated_to(const Command& command) {
    command.option("--perf-map", perf_maps);
    command.option("--jitdump", jitdumps);
}

void add_code(const Command& command, answers::CodeKind& value, const std::string& what) {
    const auto& words = answers::code_words;
    command
        .add_function(
            "--code",
            [&value](const std::string& word) {
                value = static_cast<answers::CodeKind>(std::ranges::find(answers::code_words, word) -
                                                       answers::code_words.begin());
            },
            what +
                "own: the program and the libraries beside it, without source that is installed below /usr; "
                "libraries: all code of these files, so what is linked into them too; all: also the system's "
                "libraries, the dynamic linker and the kernel")
        ->type_name("KIND")
        ->transform(one_of({words.begin(), words.end()}))
        ->default_str(std::string(words[static_cast<std::size_t>(value)]));
}

pipeline::Progress shown_on(ProgressLine& line) {
    if (!line.active()) return nullptr;
    return [&line](std::uint64_t bytes, auto of) { line.show(bytes, of); };
}

Result<pipeline::Session> open_session(const InputOptions& options) {
    ShowProgress progress;
    WM_ASSIGN_OR_RETURN(pipeline::FlowSelection selection, options.selection.read());
    WM_ASSIGN_OR_RETURN(pipeline::Session out,
                        doctor::open_capture(options, &progress, [](const std::string& guess) { say("note", guess); }));
    WM_RETURN_IF_ERROR(pipeline::select_flow(out, std::move(selection)));
    return out;
}

unsigned workers(unsigned jobs) {
    constexpr unsigned most = 256;
    // The processors that this process may use, possibly fewer than the machine has.
    const auto processors = static_cast<unsigned>(std::max(1, tbb::info::default_concurrency()));
    if (jobs == 0) return processors;
    jobs = std::min(jobs, most);
    // TBB allows more threads than processors only through this object.
    static std::unique_ptr<tbb::global_control> allowed;
    if (jobs > processors)
        allowed = std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism, jobs);
    return jobs;
}

ExitStatus status_of(const Error& error) { return error.code == Errc::usage ? usage : unreadable; }

ExitStatus fail(const Error& error) {
    say("error", error.message);
    return status_of(error);
}

namespace {

/// The sources that `can` accepts; a message names the others with the reason `why`.
std::vector<const pipeline::Source*> chosen(const std::vector<const pipeline::Source*>& selected,
                                            bool (pipeline::Source::*can)() const, std::string_view why) {
    std::vector<const pipeline::Source*> out;
    std::string others;
    for (const pipeline::Source* source : selected) {
        if ((source->*can)())
            out.push_back(source);
        else
            others += fmt::format("{}{} ({})", others.empty() ? "" : ", ", source->label(),
                                  source->type.empty() ? "of unknown type" : source->type);
    }
    if (!others.empty()) say("note", fmt::format("left out, since {}: {}", why, others));
    return out;
}

}  // namespace

std::vector<const pipeline::Source*> listable(const std::vector<const pipeline::Source*>& selected) {
    return chosen(selected, &pipeline::Source::has_packets, "Waymark does not decode their protocol");
}

void warn(const pipeline::Session& session) {
    for (const std::string& sentence : pipeline::file_damage(session)) say("error", sentence);
    for (const std::string& sentence : gathered(session.problems)) say("warning", sentence);
}

bool say_unread(const std::vector<Error>& errors) {
    for (const Error& error : errors) say("error", error.message);
    return !errors.empty();
}

bool report_read_errors(const pipeline::Session& session, const pipeline::Report& report) {
    const std::vector<std::string> errors = pipeline::read_errors(session, report);
    for (const std::string& sentence : errors) say("error", sentence);
    return !errors.empty();
}

Result<std::vector<std::string>> listed_files(const std::vector<std::string>& arguments) {
    std::vector<std::string> out;
    const auto is_there = [](const std::string& path) {
        std::error_code none;
        return std::filesystem::exists(path, none);
    };
    for (const std::string& argument : arguments) {
        std::string text = argument;
        char separator = ',';
        if (argument.size() > 1 && argument.front() == '@' && !is_there(argument)) {
            constexpr std::size_t most_bytes = std::size_t{1} << 26;
            WM_ASSIGN_OR_RETURN(text, capture::read_text_file(argument.substr(1), most_bytes));
            separator = '\n';
        } else if (argument.find(',') == argument.npos || is_there(argument)) {
            out.push_back(argument);
            continue;
        }
        for (std::size_t at = 0; at <= text.size();) {
            const std::size_t end = std::min(text.find(separator, at), text.size());
            std::string name = text.substr(at, end - at);
            if (name.ends_with('\r')) name.pop_back();
            if (!name.empty() && (separator == ',' || name.front() != '#')) out.push_back(std::move(name));
            at = end + 1;
        }
    }
    if (out.empty()) return Error{Errc::usage, fmt::format("{}: names no file", arguments.front())};
    return out;
}

}  // namespace waymark::cli
