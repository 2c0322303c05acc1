/// Converts entries to text and back: `CONTEXT context=user:7`. docs/spec/dpu.md, section 7.2, has the names and
/// fields.
#pragma once

#include <string>
#include <string_view>

#include "waymark/core/packet_text.h"
#include "waymark/core/result.h"
#include "waymark/dpu/packet.h"

namespace waymark::dpu {

using wire::fields_text, wire::to_text;

/// The inverse of to_text. `bad_format`: unknown name, or a field is missing, in the wrong place or has an invalid
/// value; the message names it.
[[nodiscard]] Result<Entry> from_text(std::string_view text, const TraceFormat& format);

/// A short phrase with the meaning of an entry, such as `0x401010 → 0x200, now supervisor 5`; empty if the fields are
/// enough.
[[nodiscard]] std::string explain(const Entry& entry);

}  // namespace waymark::dpu
