#include "record.h"

#include <fmt/format.h>

#include "../commands.h"
#include "waymark/record/recording_texts.h"

namespace waymark::cli {

void PerfRecordOptions::add_to(const Command& app) {
    command = app;
    as_option = app.option("--as", as);
    const auto perf = [&](const Option& option) {
        option->group("--as perf");
        only.push_back(option);
    };
    perf(app.option("--loss", to.loss));
    perf(app.option("--strobe", strobe));
    perf(app.flag("--per-thread", to.per_thread));
    perf(app.flag("--context-in-vmid", to.context_in_vmid));
    perf(app.flag("--sink-ids", to.sink_ids));
    perf(app.option("--also", to.also));
    perf(app.option("--cpus", to.cpus));
}

Status PerfRecordOptions::check() const {
    if (!chosen()) {
        for (const Option& option : only)
            if (option->count() != 0)
                return Error{Errc::usage, fmt::format("{} is only for --as perf", option->get_name())};
        return Nothing{};
    }
    for (const char* const name : {"--system", "--buffer", "--registers", "--view-range", "--exclude-range",
                                   "--trigger-at", "--stop-after-trigger", "--authentication", "--unit-power",
                                   "--os-lock", "--cycle-threshold", "--max-changes"})
        if (given(name)) return Error{Errc::usage, fmt::format("{} cannot be used with --as perf", name)};
    if (!to.sink.empty() && to.sink != "etr" && to.sink != "trbe")
        return Error{Errc::usage, fmt::format("--sink {}: with --as perf it is etr or trbe", to.sink)};
    if (!strobe.empty()) WM_RETURN_IF_ERROR(record::strobing(strobe));
    return Nothing{};
}

void program_like_perf(const PerfRecordOptions& options, const flow::UnitFactory& units, flow::UnitOptions& unit) {
    if (!options.strobe.empty()) unit.registers = *record::strobing(options.strobe);
    if (!units.traces_aarch64()) return;
    constexpr unsigned linux_sync_bytes = 4096;
    if (!options.given("--sync")) unit.sync_bytes = linux_sync_bytes;
    if (!options.given("--context-id") && !options.to.per_thread) unit.context_id_bytes = 4;
    unit.context_in_vmid = options.to.context_in_vmid;
}

}  // namespace waymark::cli
