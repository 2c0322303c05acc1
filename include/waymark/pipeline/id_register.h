/// The register that holds the trace ID of a source.
#pragma once

#include <string>
#include <string_view>

#include "waymark/pipeline/session.h"

namespace waymark::pipeline {

/// The name of that register (`ETMTRACEIDR`, `TRCTRACEIDR`, …); if a source's description lacks it, the name that
/// sources of its type have.
[[nodiscard]] std::string_view id_register(const Source& source);

/// The setting to write for a source with this trace ID: `ETMTRACEIDR=0x10`; `ITMTCR=0x00100000`, in which the ID is
/// bits [22:16].
[[nodiscard]] std::string id_setting(const Source& source, coresight::TraceId id);

}  // namespace waymark::pipeline
