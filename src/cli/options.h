/// Options that name a capture, shared by every command.
#pragma once

#include <string>
#include <vector>
#include "waymark/command_line/command.h"

#include "commands.h"
#include "selection.h"
#include "waymark/answers/own_code.h"
#include "waymark/command_line/output.h"
#include "waymark/doctor/capture_input.h"
#include "waymark/pipeline/run.h"
#include "waymark/pipeline/session.h"

namespace waymark::cli {

/// The input of a command, and the options that set it.
struct InputOptions : doctor::CaptureInput {
    std::string output;
    SelectionOptions selection;

    /// Adds all of these options to a command.
    void add_to(const Command& command);
    /// Adds only --symfs, --debug-dir and --symdir.
    void add_folders_to(const Command& command);
    /// Adds only --perf-map and --jitdump.
    void add_generated_to(const Command& command);
};

using doctor::read_number;
using doctor::trace_taken_out;
using open::Content;

/// Shows on a terminal how much of a capture was read.
class ShowProgress final : public capture::perf::Progress {
public:
    void at(std::uint64_t bytes, std::uint64_t of) override { line_.show(bytes, of); }

private:
    ProgressLine line_;
};

/// Reads the capture that the options name; `selection` may restrict it to a part. Problems that did not prevent
/// reading are in the session.
[[nodiscard]] Result<pipeline::Session> open_session(const InputOptions& options);

/// Expands arguments that name captures: FILE, A,B for several files, @FILE for the names in the lines of FILE. If a
/// file exists whose name contains a comma or @, the argument means that file. Errors: `unreadable`: @FILE.
[[nodiscard]] Result<std::vector<std::string>> listed_files(const std::vector<std::string>& arguments);

// Options that several commands have. Callers may add further properties to each.

/// --code, the kinds of code; its default is the present value. `what` begins the help text.
void add_code(const Command& command, answers::CodeKind& value, const std::string& what = "Only code of these kinds: ");
/// Shows the progress of a run; null if there is no terminal. The line is borrowed.
[[nodiscard]] pipeline::Progress shown_on(ProgressLine& line);

/// The number of threads for `--jobs`: 0 means the number of processors; the maximum is 256.
[[nodiscard]] unsigned workers(unsigned jobs);

/// The exit status that fits an error.
[[nodiscard]] ExitStatus status_of(const Error& error);

/// Prints an error and returns its status.
ExitStatus fail(const Error& error);

/// The selected sources whose packets can be listed; a message names the others.
[[nodiscard]] std::vector<const pipeline::Source*> listable(const std::vector<const pipeline::Source*>& selected);

/// Prints the session's problems as warnings.
void warn(const pipeline::Session& session);

/// Prints what prevented the capture from being read to its end, including a cut; true if anything did.
bool report_read_errors(const pipeline::Session& session, const pipeline::Report& report);
/// Prints errors of buffers that could not be read a second time; true if there are any.
bool say_unread(const std::vector<Error>& errors);

}  // namespace waymark::cli
