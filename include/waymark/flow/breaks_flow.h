/// Tells which events break flow, for code that connects flow before and after an event.
#pragma once

#include <variant>

#include "waymark/flow/flow.h"

namespace waymark::flow {

/// Whether flow continues after this event at a place that does not follow from the flow before. Not true for
/// exceptions and changes of context, which have rules of their own.
[[nodiscard]] inline bool breaks_flow(const What& what) {
    if (const auto* wrong = std::get_if<Inconsistency>(&what)) return cuts_flow(wrong->conflict);
    if (const auto* mark = std::get_if<Mark>(&what)) return mark->kind == Mark::Kind::uncommitted;
    return std::holds_alternative<Gap>(what) || std::holds_alternative<TraceOn>(what) ||
           std::holds_alternative<NoMemory>(what) || std::holds_alternative<Untraced>(what) ||
           std::holds_alternative<Atoms>(what);
}

}  // namespace waymark::flow
