/// The commands of `waymark fleet`: options and texts. The work is done in the layer `fleet`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "../answers.h"
#include "../commands.h"
#include "waymark/fleet/merge.h"
#include "waymark/fleet/plan.h"
#include "waymark/fleet/shard_run.h"

namespace waymark::cli {

Run add_fleet_plan(const Command& fleet);
Run add_fleet_add(const Command& fleet);
Run add_fleet_run_shard(const Command& fleet);
Run add_fleet_local(const Command& fleet);
Run add_fleet_merge(const Command& fleet);
Run add_fleet_status(const Command& fleet);
Run add_fleet_submit(const Command& fleet);
Run add_fleet_resume(const Command& fleet);
Run add_fleet_cancel(const Command& fleet);

/// The folder in which a node keeps copies of files from --debug-dir.
struct ImageCacheOptions {
    std::string folder;  ///< empty: nowhere
    std::uint64_t most_bytes = 10'000'000'000;

    void add_to(const Command& command);
    /// The options as arguments of another command.
    [[nodiscard]] std::vector<std::string> arguments() const;
};

/// How captures of a job are decoded: options of `waymark answers`, which a plan stores as arguments.
class FleetDecoding {
public:
    /// Adds the options to a command. The object must outlive the parsing.
    void add_to(const Command& command);
    /// The options as arguments that `read` understands in any folder: file names are absolute.
    [[nodiscard]] std::vector<std::string> arguments() const;
    /// Errors: `usage` if the arguments come from another version.
    [[nodiscard]] static Result<std::unique_ptr<FleetDecoding>> read(const std::vector<std::string>& arguments);

    [[nodiscard]] const AnswersOptions& options() const { return answers_; }
    /// Decodes a capture with `jobs` threads. The result borrows this object.
    [[nodiscard]] fleet::DecodeCapture decoder(unsigned jobs, const ImageCacheOptions& cache) const;

private:
    AnswersOptions answers_;
    std::string contents_ = "code";
    std::vector<Option> options_;
};

/// Adds the folder of a job.
void add_job_folder(const Command& command, std::string& folder);

/// Merges a job, prints the outcome, writes it to the job's report, and returns the status.
ExitStatus merge_and_report(const fleet::JobFolder& job, const std::string& output);

}  // namespace waymark::cli
