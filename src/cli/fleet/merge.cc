/// `waymark fleet merge`, and the report that every merge of a job prints.
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "commands.h"
#include "waymark/fleet/status.h"
#include "waymark/listing/job.h"

namespace waymark::cli {

namespace {

struct FleetMergeOptions {
    std::string job, output;
    std::optional<unsigned> level;
    std::optional<std::uint32_t> node;
};

}  // namespace

ExitStatus merge_and_report(const fleet::JobFolder& job, const std::string& output) {
    const auto merged = fleet::merge_job(job, output);
    if (!merged) return fail(merged.error());
    for (const std::string& why : merged->ignored) say("note", "not used: " + why);
    // The beginning of the list is printed here; the report has the whole list.
    constexpr std::size_t most = 20;
    for (const bool whole : {true, false}) {
        auto out = Output::open(whole ? job.report().string() : std::string());
        if (!out) return fail(out.error());
        listing::print_merged(*out, *merged, whole ? ~std::size_t{0} : most);
        if (out->close() != decoded) return unreadable;
    }
    const std::string place = output.empty() ? job.result().string() : output;
    if (merged->answers_bytes == 0)
        say("error", "no shard is done, so there is nothing to merge");
    else
        say("note", fmt::format("wrote {}, {}; read it with profile, coverage, branches, report, export, diff, pgo",
                                place, size_text(merged->answers_bytes)));
    return merged->complete() && merged->answers_bytes != 0 ? decoded : nothing;
}

Run add_fleet_merge(const Command& fleet_command) {
    const Command command = fleet_command.add("merge");
    auto options = std::make_shared<FleetMergeOptions>();
    add_job_folder(command, options->job);
    command.option("--output", options->output);
    const Option level =
        command
            .add_option("--level", options->level,
                        fmt::format("Make only one intermediate sum, of this level: of {} shards (1), of {} sums of "
                                    "level 1 (2), …",
                                    fleet::merge_fan_in, fleet::merge_fan_in))
            ->type_name("N")
            ->check(range(1U, 16U));
    command.option("--node", options->node)->needs(level);
    return [options]() -> ExitStatus {
        const fleet::JobFolder job(options->job);
        if (!options->level) return merge_and_report(job, options->output);
        const Status made = fleet::merge_node(job, *options->level, options->node.value_or(0));
        return made ? decoded : fail(made.error());
    };
}

}  // namespace waymark::cli
