/// `waymark dpu program` and `waymark dpu run`: the effect of a register program on a Debug and Profiling Unit, errors
/// in it, and the trace that the model of the unit gives with it.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "../commands.h"
#include "../options.h"
#include "../trouble.h"
#include "waymark/capture/text_file.h"
#include "waymark/core/numbers.h"
#include "waymark/core/quote.h"
#include "waymark/dpu/program_effects.h"
#include "waymark/dpu/register_program.h"
#include "waymark/listing/dpu_report.h"
#include "waymark/record_dpu/stimulus.h"

namespace waymark::cli {

Run add_dpu_program(const Command& dpu);
Run add_dpu_run(const Command& dpu);

namespace {

struct ProgramOptions {
    std::string file, format = "text", output;
    std::vector<std::string> eonce;
};

Result<std::string> read(const std::string& path) {
    if (std::error_code error; std::filesystem::is_directory(path, error))
        return Error{Errc::unreadable, fmt::format("{} is a folder; name a file of register writes. "
                                                   "waymark info {} shows the registers of a capture",
                                                   path, shell_file(path))};
    return capture::read_text_file(path, capture::most_settings_bytes);
}

ExitStatus run_program(const ProgramOptions& options) {
    const auto text = read(options.file);
    if (!text) return fail(text.error());
    const auto program = dpu::read_program(*text);
    if (!program) return fail({program.error().code, fmt::format("{}: {}", options.file, program.error().message)});
    const dpu::ModelConfig config = dpu::config_for(*program, options.eonce);
    const std::vector<dpu::Diagnosis> wrong = diagnose(*program, config);
    auto out = Output::open(options.output, {options.file});
    if (!out) return fail(out.error());
    listing::print_dpu_program(*out, *program, wrong, listing::format_of(options.format));
    if (out->close() != decoded) return unreadable;
    return std::all_of(wrong.begin(), wrong.end(), [](const auto& d) { return d.doubtful; }) ? decoded : nothing;
}

struct StimulusRunOptions {
    std::string program, stimulus, folder = "recording";
    bool quiet = false;
};

ExitStatus run_on_stimulus(const StimulusRunOptions& options) {
    const auto text = capture::read_text_file(options.program, capture::most_settings_bytes);
    if (!text) return fail(text.error());
    const auto program = dpu::read_program(*text);
    if (!program) return fail({program.error().code, fmt::format("{}: {}", options.program, program.error().message)});
    constexpr std::uint64_t most = std::uint64_t{16} << 20;
    const auto events = capture::read_text_file(options.stimulus, most);
    if (!events) return fail(events.error());
    const auto stimulus = record::read_stimulus(*events);
    if (!stimulus)
        return fail({stimulus.error().code, fmt::format("{}: {}", options.stimulus, stimulus.error().message)});
    const auto run = record::run_stimulus(*program, *stimulus, options.folder);
    if (!run) return fail(run.error());
    say_gathered("warning", run->problems);
    if (run->outside != 0)
        say("warning", fmt::format("{} were written outside the buffer (DP_TSA to DP_TEA) and are lost",
                                   counted(run->outside, "line")));
    const dpu::ModelCounts& n = run->counts;
    if (!options.quiet)
        say("note",
            fmt::format("{}: {}, {}, {}{}{}", options.folder, counted(stimulus->cycles(), "cycle"),
                        counted(n.entries, "entry", "entries"), counted(n.lines_written, "line"),
                        n.lost == 0 ? "" : fmt::format(", {} lost", counted(n.lost, "entry", "entries")),
                        n.nexus_bytes == 0 ? "" : fmt::format(", {} of messages", counted(n.nexus_bytes, "byte"))));
    for (unsigned line = 0; line < 2; ++line)
        if (run->interrupts[line] != 0)
            say("note", fmt::format("interrupt line {} was raised {}", line, counted(run->interrupts[line], "time")));
    if (run->debug_requests != 0)
        say("note", fmt::format("debug state was asked for {}", counted(run->debug_requests, "time")));
    if (!options.quiet) say("next", "waymark report " + shell_file(options.folder));
    return n.entries + n.nexus_bytes == 0 ? nothing : decoded;
}

}  // namespace

Run add_dpu_program(const Command& dpu) {
    auto options = std::make_shared<ProgramOptions>();
    const Command command = dpu.add("program");
    command.option("FILE", options->file);
    command.option("--format", options->format);
    command.option("--eonce", options->eonce)->delimiter(',');
    command.option("--output", options->output);
    return [options] { return run_program(*options); };
}

Run add_dpu_run(const Command& dpu) {
    auto options = std::make_shared<StimulusRunOptions>();
    const Command command = dpu.add("run");
    command.option("PROGRAM", options->program);
    command.option("STIMULUS", options->stimulus);
    command.option("--output", options->folder);
    command.flag("--quiet", options->quiet);
    return [options] { return run_on_stimulus(*options); };
}

}  // namespace waymark::cli
