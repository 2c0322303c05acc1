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
#include "waymark/listing/job.h"

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
Check decimal_digits() {
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
                            listing::elapsed_text(receipt.seconds)));
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

Run add_fleet_run_shard(const Command& fleet_command) {
    const Command command = fleet_command.add("run-shard");
    auto options = std::make_shared<RunShardOptions>();
    add_job_folder(command, options->job);
    command.option("SHARD", options->shard)->transform(decimal_digits());
    command.option("--jobs", options->jobs)->description("Number of threads; 0: one per core");
    options->cache.add_to(command);
    command.flag("--log", options->log);
    return [options] { return run_one_shard(*options); };
}

Run add_fleet_local(const Command& fleet_command) {
    const Command command = fleet_command.add("local");
    auto options = std::make_shared<RunLocalOptions>();
    add_job_folder(command, options->job);
    command.option("--workers", options->workers)->check(range(1U, 4096U));
    command.option("--retries", options->retries);
    options->cache.add_to(command);
    return [options] { return run_here(*options); };
}

}  // namespace waymark::cli
