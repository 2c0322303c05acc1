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
