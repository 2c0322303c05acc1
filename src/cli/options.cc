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

void InputOptions::add_to(CLI::App& command) {
    command
        .add_option("CAPTURE", capture,
                    "A snapshot folder or its snapshot.ini; a perf.data file; a folder with a dpu.ini (DPU); or a bare "
                    "trace file "
                    "(.gz and .zst too; - is standard input), which needs --protocol")
        ->required();
    command.add_option("--source", sources, "Only this source: trace ID (0x13) or name. May be repeated")
        ->type_name("ID|NAME")
        ->take_all();
    command
        .add_option("--image", images,
                    "Program image: an ELF file, or a memory dump with its address. May be repeated; added to the "
                    "capture's own "
                    "memory. Where images overlap, the last one given is used")
        ->type_name("FILE[@ADDRESS]")
        ->take_all();
    command.add_option("--symbols", symbols, "ELF file used for names only. May be repeated")
        ->type_name("FILE")
        ->take_all();
    add_folders_to(command);
    add_generated_to(command);
    add_output(command, output);
    const auto raw = [&](const std::string& name, std::string& value, const std::string& help, const char* type) {
        command.add_option(name, value, help)->type_name(type)->group("Bare trace files");
    };
    raw("--protocol", protocol, fmt::format("Protocol of the trace in the file: {}", doctor::protocol_option_names()),
        "NAME");
    raw("--buffer-format", buffer_format,
        "source_data: bytes of one source; coresight: 16-byte frames; dstream_coresight: frames with syncs. Guessed if "
        "not given "
        "(standard input: source_data)",
        "NAME");
    command
        .add_option("--trace-id", trace_ids,
                    "Source in a file of frames. May be repeated; all sources found if not given")
        ->type_name("ID")
        ->take_all()
        ->group("Bare trace files");
    for (const protocol::RegisterOption& option : doctor::register_options())
        raw(std::string(option.option), registers[std::string(option.option)], std::string(option.help), "VALUE");
    command
        .add_option("--register", named_registers,
                    "Value of a register of the unit, by the name of the register. May be repeated")
        ->type_name("NAME=VALUE")
        ->allow_extra_args(false)
        ->take_all()
        ->group("Bare trace files");
    raw("--core", core, "Type of the traced core, where packets depend on it: Cortex-M33", "TYPE");
}

void InputOptions::add_folders_to(CLI::App& command) {
    constexpr const char* group = "Names";
    command
        .add_option(
            "--symfs", symfs,
            "Folder with the programs and libraries of the recorded machine, searched by path, then by file name; "
            "default: the files of this machine")
        ->type_name("DIR")
        ->group(group);
    command
        .add_option("--debug-dir", debug_folders,
                    "Folder of debug files by build ID, such as ~/.debug or /usr/lib/debug. May be repeated")
        ->type_name("DIR")
        ->allow_extra_args(false)
        ->take_all()
        ->group(group);
    command
        .add_option("--symdir", symbol_folders,
                    "Folder with unstripped programs and libraries at any path in it, such as Android's symbols; a "
                    "file is found by its name, and taken if its build ID is right. May be repeated")
        ->type_name("DIR")
        ->allow_extra_args(false)
        ->take_all()
        ->group(group);
}

void InputOptions::add_generated_to(CLI::App& command) {
    const auto add = [&](const char* name, std::vector<std::string>& into, const char* help) {
        command.add_option(name, into, help)->type_name("FILE")->allow_extra_args(false)->take_all()->group("Names");
    };
    add("--perf-map", perf_maps,
        "Names of generated code (JIT): lines START SIZE NAME, as in /tmp/perf-PID.map. If several lines name an "
        "address, the last one is used. May be repeated");
    add("--jitdump", jitdumps,
        "The same from a jitdump file (jit-PID.dump). It also contains the code, so if an address has several names, "
        "each is used where its code ran. May be repeated");
}

CLI::Option* add_choice(CLI::App& command, const char* name, std::string& value, std::vector<std::string> words,
                        const std::string& help, const char* type) {
    return command.add_option(name, value, help)
        ->type_name(type)
        ->transform(one_of(std::move(words)))
        ->capture_default_str();
}

void add_code(CLI::App& command, answers::CodeKind& value, const std::string& what) {
    const auto& words = answers::code_words;
    command
        .add_option_function<std::string>(
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

CLI::Option* add_format(CLI::App& command, std::string& value, const char* help, std::vector<std::string> words) {
    return add_choice(command, "--format", value, std::move(words), help, "FORMAT");
}

CLI::Option* add_output(CLI::App& command, std::string& value, const std::string& help) {
    return command.add_option("-o,--output", value, help)->type_name("FILE")->check(not_empty());
}

CLI::Option* add_jobs(CLI::App& command, unsigned& jobs) {
    return command.add_option("--jobs", jobs, "Number of threads; 0: one per core")
        ->type_name("N")
        ->capture_default_str();
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
