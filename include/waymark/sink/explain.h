/// Explains why a trace buffer is empty, wrapped or ends early, from its registers, in the same words as for units.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "waymark/core/register_value.h"
#include "waymark/protocol/explanation.h"
#include "waymark/sink/tmc.h"

namespace waymark::sink {

/// The kind of buffer for a name in a snapshot: `ETB`, `TMC-ETF`, `TMC ETR`, in any case; nullopt: it is not such a
/// type.
[[nodiscard]] std::optional<SinkKind> kind_of(std::string_view type);

/// Sections refer to docs/spec/tmc.md. Registers have the names that Tmc::register_name returns, in any case. Missing
/// registers are not judged. `saved`: there are bytes that may have come from this buffer, so that capture was on
/// before the registers were read.
[[nodiscard]] protocol::UnitExplanation explain(SinkKind kind, const std::vector<RegisterValue>& registers,
                                                bool saved = false);

/// What a component does with trace.
enum class SinkRole : std::uint8_t {
    sink,      ///< keeps it, or sends it out
    link,      ///< passes it on
    triggers,  ///< passes triggers on, and no trace
};
struct ExplainedDevice {
    SinkRole role{};
    protocol::UnitExplanation explanation{};
};
/// A trace buffer, a trace port, a funnel, a replicator or a cross-trigger interface, by its type in a snapshot such as
/// `TMC-ETR`, `TPIU` or `CSTF`. Registers have the names of the models here, of the manuals, or of Linux's files.
/// `saved`: there are bytes that came through it. nullopt: another type.
[[nodiscard]] std::optional<ExplainedDevice> explain_device(std::string_view type,
                                                            const std::vector<RegisterValue>& registers,
                                                            bool saved = false);

/// The type of the device that has most of these registers: `TMC-ETR`, `TMC`, `TPIU`, `Funnel`, `Replicator`, `CTI`;
/// empty: none has any.
[[nodiscard]] std::string_view device_with(const std::vector<std::string>& names);
/// Whether a device of that type has a register with that name.
[[nodiscard]] bool device_has(std::string_view type, std::string_view name);

/// What the registers of a stopped buffer state about trace that it does not hold (docs/spec/tmc.md, 2.2 and 3.2).
struct NotHeld {
    bool older{};  ///< it wrapped; without MODE, a buffer is taken to be circular
    bool later{};  ///< the trigger stopped the capture
};
/// Registers as for explain(). A missing register states nothing.
[[nodiscard]] NotHeld not_held(SinkKind kind, const std::vector<RegisterValue>& registers);

}  // namespace waymark::sink
