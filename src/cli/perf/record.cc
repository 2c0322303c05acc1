#include "record.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "../commands.h"

namespace waymark::cli {

namespace {

/// The registers with which Linux's configuration `autofdo` traces in bursts: counter 0 counts the cycles of a window,
/// counter 1 counts windows, and the unit traces while counter 1 is zero. Errors: `usage`.
Result<std::vector<flow::RegisterSetting>> strobing(const std::string& text) {
    constexpr unsigned long most = 65535;
    const std::size_t slash = text.find('/');
    const auto number = [](const std::string& digits) -> std::uint64_t {
        if (digits.empty() || digits.size() > 5 || digits.find_first_not_of("0123456789") != digits.npos) return 0;
        return std::stoul(digits);
    };
    const std::uint64_t window = number(text.substr(0, slash)),
                        period = slash == text.npos ? 0 : number(text.substr(slash + 1));
    if (window == 0 || period == 0 || window > most || period > most)
        return Error{Errc::usage, fmt::format("--strobe {}: expected WINDOW/PERIOD, two numbers from 1 to {}, such as "
                                              "5000/10000",
                                              text, most)};
    const auto set = [](std::string name, std::uint64_t value, std::string field = {}) {
        return flow::RegisterSetting{std::move(name), std::move(field), value, "--strobe"};
    };
    return std::vector{set("TRCRSCTLR2", 0x20001),      set("TRCRSCTLR3", 0x20002),  set("TRCCNTRLDVR0", window),
                       set("TRCCNTVR0", window),        set("TRCCNTCTLR0", 0x10001), set("TRCCNTRLDVR1", period),
                       set("TRCCNTVR1", period),        set("TRCCNTCTLR1", 0x8102),  set("TRCSEQEVR0", 0x0081),
                       set("TRCVICTLR", 3, "EVENT.SEL")};
}

}  // namespace

void PerfRecordOptions::add_to(CLI::App& app) {
    command = &app;
    as_option =
        app.add_option(
               "--as", as,
               "Output format for program flow: snapshot: a folder with trace and code; perf: the perf.data file that "
               "'perf record -e cs_etm//u' would have written. PATH.truth.txt then contains what really ran")
            ->type_name("FORMAT")
            ->transform(one_of({"snapshot", "perf"}))
            ->capture_default_str();
    const auto perf = [&](CLI::Option* option) {
        option->group("--as perf");
        only.push_back(option);
    };
    perf(app.add_option("--loss", to.loss,
                        "none: no trace is lost; late: sinks are read too late, so an ETR keeps the newest "
                        "--aux-buffer bytes of each range (TRUNCATED, with a barrier) and a TRBE the oldest "
                        "(COLLISION); snapshot: rings are read only at the end and keep their newest bytes")
             ->type_name("HOW")
             ->transform(one_of({"none", "late", "snapshot"}))
             ->capture_default_str());
    perf(app.add_option("--strobe", strobe,
                        "Trace in bursts, as perf's configuration autofdo does: WINDOW cycles of about every WINDOW * "
                        "PERIOD, such as 5000/10000; both up to 65535. With --unit ete and etmv4")
             ->type_name("WINDOW/PERIOD"));
    perf(app.add_flag("--per-thread", to.per_thread,
                      "One AUX ring for each thread instead of each CPU, without Context IDs and timestamps. Always "
                      "on with --unit ptm and etmv3"));
    perf(app.add_flag("--context-in-vmid", to.context_in_vmid,
                      "Threads in VMIDs instead of Context IDs (contextid2), as of a kernel at EL2; with --unit ete"));
    perf(app.add_flag("--sink-ids", to.sink_ids,
                      "AUX_OUTPUT_HW_ID records of minor version 1, which say for which sink a trace ID is"));
    perf(app.add_option("--also", to.also,
                        "Record another program after this one, into the same file: its path and arguments, separated "
                        "by spaces. May be repeated")
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
                return Error{Errc::usage, fmt::format("{} is only for --as perf", option->get_name())};
        return Nothing{};
    }
    for (const char* const name : {"--system", "--buffer", "--registers", "--view-range", "--exclude-range",
                                   "--trigger-at", "--stop-after-trigger", "--authentication", "--unit-power",
                                   "--os-lock", "--cycle-threshold", "--max-changes"})
        if (given(name)) return Error{Errc::usage, fmt::format("{} cannot be used with --as perf", name)};
    if (!to.sink.empty() && to.sink != "etr" && to.sink != "trbe")
        return Error{Errc::usage, fmt::format("--sink {}: with --as perf it is etr or trbe", to.sink)};
    if (!strobe.empty()) WM_RETURN_IF_ERROR(strobing(strobe));
    return Nothing{};
}

void program_like_perf(const PerfRecordOptions& options, const flow::UnitFactory& units, flow::UnitOptions& unit) {
    if (!options.strobe.empty()) unit.registers = *strobing(options.strobe);
    if (!units.traces_aarch64()) return;
    constexpr unsigned linux_sync_bytes = 4096;
    if (!options.given("--sync")) unit.sync_bytes = linux_sync_bytes;
    if (!options.given("--context-id") && !options.to.per_thread) unit.context_id_bytes = 4;
    unit.context_in_vmid = options.to.context_in_vmid;
}

}  // namespace waymark::cli
