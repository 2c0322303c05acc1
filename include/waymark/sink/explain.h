/// Why a trace buffer is empty, wrapped or ends early, from its registers, in the words that all units have.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "waymark/core/register_value.h"
#include "waymark/protocol/explanation.h"
#include "waymark/sink/tmc.h"

namespace waymark::sink {

/// What a snapshot calls a buffer of this type: `ETB`, `TMC-ETF`, `TMC ETR`, in any case; none: it is no such type.
[[nodiscard]] std::optional<SinkKind> kind_of(std::string_view type);

/// Sections are of docs/spec/tmc.md. Registers have the names that Tmc::register_name gives, in any case. What is not
/// given is not judged. `saved`: bytes are at hand that may have come from this buffer, so that capture was on before
/// the registers were read.
[[nodiscard]] protocol::UnitExplanation explain(SinkKind kind, const std::vector<RegisterValue>& registers,
                                                bool saved = false);

}  // namespace waymark::sink
