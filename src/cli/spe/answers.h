/// Shared code of `waymark spe report`, `sharing`, `branches` and `quality`.
#pragma once

#include <string>
#include <vector>
#include "waymark/command_line/command.h"

#include "../options.h"
#include "waymark/command_line/output.h"
#include "waymark/doctor/profile_view.h"
#include "waymark/listing/profile.h"

namespace waymark::cli {

/// Options for reading a profile, for all commands that read one.
struct ProfileInput {
    std::string capture, format = "text", output, midr;
    unsigned jobs = 0;
    bool mid_record = false, strict = false;

    void add_capture_to(const Command& command);
    void add_reading_to(const Command& command);
};

struct AnswerOptions : ProfileInput {
    std::vector<std::string> cpus, threads, functions;
    InputOptions names;  ///< for --symfs and --debug-dir
    std::string kallsyms;

    /// `formats`: formats in addition to text, tsv and json.
    void add_to(const Command& command, std::vector<std::string> formats = {});
    [[nodiscard]] listing::LineFormat line_format() const { return listing::format_of(format); }
};

[[nodiscard]] Result<doctor::ProfileView> open_profile(const AnswerOptions& options);

/// Prints sentences on standard error as `kind`; true if there are any.
bool say_all(std::string_view kind, const std::vector<std::string>& sentences);

/// Prints warnings about losses and missing files on standard error, and returns the exit status.
[[nodiscard]] ExitStatus finish(const doctor::ProfileView& view, const AnswerOptions& options, Output& out,
                                bool names_used);

}  // namespace waymark::cli
