/// Explains why trace units trace or do not, from registers in any usual form: settings, files of registers, captures.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/capture/capture.h"
#include "waymark/capture/not_permitted.h"
#include "waymark/core/register_value.h"
#include "waymark/core/result.h"
#include "waymark/flow/unit_program.h"
#include "waymark/protocol/explanation.h"
#include "waymark/sink/explain.h"

namespace waymark::doctor {

/// The size of recorded trace, by packets, records or entries.
struct TraceCost {
    std::string unit;          ///< the counted unit, in the singular: `instruction`, `sample`, `entry`
    std::uint64_t units{};     ///< number of units that the bytes below are for
    std::uint64_t bytes{};     ///< bytes of trace that were read, without losses and padding
    std::uint64_t unplaced{};  ///< number of places where the trace shows execution of code without an image
    struct Kind {
        std::string name;  ///< `TIMESTAMP`
        std::uint64_t count{}, bytes{};
    };
    std::vector<Kind> kinds{};  ///< sorted by falling number of bytes

    /// Bytes for each unit; 0 if there are none.
    [[nodiscard]] double each() const {
        return units == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(units);
    }
};

struct ExplainedSource {
    std::string source;  ///< its name in the capture; empty: only registers were given
    std::vector<RegisterValue> registers;
    protocol::UnitExplanation explanation;
    std::vector<std::string> ignored;  ///< names that are not registers of the unit, in their original spelling
    std::optional<TraceCost> cost{};   ///< measured; nullopt: there is no trace, or it was not requested
    /// For each level: registers that decide for it alone whether there is trace, and were not given; empty: none.
    std::vector<std::vector<std::string>> undecided{};
    /// For each kind of content: registers that decide whether it is in the trace, and were not given; empty: none.
    std::vector<std::vector<std::string>> undecided_contents{};
    /// Not a source: what it does with trace.
    std::optional<sink::SinkRole> role{};
    /// For a trace buffer: whether the capture has bytes that may come from it.
    bool has_trace = false;
    /// Trace that signals from outside prevented in the whole capture; registers do not show it.
    std::vector<capture::NotPermitted> not_permitted{};
    /// How the registers were read, and why the cost could not be measured completely; one sentence each.
    std::vector<std::string> remarks{};
};

/// Registers given by the user: files of registers, and single settings.
struct GivenRegisters {
    struct File {
        std::string name, text;
    };
    std::vector<File> files;
    std::vector<flow::RegisterSetting> settings;  ///< override the files
};
/// Explains one unit: the unit that has most of the given names. For a unit of program flow, it calls
/// explain_settings(). Otherwise the unit is SPE, for which only PMSIDR_EL1 shows the version, or the DPU, for which a
/// file is a register program. If files are device files of a snapshot, it explains the trace source or trace buffer of
/// each, sources first; registers given beside them replace the registers of the source. Errors: as explain_settings();
/// `unsupported`: a device file of something else; `bad_format`: it has a mistake.
[[nodiscard]] Result<std::vector<ExplainedSource>> explain_registers(const GivenRegisters& given,
                                                                     std::string_view core);

/// Chooses the unit that has most of these registers. A name may be in lower case, and without its last R, as in
/// Linux's sysfs (`trcconfig`); a later setting replaces an earlier one. If only some fields of a register were given,
/// the other fields are unknown: conclusions that depend on them are in `undecided`, with their names. `core`: the type
/// of the traced core; may be empty. Errors: `usage`: no explained unit has any of these registers, or a value or field
/// is invalid for its register.
[[nodiscard]] Result<ExplainedSource> explain_settings(const std::vector<flow::RegisterSetting>& settings,
                                                       std::string_view core);

/// The trace buffers, and what is between them and the sources, among the devices of a snapshot for which it has
/// registers.
[[nodiscard]] std::vector<ExplainedSource> explained_sinks(const capture::Capture& capture);

/// Every source of a capture whose unit can be explained, by the capture's registers; for SPE by the event that perf
/// requested. `cost`: reads the trace and measures it; obstacles become remarks. Errors: as open_capture();
/// `unsupported`: there is no such source.
[[nodiscard]] Result<std::vector<ExplainedSource>> explain_capture(const std::string& path, bool cost,
                                                                   const std::function<void(const std::string&)>& note);

}  // namespace waymark::doctor
