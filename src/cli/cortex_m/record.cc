#include "record.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "../commands.h"

namespace waymark::cli {

bool CortexMRecordOptions::is_unit(std::string_view name, bool cortex_m) {
    return (cortex_m && (name == "etmv3" || name == "etmv4")) ||
           std::find(units.begin(), units.end(), name) != units.end();
}

bool CortexMRecordOptions::shares(std::string_view option) {
    constexpr std::array<std::string_view, 6> shared{"--system",   "--from-start", "--machine",
                                                     "--start-at", "--stop-at",    "--truth"};
    return std::find(shared.begin(), shared.end(), option) != shared.end();
}

void CortexMRecordOptions::add_to(CLI::App& command, std::vector<CLI::Option*>& added) {
    const auto add = [&](CLI::Option* option) {
        added.push_back(option);
        return option->group("--unit mtb, itm, stm: how the units are programmed");
    };
    const auto add_mtb = [&](CLI::Option* option) { of_mtb.push_back(add(option)); };
    const auto add_itm = [&](CLI::Option* option) { of_itm.push_back(add(option)); };
    add_mtb(
        command
            .add_option("--mtb-size", mtb_bytes,
                        "Size of the memory of the MTB, which wraps and keeps the newest packets of 8 bytes: a power "
                        "of two, from 16 to 67108864")
            ->type_name("BYTES")
            ->check(not_negative())
            ->capture_default_str());
    add_mtb(command
                .add_option("--mtb-watermark", mtb_watermark,
                            "Stop tracing when this number of bytes is in the memory of the MTB (AUTOSTOP), so "
                            "that it keeps the oldest packets. 0: it wraps")
                ->type_name("BYTES")
                ->check(not_negative()));
    add_itm(
        command
            .add_option("--watch", watch,
                        "Trace what the program writes to this variable (DWT comparators, so up to four): the value "
                        "with the address of the instruction, or, of variables of more than 4 bytes, with the low "
                        "16 bits of the address. May be repeated")
            ->type_name("NAME")
            ->allow_extra_args(false)
            ->take_all());
    add_itm(command
                .add_option("--pc-samples", sample_cycles,
                            "Sample the program counter each CYCLES cycles; an instruction is a cycle. 0: do not")
                ->type_name("CYCLES")
                ->check(not_negative()));
    add_itm(
        command.add_flag("--no-exceptions", no_exceptions, "Do not trace entries, exits and returns of exceptions"));
    add_itm(command.add_flag("--no-timestamps", no_timestamps, "Send no local timestamps"));
    add_itm(command
                .add_option("--itm-ports", ports,
                            "Address of the stimulus ports. The ITM's registers read 0 under QEMU; a program that asks "
                            "them first can write to memory at this address instead")
                ->type_name("ADDRESS")
                ->default_str("0xe0000000"));
    of_stm.push_back(add(command
                             .add_option("--stm-ports", stm_ports,
                                         "Address of the extended stimulus ports of the STM, 256 bytes for each of "
                                         "65,536 channels. The program writes to memory there; the default is the "
                                         "PSRAM of an MPS2 board with a Cortex-M3 or M4")
                             ->type_name("ADDRESS")
                             ->default_str("0x21000000")));
}

Result<record::RecordOutcome> run_record_cortex_m(const record::FlowRecording& common, const std::string& unit,
                                                  const CortexMRecordOptions& options,
                                                  const record::ShowRecording& show) {
    record::CortexMRecording to;
    to.mtb = unit.find("mtb") != unit.npos;
    using Etm = record::CortexMRecording::Etm;
    to.etm = unit.starts_with("etmv3") ? Etm::v3 : unit.starts_with("etmv4") ? Etm::v4 : Etm::none;
    to.itm = unit.find("itm") != unit.npos;
    to.stm = unit.find("stm") != unit.npos;
    for (const auto& [only, name, has] :
         {std::tuple{&options.of_mtb, "mtb", to.mtb}, std::tuple{&options.of_itm, "itm", to.itm},
          std::tuple{&options.of_stm, "stm", to.stm}})
        for (const CLI::Option* option : *only)
            if (!has && option->count() != 0)
                return Error{Errc::usage, fmt::format("{} is only for --unit {}", option->get_name(), name)};
    to.program = common.program;
    to.folder = common.folder;
    to.machine = common.machine;
    to.qemu_options = common.qemu_options;
    to.force = common.force;
    to.start_at = common.start_at;
    to.stop_at = common.stop_at;
    to.limit = common.limit;
    to.mtb_bytes = options.mtb_bytes;
    if (options.mtb_watermark != 0) to.mtb_watermark = options.mtb_watermark;
    to.watch = options.watch;
    to.sample_cycles = options.sample_cycles;
    to.ports = options.ports;
    to.stm_ports = options.stm_ports;
    to.exceptions = !options.no_exceptions;
    to.timestamps = !options.no_timestamps;
    return record::record_cortex_m(to, show);
}

}  // namespace waymark::cli
