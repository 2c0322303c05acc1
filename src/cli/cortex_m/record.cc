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

void CortexMRecordOptions::add_to(const Command& command, std::vector<Option>& added) {
    const auto add = [&](const Option& option) {
        added.push_back(option);
        return option->group("--unit mtb, itm, stm: how the units are programmed");
    };
    const auto add_mtb = [&](const Option& option) { of_mtb.push_back(add(option)); };
    const auto add_itm = [&](const Option& option) { of_itm.push_back(add(option)); };
    add_mtb(command.option("--mtb-size", to.mtb_bytes));
    add_mtb(command.option("--mtb-watermark", mtb_watermark));
    add_itm(command.option("--watch", to.watch));
    add_itm(command.option("--pc-samples", to.sample_cycles));
    add_itm(command.flag("--no-exceptions", no_exceptions));
    add_itm(command.flag("--no-timestamps", no_timestamps));
    add_itm(command.option("--itm-ports", to.ports)->default_str("0xe0000000"));
    of_stm.push_back(add(command.option("--stm-ports", to.stm_ports)->default_str("0x21000000")));
}

Result<record::RecordOutcome> run_record_cortex_m(const record::FlowRecording& common, const std::string& unit,
                                                  const CortexMRecordOptions& options,
                                                  const record::ShowRecording& show) {
    record::CortexMRecording to = options.to;
    to.mtb = unit.find("mtb") != unit.npos;
    using Etm = record::CortexMRecording::Etm;
    to.etm = unit.starts_with("etmv3") ? Etm::v3 : unit.starts_with("etmv4") ? Etm::v4 : Etm::none;
    to.itm = unit.find("itm") != unit.npos;
    to.stm = unit.find("stm") != unit.npos;
    for (const auto& [only, name, has] :
         {std::tuple{&options.of_mtb, "mtb", to.mtb}, std::tuple{&options.of_itm, "itm", to.itm},
          std::tuple{&options.of_stm, "stm", to.stm}})
        for (const Option& option : *only)
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
    if (options.mtb_watermark != 0) to.mtb_watermark = options.mtb_watermark;
    to.exceptions = !options.no_exceptions;
    to.timestamps = !options.no_timestamps;
    return record::record_cortex_m(to, show);
}

}  // namespace waymark::cli
