/// The register that holds the trace ID of a source.
#pragma once

#include <string>
#include <string_view>

#include "waymark/pipeline/session.h"

namespace waymark::pipeline {

/// Its name (`ETMTRACEIDR`, `TRCTRACEIDR`, …); of a source whose description lacks it, that of the register which a
/// source of its type has.
[[nodiscard]] std::string_view id_register(const Source& source);

/// What to write for a source that has this trace ID: `ETMTRACEIDR=0x10`; `ITMTCR=0x00100000`, in which the ID is bits
/// [22:16].
[[nodiscard]] std::string id_setting(const Source& source, coresight::TraceId id);

}  // namespace waymark::pipeline
