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

}  // namespace

Run add_fleet_submit(const Command& fleet_command) {
    const Command command = fleet_command.add("submit");
    auto options = std::make_shared<SubmitOptions>();
    add_job_folder(command, options->job);
    command.option("SBATCH", options->slurm.sbatch);
    command.option("--retries", options->slurm.retries);
    command.option("--array-size", options->slurm.array_size);
    command.option("--program", options->slurm.program);
    options->cache.add_to(command);
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

Run add_fleet_resume(const Command& fleet_command) {
    const Command command = fleet_command.add("resume");
    auto options = std::make_shared<ResumeOptions>();
    add_job_folder(command, options->job);
    command.flag("--next-round", options->next_round)->group("");
    return [options] {
        const fleet::JobFolder job(options->job);
        return report(job, options->next_round ? fleet::next_round(job) : fleet::resume_job(job));
    };
}

Run add_fleet_cancel(const Command& fleet_command) {
    const Command command = fleet_command.add("cancel");
    auto folder = std::make_shared<std::string>();
    add_job_folder(command, *folder);
    return [folder]() -> ExitStatus {
        const auto tasks = fleet::cancel_job(fleet::JobFolder(*folder));
        if (!tasks) return fail(tasks.error());
        say("note", *tasks == 0 ? std::string("nothing was queued") : "cancelled " + counted(*tasks, "task"));
        return decoded;
    };
}

}  // namespace waymark::cli
