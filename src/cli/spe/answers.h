/// What `waymark spe report`, `sharing`, `branches` and `quality` have in common.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../options.h"
#include "../output.h"
#include "../table.h"
#include "waymark/analysis/program.h"
#include "waymark/analysis/quality.h"
#include "waymark/analysis/samples.h"
#include "waymark/answers/account.h"

namespace waymark::cli {

/// How a profile is read, for all commands that read one.
struct ProfileInput {
    std::string capture, format = "text", output, midr;
    unsigned jobs = 0;
    bool mid_record = false, strict = false;

    void add_capture_to(CLI::App& command);
    void add_reading_to(CLI::App& command);
};

struct AnswerOptions : ProfileInput {
    std::vector<std::string> cpus, threads, functions;
    InputOptions names;  ///< for --symfs and --debug-dir
    std::string kallsyms;

    /// `formats`: besides text, tsv and json.
    void add_to(CLI::App& command, std::vector<std::string> formats = {});
};

/// Prints what is wrong with a capture's file itself, on standard error; true if anything is.
bool say_file_damage(const analysis::SampleCapture& capture);

/// A capture, opened, and the names of its code.
class Answer {
public:
    [[nodiscard]] static Result<Answer> open(const AnswerOptions& options);

    /// Decodes everything into `sink`; may be called again.
    void run(analysis::SampleSink& sink);

    [[nodiscard]] const analysis::SampleCapture& capture() const { return *capture_; }
    [[nodiscard]] analysis::Program& program() const { return *program_; }
    [[nodiscard]] const analysis::Quality& quality() const { return quality_; }
    [[nodiscard]] const analysis::SampleTotals& totals() const { return totals_; }
    /// How much of the run the samples show.
    [[nodiscard]] answers::Account account() const;
    /// Name of a thread, and process; `unknown` where it is not known.
    [[nodiscard]] std::string thread_text(std::uint32_t pid, std::uint32_t tid) const;
    [[nodiscard]] std::string thread_name(std::uint32_t tid) const;

    /// Why there is not one sample; says nothing else.
    [[nodiscard]] std::string why_nothing() const;
    /// Prints what kept the file from being read to its end, on standard error; true if anything did.
    bool say_damage() const;
    /// Warnings of what was lost and which files are missing, on standard error, and the exit status.
    [[nodiscard]] ExitStatus finish(const AnswerOptions& options, Output& out, bool names_used);

    /// The block on top of every report.
    void print_quality(Output& out, bool all) const;
    [[nodiscard]] nlohmann::ordered_json quality_json() const;
    [[nodiscard]] Table streams_table() const;

private:
    Answer() = default;
    std::unique_ptr<analysis::SampleCapture> capture_;
    std::unique_ptr<analysis::Program> program_;
    std::unique_ptr<capture::perf::Tasks> tasks_;
    analysis::Selection selection_;
    analysis::SampleTotals totals_;
    analysis::Quality quality_;
    unsigned jobs_ = 1;
};

/// What to say of a bare file most of whose records cannot be.
[[nodiscard]] std::string hardly_a_buffer(const std::string& capture, std::uint64_t doubtful, std::uint64_t records);

inline constexpr std::string_view few_samples_note =
    "* fewer than 30 samples: says little. Shares of samples with their 95 % interval (Wilson).\n";

}  // namespace waymark::cli
