/// `waymark record --as perf`: program flow as perf.data instead of a snapshot folder.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/record/flow_recording.h"

namespace waymark::cli {

struct PerfRecordOptions {
    std::string as = "snapshot";
    record::PerfRecording to;
    std::string strobe;  ///< WINDOW/PERIOD; empty: all is traced
    CLI::App* command = nullptr;
    std::vector<CLI::Option*> only;  ///< options that go with --as perf alone
    CLI::Option* as_option = nullptr;

    void add_to(CLI::App& app);
    [[nodiscard]] bool chosen() const { return as == "perf"; }
    /// Whether the command line has the option, of this file or another.
    [[nodiscard]] bool given(const std::string& option) const { return command->get_option(option)->count() != 0; }
    /// Options of SPE that mean the same here.
    [[nodiscard]] static bool shared_with_spe(std::string_view option) {
        return option == "--aux-buffer" || option == "--info-version";
    }
    /// Options of a snapshot that perf.data has no place for.
    [[nodiscard]] Status check() const;
};

/// As perf programs it, where the options do not say otherwise. Precondition: `options.check()` accepts them.
void program_like_perf(const PerfRecordOptions& options, const flow::UnitFactory& units, flow::UnitOptions& unit);

}  // namespace waymark::cli
