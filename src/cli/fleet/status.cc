/// `waymark fleet status`: the progress of a job.
#include <memory>
#include <string>

#include "commands.h"
#include "waymark/fleet/slurm.h"
#include "waymark/fleet/status.h"
#include "waymark/listing/job.h"

namespace waymark::cli {

namespace {

struct FleetStatusOptions {
    std::string job, format = "text";
};

/// The job's tasks in Slurm's queue; empty without Slurm.
std::vector<fleet::QueuedTasks> queue(const fleet::JobFolder& job) {
    if (!fleet::was_submitted(job)) return {};
    const auto tasks = fleet::queued_tasks(job);
    if (tasks) return *tasks;
    say("note", "the queue is not known: " + tasks.error().message);
    return {};
}

}  // namespace

Run add_fleet_status(const Command& fleet_command) {
    const Command command = fleet_command.add("status");
    auto options = std::make_shared<FleetStatusOptions>();
    add_job_folder(command, options->job);
    command.option("--format", options->format);
    return [options]() -> ExitStatus {
        const fleet::JobFolder job(options->job);
        const auto status = fleet::read_status(job);
        if (!status) return fail(status.error());
        auto out = Output::open({});
        if (!out) return fail(out.error());
        const std::vector<fleet::QueuedTasks> queued = queue(job);
        listing::print_job_status(*out, *status, queued, listing::format_of(options->format));
        if (out->close() != decoded) return unreadable;
        const bool good = status->failures.empty() && status->not_decoded.empty() && status->cut.empty();
        return good ? decoded : nothing;
    };
}

}  // namespace waymark::cli
