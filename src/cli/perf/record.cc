#include "record.h"

#include <fmt/format.h>

namespace waymark::cli {

void PerfRecordOptions::add_to(CLI::App& app) {
    command = &app;
    as_option =
        app.add_option(
               "--as", as,
               "Form of a recording of program flow: snapshot, a folder that contains the code too; or perf, the "
               "perf.data file that 'perf record -e cs_etm//u' would have written, with the truth in "
               "PATH.truth.txt")
            ->check(CLI::IsMember({"snapshot", "perf"}))
            ->capture_default_str();
    const auto perf = [&](CLI::Option* option) {
        option->group("--as perf");
        only.push_back(option);
    };
    perf(app.add_option("--sink", to.sink,
                        "Where trace goes: etr, one buffer for all CPUs, in CoreSight frames; trbe, a buffer for each "
                        "CPU, its unit's bytes unformatted. Default: trbe for ete, else etr")
             ->check(CLI::IsMember({"etr", "trbe"})));
    perf(app.add_option("--loss", to.loss,
                        "late: sinks are read too late, so of each range an ETR keeps the newest --aux-buffer bytes "
                        "(TRUNCATED, with a barrier) and a TRBE the oldest (COLLISION); snapshot: read at the end "
                        "alone, each AUX ring then holds its newest bytes")
             ->check(CLI::IsMember({"none", "late", "snapshot"}))
             ->capture_default_str());
    perf(app.add_flag("--per-thread", to.per_thread,
                      "A ring for each thread instead of one for each CPU, without Context IDs and timestamps. Always "
                      "so with --unit ptm"));
    perf(app.add_option(
                "--also", to.also,
                "Another program, run when the one before it has ended, in the same file: its path and arguments "
                "with spaces between them. May be repeated")
             ->type_name("COMMAND")
             ->allow_extra_args(false)
             ->take_all());
    perf(app.add_option("--cpus", to.cpus, "Number of CPUs on which the threads run, each with a unit of its own")
             ->type_name("N")
             ->capture_default_str());
}

Status PerfRecordOptions::check() const {
    if (!chosen()) {
        for (const CLI::Option* option : only)
            if (option->count() != 0)
                return Error{Errc::usage, fmt::format("{} goes with --as perf only", option->get_name())};
        return Nothing{};
    }
    for (const char* const name : {"--system", "--buffer", "--registers", "--view-range", "--exclude-range",
                                   "--trigger-at", "--cycle-threshold", "--max-changes"})
        if (given(name)) return Error{Errc::usage, fmt::format("{} does not go with --as perf", name)};
    return Nothing{};
}

void program_like_perf(const PerfRecordOptions& options, const flow::UnitFactory& units, flow::UnitOptions& unit) {
    if (!units.traces_aarch64()) return;
    constexpr unsigned linux_sync_bytes = 4096;
    if (!options.given("--sync")) unit.sync_bytes = linux_sync_bytes;
    if (!options.given("--context-id") && !options.to.per_thread) unit.context_id_bytes = 4;
}

}  // namespace waymark::cli
