/// Findings (protocol/finding.h), and kinds that several places use.
#pragma once

#include <string_view>

#include "waymark/pipeline/gathered.h"
#include "waymark/protocol/finding.h"

namespace waymark::doctor {

using protocol::CaptureFinding;
using protocol::Severity;

/// The kind of findings that only concern names of code: the trace itself is unaffected, and --strict passes.
inline constexpr std::string_view missing_names = "missing-names";
/// For a source whose bytes do not match any known protocol.
inline constexpr std::string_view not_recognised = "not-recognised";

using pipeline::gathered;
using pipeline::without_particulars;

}  // namespace waymark::doctor
