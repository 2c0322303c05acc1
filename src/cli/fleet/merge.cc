/// `waymark fleet merge`, and the report that every merge of a job prints.
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "../trouble.h"
#include "commands.h"
#include "waymark/fleet/status.h"

namespace waymark::cli {

namespace {

struct FleetMergeOptions {
    std::string job, output;
    std::optional<unsigned> level;
    std::optional<std::uint32_t> node;
};

void print_outcome(Output& out, const fleet::MergeOutcome& m, std::size_t most) {
    out.print("shards    {} of {} merged\n", grouped(m.merged), grouped(m.shards));
    out.print("captures  {}{}\n", grouped(m.captures),
              (m.not_decoded.empty() ? "" : fmt::format("; {} not decoded", grouped(m.not_decoded.size()))) +
                  (m.cut.empty() ? "" : fmt::format("; {} in part", grouped(m.cut.size()))));
    if (m.machines != 0) out.print("machines  {}\n", grouped(m.machines));
    out.print("builds    {} of programs and libraries\n", grouped(m.builds));
    if (const std::string recorded = fleet::recorded_text(m); !recorded.empty()) out.print("recorded  {}\n", recorded);
    out.print("work      {} of tasks, {} of processors; the largest task took {}\n", elapsed_text(m.seconds),
              elapsed_text(m.processor_seconds), size_text(m.memory_bytes));
    if (!m.spread.empty()) {
        out.print(
            "\nby program: cost of a capture (least, median, most); the median distance between\n"
            "profiles (0: alike, 1: nothing in common)\n");
        print_some(out, m.spread.size(), most, [&](std::size_t n) {
            const fleet::ProgramSpread& s = m.spread[n];
            out.print("  {}: {}; {}, {}, {}; {}\n", s.program.empty() ? "(not known)" : s.program,
                      counted(s.captures, "capture"), grouped(s.least), grouped(s.median), grouped(s.most),
                      decimal_text(s.median_distance));
        });
    }
    for (const fleet::ProgramSpread& s : m.spread) {
        if (s.outliers.empty()) continue;
        out.print("\nprofiles that differ by {} or more from the other captures of {}:\n", fleet::least_outlying,
                  s.program.empty() ? "the job" : s.program);
        print_some(out, s.outliers.size(), most, [&](std::size_t n) {
            out.print("  {} {}\n", decimal_text(s.outliers[n].distance), s.outliers[n].capture);
        });
    }
    if (!m.missing.empty()) {
        out.print("\nshards that are missing:\n");
        print_some(out, m.missing.size(), most, [&](std::size_t n) {
            out.print("  {} ({}): {}\n", m.missing[n].number, counted(m.missing[n].captures, "capture"),
                      m.missing[n].why);
        });
    }
    if (!m.not_decoded.empty()) {
        out.print("\ncaptures that are missing:\n");
        print_some(out, m.not_decoded.size(), most,
                   [&](std::size_t n) { out.print("  {}\n", about(m.not_decoded[n].what, m.not_decoded[n].why)); });
    }
    if (!m.cut.empty()) {
        out.print("\ncaptures of which a part is missing:\n");
        print_some(out, m.cut.size(), most,
                   [&](std::size_t n) { out.print("  {}\n", about(m.cut[n].what, m.cut[n].why)); });
    }
}

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
        print_outcome(*out, *merged, whole ? ~std::size_t{0} : most);
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
