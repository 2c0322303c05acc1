/// `waymark fleet run-shard` and `waymark fleet local`.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "../trouble.h"
#include "commands.h"
#include "waymark/fleet/local.h"
#include "waymark/fleet/status.h"

namespace waymark::cli {

namespace {

Result<std::unique_ptr<FleetDecoding>> decoding_of(const fleet::JobFolder& job) {
    WM_ASSIGN_OR_RETURN(const fleet::Manifest manifest, fleet::read_manifest(job));
    if (manifest.version != WAYMARK_VERSION)
        return Error{Errc::usage,
                     fmt::format("{} was planned with waymark {}, and this is {}: use that version, or plan a new job",
                                 job.path().string(), manifest.version, WAYMARK_VERSION)};
    return FleetDecoding::read(manifest.options);
}

/// 000012 is decimal 12, not octal.
CLI::Validator decimal_digits() {
    return {[](std::string& text) {
                text.erase(0, std::min(text.find_first_not_of('0'), text.empty() ? 0 : text.size() - 1));
                return std::string();
            },
            ""};
}

struct RunShardOptions {
    std::string job;
    std::uint32_t shard = 0;
    unsigned jobs = 1;
    bool log = false;
    ImageCacheOptions cache;
};

/// Redirects the messages of this process to the shard's log.
void write_to_log(const fleet::JobFolder& job, std::uint32_t shard) {
    std::error_code none;
    std::filesystem::create_directories(job.logs(), none);
    const int file = ::open(job.log_of_shard(shard).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0) return;
    ::dup2(file, STDERR_FILENO);
    ::close(file);
}

ExitStatus run_one_shard(const RunShardOptions& options) {
    const fleet::JobFolder job(options.job);
    const auto decoding = decoding_of(job);
    if (!decoding) return fail(decoding.error());
    if (options.log) write_to_log(job, options.shard);
    const auto outcome =
        fleet::run_shard(job, options.shard, (*decoding)->decoder(options.jobs, options.cache), {WAYMARK_VERSION});
    if (!outcome) return fail(outcome.error());
    if (!outcome->failure.empty()) {
        say("error", fmt::format("shard {}: {}", options.shard, outcome->failure));
        return unreadable;
    }
    const fleet::Receipt& receipt = outcome->receipt;
    for (const auto* list : {&receipt.not_decoded, &receipt.cut})
        for (const fleet::NotDecoded& n : *list) say("warning", about(n.what, n.why));
    say("note", fmt::format("shard {}{}: {}, {} of trace in {}", options.shard, outcome->was_done ? " was done" : "",
                            counted(receipt.captures, "capture"), size_text(receipt.trace_bytes),
                            elapsed_text(receipt.seconds)));
    return receipt.not_decoded.empty() && receipt.cut.empty() ? decoded : nothing;
}

struct RunLocalOptions {
    std::string job;
    unsigned workers = std::max(1U, std::thread::hardware_concurrency());
    std::uint64_t retries = 1;
    ImageCacheOptions cache;
};

ExitStatus run_here(const RunLocalOptions& options) {
    const fleet::JobFolder job(options.job);
    const auto decoding = decoding_of(job);
    if (!decoding) return fail(decoding.error());
    ProgressLine line;
    fleet::LocalOptions local;
    local.workers = options.workers;
    local.retries = options.retries;
    local.shard.version = WAYMARK_VERSION;
    local.progress = [&](std::uint64_t done, std::uint64_t failed, std::uint64_t all) {
        if (line.active())
            line.show(fmt::format("{} of {} done{}", grouped(done), counted(all, "shard"),
                                  failed == 0 ? "" : fmt::format(", {} failed", grouped(failed))));
    };
    const auto outcome = fleet::run_locally(job, (*decoding)->decoder(1, options.cache), local);
    if (!outcome) return fail(outcome.error());
    return merge_and_report(job, {});
}

}  // namespace

Run add_fleet_run_shard(CLI::App& fleet_command) {
    CLI::App& command = *fleet_command.add_subcommand("run-shard", "Decode one shard; any batch system can run this");
    auto options = std::make_shared<RunShardOptions>();
    add_job_folder(command, options->job);
    command.add_option("SHARD", options->shard, "Number of the shard, from 0")
        ->required()
        ->transform(decimal_digits())
        ->check(not_negative());
    add_jobs(command, options->jobs)->description("Number of threads; 0: one per core");
    options->cache.add_to(command);
    command.add_flag("--log", options->log, "Write messages to the shard's log in the job's folder");
    command.footer(
        "The answers file appears when it is whole. A shard that is done is not decoded again. The memory that a task\n"
        "takes does not depend on the size of its captures.\n"
        "\n"
        "  waymark fleet run-shard job 17\n"
        "  seq 0 99 | parallel -j 8 waymark fleet run-shard job\n"
        "\n"
        "Exit status: 0 all captures of the shard are decoded; 1 the shard is done, without captures that could not "
        "be\n"
        "decoded or read to their ends, which it names; 2 usage; 3 the shard is not done, and its folder says why.\n");
    return [options] { return run_one_shard(*options); };
}

Run add_fleet_local(CLI::App& fleet_command) {
    CLI::App& command = *fleet_command.add_subcommand("local", "Decode and merge a job on this machine's cores");
    auto options = std::make_shared<RunLocalOptions>();
    add_job_folder(command, options->job);
    command.add_option("-j,--workers", options->workers, "Shards decoded at a time, a process for each")
        ->type_name("N")
        ->check(CLI::Range(1U, 4096U))
        ->capture_default_str();
    command.add_option("--retries", options->retries, "How often a shard that failed is run again")
        ->type_name("N")
        ->check(not_negative())
        ->capture_default_str();
    options->cache.add_to(command);
    command.footer(
        "Shards that are done are not decoded again, so the command goes on where it was interrupted. Then it merges "
        "all\n"
        "shards into JOB/result.answers, which profile, coverage, branches, loops, exceptions, diff, report, export "
        "and\n"
        "pgo read like a capture.\n"
        "\n"
        "  waymark fleet local job -j 8\n"
        "\n"
        "Exit status: 0 everything is in the result; 1 something is missing in it, and is named; 2 usage; 3 the job's\n"
        "folder cannot be read or written.\n");
    return [options] { return run_here(*options); };
}

}  // namespace waymark::cli
