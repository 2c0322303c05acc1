/// `waymark record --as perf`: program flow as perf.data instead of a snapshot folder.
#pragma once

#include <string>
#include <string_view>
#include <vector>
#include "waymark/command_line/command.h"

#include "waymark/record/flow_recording.h"

namespace waymark::cli {

struct PerfRecordOptions {
    std::string as = "snapshot";
    record::PerfRecording to;
    std::string strobe;  ///< WINDOW/PERIOD; empty: everything is traced
    Command command;
    std::vector<Option> only;  ///< options that require --as perf
    Option as_option;

    void add_to(const Command& app);
    [[nodiscard]] bool chosen() const { return as == "perf"; }
    /// Whether an option of SPE has the same meaning here.
    [[nodiscard]] bool given(const std::string& option) const { return command.get_option(option)->count() != 0; }
    /// Options of SPE that have the same meaning here.
    [[nodiscard]] static bool shared_with_spe(std::string_view option) {
        return option == "--aux-buffer" || option == "--info-version";
    }
    /// Refuses options of a snapshot that perf.data cannot express.
    [[nodiscard]] Status check() const;
};

/// Programs the unit as perf would, where the options do not state otherwise. Precondition: `options.check()` accepts
/// them.
void program_like_perf(const PerfRecordOptions& options, const flow::UnitFactory& units, flow::UnitOptions& unit);

}  // namespace waymark::cli
