/// `waymark record --as perf`: program flow as perf.data instead of a snapshot folder.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "../output.h"
#include "waymark/record/perf_recorder.h"
#include "waymark/record/qemu.h"
#include "waymark/record/recorder.h"

namespace waymark::cli {

struct PerfRecordOptions {
    std::string as = "snapshot", sink, loss = "none";
    std::vector<std::string> also;
    bool per_thread = false;
    std::uint32_t cpus = record::PerfRecorderOptions{}.cpus;
    CLI::App* command = nullptr;
    std::vector<CLI::Option*> only;  ///< options that go with --as perf alone
    CLI::Option* as_option = nullptr;

    void add_to(CLI::App& to);
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

/// As perf programs it, where the options do not say otherwise.
void program_like_perf(const PerfRecordOptions& options, const flow::UnitFactory& units, flow::UnitOptions& unit);

/// `base`: what a snapshot folder would be made of. `program`: with its arguments.
[[nodiscard]] ExitStatus run_record_perf(record::RecorderOptions base, const record::QemuOptions& how,
                                         const PerfRecordOptions& options, std::uint64_t aux_kib, unsigned info_version,
                                         bool quiet);

}  // namespace waymark::cli
