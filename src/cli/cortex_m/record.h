/// `waymark record --unit mtb`, `itm`, `stm` and, for a Cortex-M, `etmv3` and `etmv4`: a program without an operating
/// system.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>
#include "waymark/command_line/command.h"

#include "waymark/core/result.h"
#include "waymark/record/flow_recording.h"
#include "waymark/record_m/cortex_m.h"

namespace waymark::cli {

struct CortexMRecordOptions {
    static constexpr std::array<const char*, 13> units{
        "mtb",       "itm",       "stm",           "mtb,itm",   "mtb,stm",   "itm,stm",      "mtb,itm,stm",
        "etmv3,itm", "etmv3,stm", "etmv3,itm,stm", "etmv4,itm", "etmv4,stm", "etmv4,itm,stm"};
    record::CortexMRecording to;
    std::uint64_t mtb_watermark = 0;
    bool no_exceptions = false, no_timestamps = false;
    std::vector<Option> of_mtb, of_itm, of_stm;

    /// `cortex_m`: whether the program was built for one. Its ETM is one of these units.
    [[nodiscard]] static bool is_unit(std::string_view name, bool cortex_m);
    /// Whether an option of program flow units is valid for these units too.
    [[nodiscard]] static bool shares(std::string_view option);
    /// Adds the options to the command, and appends them to `added`.
    void add_to(const Command& command, std::vector<Option>& added);
};

/// Errors: the errors of record::record_cortex_m.
[[nodiscard]] Result<record::RecordOutcome> run_record_cortex_m(const record::FlowRecording& common,
                                                                const std::string& unit,
                                                                const CortexMRecordOptions& options,
                                                                const record::ShowRecording& show);

}  // namespace waymark::cli
