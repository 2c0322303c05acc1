/// Shared code of `waymark spe report`, `sharing`, `branches` and `quality`.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "../command_line.h"

#include "../options.h"
#include "../output.h"
#include "../table.h"
#include "waymark/analysis/program.h"
#include "waymark/analysis/quality.h"
#include "waymark/analysis/samples.h"
#include "waymark/answers/account.h"

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
};

/// Prints damage of a capture's file on standard error; true if there is any.
bool say_file_damage(const analysis::SampleCapture& capture);

/// An opened capture, and the names of its code.
class Answer {
public:
    [[nodiscard]] static Result<Answer> open(const AnswerOptions& options);

    /// Decodes everything into `sink`; may be called again.
    void run(analysis::SampleSink& sink);

    [[nodiscard]] const analysis::SampleCapture& capture() const { return *capture_; }
    [[nodiscard]] analysis::Program& program() const { return *program_; }
    [[nodiscard]] const analysis::Quality& quality() const { return quality_; }
    [[nodiscard]] const analysis::SampleTotals& totals() const { return totals_; }
    /// How much of the run the samples cover.
    [[nodiscard]] answers::Account account() const;
    /// Names of a thread and its process; `unknown` for names that are not known.
    [[nodiscard]] std::string thread_text(std::uint32_t pid, std::uint32_t tid) const;
    [[nodiscard]] std::string thread_name(std::uint32_t tid) const;

    /// The reason why there is no sample. Prints nothing.
    [[nodiscard]] std::string why_nothing() const;
    /// Prints on standard error what prevented the file from being read to its end; true if anything did.
    bool say_damage() const;
    /// Prints warnings about losses and missing files on standard error, and returns the exit status.
    [[nodiscard]] ExitStatus finish(const AnswerOptions& options, Output& out, bool names_used);

    /// The summary at the head of every report.
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

/// The message for a raw file most of whose records are malformed.
[[nodiscard]] std::string hardly_a_buffer(const std::string& capture, std::uint64_t doubtful, std::uint64_t records);

inline constexpr std::string_view few_samples_note =
    "* fewer than 30 samples: not reliable. Shares of samples with their 95 % interval (Wilson).\n";

}  // namespace waymark::cli
