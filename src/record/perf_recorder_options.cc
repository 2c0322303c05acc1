#include "perf_recorder_options.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "waymark/record/perf_file.h"

namespace waymark::record {

namespace perf = capture::perf;

namespace {

std::vector<perf::CsEtmUnit> units_of(const PerfRecorderOptions& o) {
    std::vector<perf::CsEtmUnit> out;
    for (std::uint32_t cpu = 0; cpu < o.cpus; ++cpu)
        out.push_back({cpu, o.units->registers(o.unit, perf::cs_etm_trace_id(cpu))});
    return out;
}

}  // namespace

perf::CsEtmTerms terms_of(const PerfRecorderOptions& o) {
    // The only settings beyond perf's terms belong to the configuration for bursts.
    const auto reload = [&](std::string_view counter) -> std::uint64_t {
        for (const flow::RegisterSetting& setting : o.unit.registers)
            if (setting.name == counter) return setting.value;
        return 0;
    };
    return {.branch_broadcast = o.unit.branch_broadcast,
            .cycle_accurate = o.unit.cycle_accurate,
            .context_id = o.unit.context_id_bytes != 0 && !o.unit.context_in_vmid,
            .timestamps = o.unit.timestamps,
            .return_stack = o.unit.return_stack,
            .context_id2 = o.unit.context_id_bytes != 0 && o.unit.context_in_vmid,
            .window = reload("TRCCNTRLDVR0"),
            .period = reload("TRCCNTRLDVR1")};
}

std::uint64_t midr_of(const std::string& core) {
    constexpr std::array<std::pair<std::string_view, std::uint64_t>, 5> known{{
        {"armv9-a", 0x410fd461},  // Cortex-A510
        {"cortex-a53", 0x410fd034},
        {"cortex-a15", 0x413fc0f2},
        {"cortex-a7", 0x410fc075},
        {"cortex-a9", 0x413fc090},
    }};
    for (const auto& [name, midr] : known)
        if (name == core) return midr;
    return 0;
}

std::vector<perf::Attr> attributes(const PerfRecorderOptions& o) {
    const perf::CsEtmTerms terms = terms_of(o);
    constexpr std::uint64_t disabled = 1, exclude_hv = 1 << 6, enable_on_exec = 1 << 12;
    perf::Attr etm;
    etm.type = cs_etm_pmu;
    etm.config = terms.config();
    etm.config2 = terms.config2();
    etm.sample_period = 1;
    etm.flags = disabled | exclude_hv | enable_on_exec;
    etm.name = terms.event();
    like_tracking_event(etm);
    // One ID for each event on each CPU.
    std::vector<std::uint64_t> tracking_ids;
    const std::uint32_t count = o.per_thread ? 1 : o.cpus;
    for (std::uint32_t cpu = 0; cpu < count; ++cpu) {
        etm.ids.push_back(1 + cpu);
        tracking_ids.push_back(1 + count + cpu);
    }
    return {etm, tracking_event(std::move(tracking_ids))};
}

Result<perf::AuxtraceInfo> auxtrace_info(const PerfRecorderOptions& o) {
    return perf::cs_etm_info(o.info_version, cs_etm_pmu, o.loss == TraceLoss::snapshot, terms_of(o), units_of(o));
}

std::vector<std::string> perf_command(const PerfRecorderOptions& o) {
    std::vector<std::string> command{"perf", "record", "-e", terms_of(o).event()};
    if (o.per_thread) command.emplace_back("--per-thread");
    if (o.loss == TraceLoss::snapshot) command.emplace_back("-S");
    command.emplace_back("--");
    command.insert(command.end(), o.command.begin(), o.command.end());
    return command;
}

Status check(const PerfRecorderOptions& o) {
    const auto wrong = [](std::string message) { return Error{Errc::usage, std::move(message)}; };
    if (o.cpus == 0 || o.cpus > perf::most_cs_etm_cpus)
        return wrong(fmt::format("--cpus {}: must be from 1 to {}, the number of trace source IDs", o.cpus,
                                 perf::most_cs_etm_cpus));
    constexpr std::uint64_t least = 8192, most = 1U << 30;
    if (o.aux_bytes < least || o.aux_bytes > most || (o.aux_bytes & (page_bytes - 1)) != 0)
        return wrong(fmt::format("a buffer of {} bytes: whole pages, from {} to {} bytes", o.aux_bytes, least, most));
    if (o.per_thread && (o.unit.context_id_bytes != 0 || o.unit.timestamps))
        return wrong("--per-thread cannot be used with --context-id or --timestamps: perf sets neither there");
    const std::vector<RegisterValue> registers = o.units->registers(o.unit, perf::cs_etm_trace_id(0));
    const perf::CsEtmBlock* const block = perf::cs_etm_block_for(registers);
    if (block == nullptr) return wrong(fmt::format("perf.data cannot describe the unit {}", o.units->name()));
    const RegisterValue* const config = find_register(registers, "TRCCONFIGR");
    if (config != nullptr && (config->value & perf::CsEtmTerms::other_trcconfigr_bits()) != 0)
        return wrong(fmt::format("TRCCONFIGR {:#x}: perf programs no such unit, and its file cannot describe one",
                                 config->value));
    if (!o.per_thread && !block->event_word.empty())
        return wrong(
            fmt::format("--unit {} needs --per-thread: perf does not program the unit's context IDs, and without them "
                        "a file with a ring for "
                        "each CPU does not show who ran",
                        o.units->name()));
    WM_ASSIGN_OR_RETURN([[maybe_unused]] const perf::AuxtraceInfo info, auxtrace_info(o));
    return Nothing{};
}

}  // namespace waymark::record
