/// `waymark fleet submit`, `resume` and `cancel`.
#include <filesystem>
#include <memory>
#include <string>

#include "commands.h"
#include "waymark/core/quote.h"
#include "waymark/fleet/slurm.h"

namespace waymark::cli {

namespace {

struct SubmitOptions {
    std::string job;
    fleet::SlurmOptions slurm;
    ImageCacheOptions cache;
};

struct ResumeOptions {
    std::string job;
    bool next_round = false;
};

ExitStatus report(const fleet::JobFolder& job, const Result<fleet::Submission>& submission) {
    if (!submission) return fail(submission.error());
    for (const std::string& problem : submission->problems) say("warning", problem);
    if (submission->merge_now) return merge_and_report(job, {});
    if (submission->jobs.empty() && submission->problems.empty()) {
        say("note", "another round is already queued or running, so nothing was submitted");
        return decoded;
    }
    for (const fleet::SlurmJob& j : submission->jobs)
        say("note", fmt::format("submitted {} as job {}: {}", j.what, j.id, counted(j.tasks, "task")));
    say("note", fmt::format("waymark fleet status {} shows how far it is; the result will be {}",
                            shell_file(job.path().string()), job.result().string()));
    return submission->problems.empty() ? decoded : nothing;
}

constexpr const char* submit_exit_status =
    "\nExit status: 0 submitted, or everything is in the result; 1 Slurm refused a part, or something is missing in "
    "the\n"
    "result; 2 usage; 3 Slurm does not answer, or the job's folder cannot be read or written.\n";

}  // namespace

Run add_fleet_submit(CLI::App& fleet_command) {
    CLI::App& command =
        *fleet_command.add_subcommand("submit", "Submit a job to Slurm: shards, merging, what failed again");
    auto options = std::make_shared<SubmitOptions>();
    add_job_folder(command, options->job);
    command
        .add_option("SBATCH", options->slurm.sbatch,
                    "Behind --: options for every sbatch, such as --partition=arm --time=30 --mem=2G --account=lab")
        ->type_name("");
    command.add_option("--retries", options->slurm.retries, "How often what is missing is submitted again")
        ->type_name("N")
        ->check(not_negative())
        ->capture_default_str();
    command.add_option("--array-size", options->slurm.array_size, "Most tasks of an array; 0: Slurm's MaxArraySize")
        ->type_name("N")
        ->check(not_negative())
        ->capture_default_str();
    command
        .add_option("--program", options->slurm.program, "Path of waymark on the nodes; default: that of this program")
        ->type_name("FILE");
    options->cache.add_to(command);
    command.footer(
        std::string("A task of an array decodes a shard. After all of them, a small job submits what is missing "
                    "again, and at last\nmerges. All machines need to see the job's folder, the captures and "
                    "waymark under the same names.\n"
                    "\n"
                    "  waymark fleet submit job -- --partition=arm --time=30 --mem=1G\n"
                    "  waymark fleet submit job --retries 3 -- --account=lab --constraint=neoverse\n") +
        submit_exit_status);
    return [options] {
        if (options->slurm.program.empty()) {
            std::error_code none;
            options->slurm.program = std::filesystem::read_symlink("/proc/self/exe", none).string();
        }
        options->slurm.run = options->cache.arguments();
        const fleet::JobFolder job(options->job);
        return report(job, fleet::submit_job(job, options->slurm));
    };
}

Run add_fleet_resume(CLI::App& fleet_command) {
    CLI::App& command = *fleet_command.add_subcommand("resume", "Submit what is missing of a job again, and merge");
    auto options = std::make_shared<ResumeOptions>();
    add_job_folder(command, options->job);
    command.add_flag("--next-round", options->next_round, "As the job that waits for a round does")->group("");
    command.footer(
        std::string("With the options of waymark fleet submit. For jobs that were cancelled, that lost "
                    "machines, or that got more captures\nby waymark fleet add. If nothing is missing, it merges "
                    "at once.\n"
                    "\n"
                    "  waymark fleet resume job\n") +
        submit_exit_status);
    return [options] {
        const fleet::JobFolder job(options->job);
        return report(job, options->next_round ? fleet::next_round(job) : fleet::resume_job(job));
    };
}

Run add_fleet_cancel(CLI::App& fleet_command) {
    CLI::App& command =
        *fleet_command.add_subcommand("cancel", "Cancel all of a job that Slurm has; resume goes on later");
    auto folder = std::make_shared<std::string>();
    add_job_folder(command, *folder);
    command.footer(
        "Shards that are done stay done.\n"
        "\n"
        "  waymark fleet cancel job\n"
        "\n"
        "Exit status: 0 cancelled, or nothing was queued; 2 usage; 3 the job was not submitted, or Slurm does not "
        "answer.\n");
    return [folder]() -> ExitStatus {
        const auto tasks = fleet::cancel_job(fleet::JobFolder(*folder));
        if (!tasks) return fail(tasks.error());
        say("note", *tasks == 0 ? std::string("nothing was queued") : "cancelled " + counted(*tasks, "task"));
        return decoded;
    };
}

}  // namespace waymark::cli
