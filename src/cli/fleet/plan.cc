/// `waymark fleet plan` and `waymark fleet add`.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "commands.h"
#include "waymark/core/quote.h"
#include "waymark/listing/job.h"

namespace waymark::cli {

namespace {

using fleet::PlanRequest;
using fleet::PlanSummary;

struct FleetPlanOptions {
    PlanRequest request;
    FleetDecoding decoding;
    std::string job;
    double rate = 0;

    void add_to(const Command& command) {
        request.cores = std::max(1U, std::thread::hardware_concurrency());
        command.option("INPUTS", request.inputs);
        command.option("--cores", request.cores)->check(range(1U, 10'000'000U));
        command.option("--shard-seconds", request.shard_seconds)->check(range(0.001, 1e6));
        command.option("--rate", rate)->check(range(0.001, 1e6));
    }
};

/// Code shared by both commands.
ExitStatus finish(const Result<PlanSummary>& summary, const PlanRequest& request, const std::string& job) {
    if (!summary) return fail(summary.error());
    auto out = Output::open({});
    if (!out) return fail(out.error());
    listing::print_plan(*out, *summary, request.cores);
    if (out->close() != decoded) return unreadable;
    for (const std::string& folder : summary->barren) say("warning", folder + " contains no capture");
    if (summary->free_bytes && summary->answers_bytes > *summary->free_bytes)
        say("warning", "the disk may be too small for the answers");
    say("note",
        fmt::format("next: waymark fleet local {}, or waymark fleet submit {}", shell_file(job), shell_file(job)));
    return summary->unreadable.empty() ? decoded : unreadable;
}

std::vector<std::string> given_files(const AnswersOptions& options) {
    std::vector<std::string> out = options.input.images;
    out.insert(out.end(), options.input.symbols.begin(), options.input.symbols.end());
    return out;
}

/// Shows how many captures were examined.
std::function<void(std::uint64_t, std::uint64_t)> shown_captures(std::shared_ptr<ProgressLine> line) {
    return [line = std::move(line)](std::uint64_t done, std::uint64_t all) {
        if (line->active() && done % 64 == 0)
            line->show(fmt::format("{} of {}", grouped(done), counted(all, "capture")));
    };
}

}  // namespace

Run add_fleet_plan(const Command& fleet_command) {
    const Command command = fleet_command.add("plan");
    auto options = std::make_shared<FleetPlanOptions>();
    options->decoding.add_to(command);
    options->add_to(command);
    command.option("--output", options->job);
    return [options] {
        PlanRequest& request = options->request;
        request.version = WAYMARK_VERSION;
        request.bytes_per_second = options->rate * 1e6;
        request.options = options->decoding.arguments();
        const AnswersOptions& decoding = options->decoding.options();
        request.bare = !decoding.input.bare_option().empty();
        request.given = given_files(decoding);
        auto files = decoding.input.file_search();
        if (!files) return fail(files.error());
        request.files = std::move(*files);
        request.progress = shown_captures(std::make_shared<ProgressLine>());
        const auto summary = fleet::plan_job(fleet::JobFolder(options->job), request);
        request.progress = nullptr;
        return finish(summary, request, options->job);
    };
}

Run add_fleet_add(const Command& fleet_command) {
    const Command command = fleet_command.add("add");
    auto options = std::make_shared<FleetPlanOptions>();
    add_job_folder(command, options->job);
    options->add_to(command);
    return [options] {
        PlanRequest& request = options->request;
        const fleet::JobFolder job(options->job);
        const auto manifest = fleet::read_manifest(job);
        if (!manifest) return fail(manifest.error());
        const auto decoding = FleetDecoding::read(manifest->options);
        if (!decoding) return fail(decoding.error());
        request.version = WAYMARK_VERSION;
        request.bytes_per_second = options->rate * 1e6;
        request.bare = !(*decoding)->options().input.bare_option().empty();
        request.given = given_files((*decoding)->options());
        auto files = (*decoding)->options().input.file_search();
        if (!files) return fail(files.error());
        request.files = std::move(*files);
        request.progress = shown_captures(std::make_shared<ProgressLine>());
        const auto summary = fleet::add_to_job(job, request);
        request.progress = nullptr;
        return finish(summary, request, options->job);
    };
}

}  // namespace waymark::cli
