/// Explanations of trace units, and the purposes of their registers, as text and JSON.
#pragma once

#include <cstddef>
#include <vector>

#include "waymark/doctor/explain.h"
#include "waymark/doctor/register_reference.h"
#include "waymark/listing/text.h"

namespace waymark::listing {

/// Whether something is traced, in ascending order: of several units in a row, the least one decides.
enum class Tracing { no, not_known, yes };
/// The result for a capture or several files: one source that traces is enough, and one component of each kind that
/// passes the trace on.
[[nodiscard]] Tracing tracing_of(const std::vector<doctor::ExplainedSource>& units);

/// `columns`: width of the text.
void print_explanation(TextSink& out, const std::vector<doctor::ExplainedSource>& units, LineFormat format,
                       std::size_t columns);
/// The purposes of registers, without values.
void print_registers(TextSink& out, const std::vector<doctor::NamedRegister>& registers, LineFormat format,
                     std::size_t columns);

}  // namespace waymark::listing
