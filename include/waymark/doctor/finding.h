/// Findings (protocol/finding.h), and what findings of one kind have in common.
#pragma once

#include <string_view>

#include "waymark/pipeline/gathered.h"
#include "waymark/protocol/finding.h"

namespace waymark::doctor {

using protocol::CaptureFinding;
using protocol::Severity;

/// The kind of findings on names of code alone: the trace is as good without them, and --strict passes.
inline constexpr std::string_view missing_names = "missing-names";
/// Of a source whose bytes are of no protocol that is known here.
inline constexpr std::string_view not_recognised = "not-recognised";

using pipeline::gathered;
using pipeline::without_particulars;

}  // namespace waymark::doctor
