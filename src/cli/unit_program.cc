#include "unit_program.h"

#include <fmt/format.h>

namespace waymark::cli {

std::vector<Option> add_unit_program(const Command& command, record::FlowRecording& flow) {
    std::vector<Option> out;
    out.push_back(command.option("--core", flow.unit.core));
    out.push_back(command.flag("--cycle-accurate", flow.unit.cycle_accurate));
    out.push_back(command.flag("--timestamps", flow.unit.timestamps));
    out.push_back(command.flag("--return-stack", flow.unit.return_stack));
    out.push_back(command.flag("--branch-broadcast", flow.unit.branch_broadcast));
    out.push_back(command.option("--context-id", flow.unit.context_id_bytes));
    out.push_back(command.flag("--vmid", flow.unit.vmid));
    out.push_back(command.option("--sync", flow.unit.sync_bytes));
    out.push_back(command.option("--cycle-threshold", flow.unit.cycle_threshold));
    out.push_back(command.option("--view-range", flow.view_ranges));
    out.push_back(command.option("--exclude-range", flow.exclude_ranges));
    out.push_back(command.option("--trigger-at", flow.trigger_at)->check({[](const std::string& text) {
        return text.empty() ? std::string("the symbol or address is empty; give one, as in main") : std::string();
    }}));
    return out;
}

std::vector<std::string> registers_without_effect(const flow::UnitOptions& unit, std::string_view trace_id) {
    constexpr std::uint64_t power_down = 1U << 0, programming = 1U << 10;  // of ETMCR
    std::vector<std::string> out;
    for (const flow::RegisterSetting& s : unit.registers) {
        const auto has = [&](std::string_view field, std::uint64_t bit) {
            return s.field.empty() ? (s.value & bit) != 0 : s.field == field && s.value != 0;
        };
        const bool off = s.name == "TRCPRGCTLR" ? s.value == 0
                                                : s.name == "ETMCR" && (has("power down", power_down) ||
                                                                        has("Programming bit", programming));
        const std::string where = s.where.empty() ? s.name : s.where + ": " + s.name;
        if (off) out.push_back(where + " does not keep the unit off: it is enabled when it is programmed");
        if (s.name == "TRCTRACEIDR" || s.name == "ETMTRACEIDR")
            out.push_back(fmt::format("{} has no effect: {} the trace ID", where, trace_id));
    }
    return out;
}

}  // namespace waymark::cli
