/// `waymark fleet status`: the progress of a job.
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "../trouble.h"
#include "../views.h"
#include "commands.h"
#include "waymark/fleet/slurm.h"
#include "waymark/fleet/status.h"

namespace waymark::cli {

namespace {

using nlohmann::ordered_json;

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

void print_text(Output& out, const fleet::JobStatus& s, const std::vector<fleet::QueuedTasks>& queued) {
    out.print("shards    {} of {} done ({})", grouped(s.done), grouped(s.manifest.shards),
              share_text(s.done, s.manifest.shards));
    if (s.failed != 0) out.print(", {} failed", grouped(s.failed));
    if (s.begun != 0) out.print(", {} begun", grouped(s.begun));
    if (s.waiting != 0) out.print(", {} waiting", grouped(s.waiting));
    out.print("\ncaptures  {} of {} decoded, {} of {} of trace\n", grouped(s.captures_done),
              grouped(s.manifest.captures), size_text(s.trace_bytes_done), size_text(s.manifest.trace_bytes));
    print_account(out, s.account, 10);
    if (s.done != 0)
        out.print("rate      {} MB/s on a core, with the start of each task; the largest task took {}\n",
                  decimal_text(s.bytes_per_second() / 1e6), size_text(s.memory_bytes));
    if (s.done != s.manifest.shards) {
        const std::uint64_t running = std::max<std::uint64_t>(1, s.begun);
        out.print("left      {} on one core, {} on the {} at work\n", elapsed_text(s.seconds_left()),
                  elapsed_text(s.seconds_left() / static_cast<double>(running)), grouped(running));
    }
    for (const fleet::QueuedTasks& q : queued)
        out.print("Slurm     {} {}: {}{}\n", grouped(q.tasks), q.what, q.state,
                  q.reason.empty() || q.reason == "None" ? "" : " (" + q.reason + ")");
    out.print("result    {}\n", s.has_result ? "written; merge again if shards were decoded since" : "not merged yet");
    constexpr std::size_t most = 20;
    if (!s.running.empty()) {
        out.print("\nbegun:\n");
        print_some(out, s.running.size(), most, [&](std::size_t n) {
            const fleet::RunningShard& r = s.running[n];
            out.print("  {} on {}: {} of {}, {} of {}\n", r.number, r.progress.host, grouped(r.progress.captures_done),
                      counted(r.progress.captures, "capture"), size_text(r.progress.bytes_done),
                      size_text(r.progress.bytes));
        });
    }
    if (!s.failures.empty()) {
        out.print("\nfailed:\n");
        print_some(out, s.failures.size(), most, [&](std::size_t n) {
            out.print("  {} ({}): {}\n", s.failures[n].number, counted(s.failures[n].captures, "capture"),
                      s.failures[n].why);
        });
    }
    if (!s.not_decoded.empty()) {
        out.print("\nnot decoded:\n");
        print_some(out, s.not_decoded.size(), most,
                   [&](std::size_t n) { out.print("  {}\n", about(s.not_decoded[n].what, s.not_decoded[n].why)); });
    }
    if (!s.cut.empty()) {
        out.print("\ndecoded in part:\n");
        print_some(out, s.cut.size(), most,
                   [&](std::size_t n) { out.print("  {}\n", about(s.cut[n].what, s.cut[n].why)); });
    }
}

ordered_json status_json(const fleet::JobStatus& s, const std::vector<fleet::QueuedTasks>& queued) {
    ordered_json failures = ordered_json::array(), missing = ordered_json::array(), tasks = ordered_json::array(),
                 cut = ordered_json::array();
    for (const fleet::MissingShard& f : s.failures)
        failures.push_back({{"shard", f.number}, {"captures", f.captures}, {"why", f.why}});
    for (const fleet::NotDecoded& n : s.not_decoded) missing.push_back({{"capture", n.what}, {"why", n.why}});
    for (const fleet::NotDecoded& n : s.cut) cut.push_back({{"capture", n.what}, {"why", n.why}});
    for (const fleet::QueuedTasks& q : queued)
        tasks.push_back({{"what", q.what}, {"state", q.state}, {"reason", q.reason}, {"tasks", q.tasks}});
    return {{"shards", s.manifest.shards},
            {"done", s.done},
            {"failed", s.failed},
            {"begun", s.begun},
            {"waiting", s.waiting},
            {"captures", s.manifest.captures},
            {"captures_decoded", s.captures_done},
            {"run", answers::account_sentence(s.account)},
            {"trace_bytes", s.manifest.trace_bytes},
            {"trace_bytes_decoded", s.trace_bytes_done},
            {"bytes_per_second", s.bytes_per_second()},
            {"seconds_left", s.seconds_left()},
            {"memory_bytes", s.memory_bytes},
            {"has_result", s.has_result},
            {"failures", std::move(failures)},
            {"not_decoded", std::move(missing)},
            {"decoded_in_part", std::move(cut)},
            {"queued", std::move(tasks)}};
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
        if (options->format == "json")
            out->write(status_json(*status, queued).dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
        else
            print_text(*out, *status, queued);
        if (out->close() != decoded) return unreadable;
        const bool good = status->failures.empty() && status->not_decoded.empty() && status->cut.empty();
        return good ? decoded : nothing;
    };
}

}  // namespace waymark::cli
