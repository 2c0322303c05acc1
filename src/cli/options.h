/// The options that say which capture, shared by every command.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "commands.h"
#include "output.h"
#include "selection.h"
#include "waymark/answers/own_code.h"
#include "waymark/doctor/capture_input.h"
#include "waymark/pipeline/run.h"
#include "waymark/pipeline/session.h"

namespace waymark::cli {

/// What every command takes to name a capture: the input, and the options that give it.
struct InputOptions : doctor::CaptureInput {
    std::string output;
    SelectionOptions selection;

    /// Adds them all to a command.
    void add_to(CLI::App& command);
    /// Adds --symfs, --debug-dir and --symdir alone.
    void add_folders_to(CLI::App& command);
    /// Adds --perf-map and --jitdump alone.
    void add_generated_to(CLI::App& command);
};

using doctor::read_number;
using doctor::trace_taken_out;
using open::Content;

/// How much of a capture is read, on a terminal.
class ShowProgress final : public capture::perf::Progress {
public:
    void at(std::uint64_t bytes, std::uint64_t of) override { line_.show(bytes, of); }

private:
    ProgressLine line_;
};

/// Reads what the options name, of which `selection` may leave a part. Problems that did not keep it from being read
/// are in the session.
[[nodiscard]] Result<pipeline::Session> open_session(const InputOptions& options);

/// Names of captures as arguments give them: FILE, A,B for several files, @FILE for those whose names are the lines of
/// FILE. A file that is there with a comma or @ in its name is itself. Errors: `unreadable`: @FILE.
[[nodiscard]] Result<std::vector<std::string>> listed_files(const std::vector<std::string>& arguments);

// Options that several commands have. Each may be given further properties.

/// --by, --sort and the like: one of these words.
CLI::Option* add_choice(CLI::App& command, const char* name, std::string& value, std::vector<std::string> words,
                        const std::string& help, const char* type = "NAME");
/// --code, the kinds of code; its default is the value. `what` begins the help.
void add_code(CLI::App& command, answers::CodeKind& value, const std::string& what = "Only code of these kinds: ");
CLI::Option* add_format(CLI::App& command, std::string& value,
                        const char* help = "text: for reading; tsv, json: for programs",
                        std::vector<std::string> words = {"text", "tsv", "json"});
/// -o: a file; an empty name is refused, as that of a variable that is not set would be.
CLI::Option* add_output(CLI::App& command, std::string& value,
                        const std::string& help = "Output file instead of standard output");
CLI::Option* add_jobs(CLI::App& command, unsigned& jobs);
/// `value`: any whole number.
CLI::Option* add_limit(CLI::App& command, auto& value, const char* help) {
    return command.add_option("--limit", value, help)->type_name("N")->check(not_negative())->capture_default_str();
}

/// Shows how far a run is; null where nobody sees it. The line is borrowed.
[[nodiscard]] pipeline::Progress shown_on(ProgressLine& line);

/// How many threads `--jobs` asks for: 0 for as many as there are processors, and never more than 256.
[[nodiscard]] unsigned workers(unsigned jobs);

/// The exit status that fits an error.
[[nodiscard]] ExitStatus status_of(const Error& error);

/// Says an error and gives its status.
ExitStatus fail(const Error& error);

/// The selected sources whose packets can be listed; a message names the others.
[[nodiscard]] std::vector<const pipeline::Source*> listable(const std::vector<const pipeline::Source*>& selected);

/// Says the session's problems as warnings.
void warn(const pipeline::Session& session);

/// Says what kept the capture from being read to its end, a cut among it; true if anything did.
bool report_read_errors(const pipeline::Session& session, const pipeline::Report& report);
/// Prints errors of buffers that were read again, and could not be; true if there are any.
bool say_unread(const std::vector<Error>& errors);

}  // namespace waymark::cli
