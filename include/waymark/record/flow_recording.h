/// A recording of program flow from beginning to end: check the options, run the program, report the outcome.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/flow/unit.h"
#include "waymark/record/perf_recorder.h"
#include "waymark/record/qemu.h"
#include "waymark/record/record_outcome.h"
#include "waymark/record/recorder.h"
#include "waymark/sink/programming.h"

namespace waymark::record {

/// The user's wishes. Messages name the command-line option of each.
struct FlowRecording {
    std::vector<std::string> program;  ///< with its arguments
    std::string folder;
    const flow::UnitFactory* units = nullptr;  ///< borrowed
    std::string unit_name,
        aarch64_units;        ///< for messages: names of `units`, and of the units that trace AArch64 programs
    std::string niden_units;  ///< for messages: the options that choose a unit that obeys NIDEN
    flow::UnitOptions unit;   ///< without places and registers
    std::string sysroot, start_at, stop_at, trigger_at;
    std::string registers;  ///< a file of settings
    std::vector<std::string> view_ranges, exclude_ranges;
    bool truth = false, blocks = false, force = false;
    bool system = false;  ///< a bare-metal image; the three below are for it
    std::string machine;
    unsigned processors = 1;
    std::vector<std::string> vectors;
    /// Signals that change: `NIDEN=0,SPNIDEN=0`, with `@PLACE` when execution reaches it; `off@PLACE`, `on@PLACE`.
    std::vector<std::string> authentication, unit_power, os_lock;
    std::vector<std::string> qemu_options;
    std::uint64_t buffer = 0, limit = 0;
    std::string sink_registers;             ///< a file of settings for the components of `sink`
    std::optional<sink::PathSetup> sink{};  ///< not with `buffer`
    std::uint32_t changes = RecorderOptions{}.limit_changes;

    /// QEMU's name of the machine.
    [[nodiscard]] std::string machine_name() const;
};

struct FlowSetup {
    RecorderOptions recorder;
    QemuOptions qemu;
};
/// Errors: `usage`: options that exclude each other, or an unknown place; `not_found`, `unreadable`, `bad_format`,
/// `unsupported`: program, QEMU or its plugin.
[[nodiscard]] Result<FlowSetup> set_up(const FlowRecording& options);

/// The programming of a unit without running the program: every place in the options has a fixed address. `program` may
/// be empty; then all places are addresses. `units` is not null. Errors: `usage`: a symbol is not known or has no fixed
/// address; `unreadable`, `bad_format`: the file of registers.
[[nodiscard]] Result<flow::UnitOptions> placed_unit(const FlowRecording& options);

/// The trigger of an ETMv4 or ETE reaches the trace bus by its event 0. `option`: the option that requests it, for
/// messages.
void send_trigger_on_bus(flow::UnitOptions& unit, const flow::UnitFactory& units, std::string option);

/// Runs the program and makes a snapshot folder. `show` may be null. Errors: the errors of Recorder::create and
/// run_qemu.
[[nodiscard]] Result<RecordOutcome> record_flow(const FlowRecording& options, FlowSetup setup,
                                                const ShowRecording& show);

/// Options for making a perf.data file instead of a snapshot folder, in addition to the options for a snapshot folder.
struct PerfRecording {
    std::string sink;               ///< `etr`, `trbe`; empty: the unit's usual one
    std::string loss = "none";      ///< or `late`, `snapshot`
    std::vector<std::string> also;  ///< further programs, each with arguments after spaces
    bool per_thread = false;
    std::uint32_t cpus = PerfRecorderOptions{}.cpus;
    std::uint64_t aux_kib = 0;
    unsigned info_version = 1;
    bool context_in_vmid = false, sink_ids = false;
};
/// Runs the program, then the further programs. Errors: as above, also for the further programs.
[[nodiscard]] Result<RecordOutcome> record_perf(FlowSetup setup, const PerfRecording& options,
                                                const ShowRecording& show);

}  // namespace waymark::record
