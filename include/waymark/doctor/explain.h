/// Why trace units trace, or nothing, from registers as people have them: settings, files of registers, captures.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/capture/capture.h"
#include "waymark/core/register_value.h"
#include "waymark/core/result.h"
#include "waymark/flow/unit_program.h"
#include "waymark/protocol/explanation.h"

namespace waymark::doctor {

/// What recorded trace took, by its packets, records or entries.
struct TraceCost {
    std::string unit;          ///< what is counted, in the singular: `instruction`, `sample`, `entry`
    std::uint64_t units{};     ///< that the bytes below are for
    std::uint64_t bytes{};     ///< of trace that was read: without losses and padding
    std::uint64_t unplaced{};  ///< places where the trace shows execution of code that no image has
    struct Kind {
        std::string name;  ///< `TIMESTAMP`
        std::uint64_t count{}, bytes{};
    };
    std::vector<Kind> kinds{};  ///< the most bytes first

    /// Bytes for each unit; 0: no unit is known.
    [[nodiscard]] double each() const {
        return units == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(units);
    }
};

struct ExplainedSource {
    std::string source;  ///< its name in the capture; empty: the registers were given by themselves
    std::vector<RegisterValue> registers;
    protocol::UnitExplanation explanation;
    std::vector<std::string> ignored;  ///< names that are no registers of the unit, as they were written
    std::optional<TraceCost> cost{};   ///< measured; none: there is no trace, or it was not asked for
    /// Of each level: registers that decide for it alone whether there is trace, and were not given; empty: none is.
    std::vector<std::vector<std::string>> undecided{};
    /// Of each content: registers that decide whether it is in the trace, and were not given; empty: none is.
    std::vector<std::vector<std::string>> undecided_contents{};
    /// On how the registers were read, and on what kept the cost from being measured in full; a sentence each.
    std::vector<std::string> remarks{};
};

/// Registers as people give them: files of them, and settings besides.
struct GivenRegisters {
    struct File {
        std::string name, text;
    };
    std::vector<File> files;
    std::vector<flow::RegisterSetting> settings;  ///< override what files say
};
/// Chooses the unit that has most of the given names: explain_settings() where it is a unit of program flow, else SPE,
/// of whose version nothing is assumed but what PMSIDR_EL1 says, or the DPU, of which a file is a register program.
/// Errors: as explain_settings().
[[nodiscard]] Result<ExplainedSource> explain_registers(const GivenRegisters& given, std::string_view core);

/// The unit is that which has most of these registers. A name may be in small letters, and without its last R, as
/// Linux has it in sysfs (`trcconfig`); a later setting replaces an earlier one. `core`: the type of the traced core;
/// may be empty. Errors: `usage`: no unit that is explained has any of these registers, or a value or field is none of
/// its register.
[[nodiscard]] Result<ExplainedSource> explain_settings(const std::vector<flow::RegisterSetting>& settings,
                                                       std::string_view core);

/// The trace buffers among the devices of a snapshot whose registers it has.
[[nodiscard]] std::vector<ExplainedSource> explained_sinks(const capture::Capture& capture);

/// Every source of a capture whose unit is explained, by the registers that the capture gives; of SPE by what the event
/// of perf asks for. `cost`: reads the trace, and measures; what keeps it from that is a remark. Errors: as
/// open_capture(); `unsupported`: it has no such source.
[[nodiscard]] Result<std::vector<ExplainedSource>> explain_capture(const std::string& path, bool cost,
                                                                   const std::function<void(const std::string&)>& note);

}  // namespace waymark::doctor
