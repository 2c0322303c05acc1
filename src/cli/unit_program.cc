#include "unit_program.h"

#include <fmt/format.h>

namespace waymark::cli {

std::vector<CLI::Option*> add_unit_program(CLI::App& command, record::FlowRecording& flow) {
    std::vector<CLI::Option*> out;
    out.push_back(command
                      .add_option("--core", flow.unit.core,
                                  "ptm: cortex-a9 (PFT v1.0) or cortex-a15 (PFT v1.1, the default); etmv3: cortex-a7 "
                                  "(ETMv3.5); etmv4: cortex-a53 (ETMv4.0); ete: armv9-a (ETE 1.0)")
                      ->type_name("NAME"));
    out.push_back(command.add_flag(
        "--cycle-accurate", flow.unit.cycle_accurate,
        "Cycle counts; in a recording each instruction counts as one cycle, since QEMU models no timing"));
    out.push_back(
        command.add_flag("--timestamps", flow.unit.timestamps, "Timestamps; in a recording they count these cycles"));
    out.push_back(command.add_flag("--return-stack", flow.unit.return_stack,
                                   "Return stack: a return to its call is traced without an address"));
    out.push_back(command.add_flag("--branch-broadcast", flow.unit.branch_broadcast,
                                   "Trace the target addresses of direct branches too"));
    out.push_back(
        command
            .add_option(
                "--context-id", flow.unit.context_id_bytes,
                "Size of the traced Context ID in bytes: 0 (not traced), 1, 2 or 4. In a recording the Context ID is "
                "the thread number; with --system and AArch64, CONTEXTIDR_EL1")
            ->type_name("BYTES")
            ->capture_default_str());
    out.push_back(command.add_flag(
        "--vmid", flow.unit.vmid,
        "ete and etmv4, in a recording with --system: trace the VMID: ete: CONTEXTIDR_EL2; etmv4: that of VTTBR_EL2"));
    out.push_back(
        command
            .add_option("--sync", flow.unit.sync_bytes,
                        "Trace bytes between periodic synchronisations. ptm and etmv3 (ETMSYNCFR): up to 4095; ete and "
                        "etmv4 (TRCSYNCPR): a power of two from 256 to 1048576; 0: none")
            ->type_name("BYTES")
            ->capture_default_str());
    out.push_back(
        command
            .add_option("--cycle-threshold", flow.unit.cycle_threshold,
                        "ete and etmv4, with --cycle-accurate: minimum number of cycles in a cycle count (TRCCCCTLR), "
                        "up to 4095. 0: the smallest that the unit allows")
            ->type_name("CYCLES")
            ->capture_default_str());
    out.push_back(
        command
            .add_option("--view-range", flow.view_ranges,
                        "Trace only blocks with code in this range: the symbol of a function, or START-STOP, where "
                        "each "
                        "is an address or a symbol and STOP is the address after the range. May be repeated, up to "
                        "the four pairs of address comparators")
            ->type_name("RANGE")
            ->allow_extra_args(false)
            ->take_all());
    out.push_back(
        command
            .add_option(
                "--exclude-range", flow.exclude_ranges,
                "Do not trace blocks that lie in this range as a whole. May be repeated; with --view-range too, "
                "but not on a ptm or etmv3")
            ->type_name("RANGE")
            ->allow_extra_args(false)
            ->take_all());
    out.push_back(
        command
            .add_option("--trigger-at", flow.trigger_at,
                        "Mark each execution of this symbol or address in the trace: ptm and etmv3: with a Trigger "
                        "packet; ete and etmv4: with event 0")
            ->type_name("SYMBOL")
            ->check([](const std::string& text) {
                return text.empty() ? std::string("the symbol or address is empty; give one, as in main")
                                    : std::string();
            }));
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
