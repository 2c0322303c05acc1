/// Which events break flow, for all that connects what ran before an event with what runs after it.
#pragma once

#include <variant>

#include "waymark/flow/flow.h"

namespace waymark::flow {

/// Behind this event flow goes on at a place that does not follow from what ran before it. Exceptions and changes of
/// context are no such events: they have rules of their own.
[[nodiscard]] inline bool breaks_flow(const What& what) {
    if (const auto* wrong = std::get_if<Inconsistency>(&what)) return cuts_flow(wrong->conflict);
    if (const auto* mark = std::get_if<Mark>(&what)) return mark->kind == Mark::Kind::uncommitted;
    return std::holds_alternative<Gap>(what) || std::holds_alternative<TraceOn>(what) ||
           std::holds_alternative<NoMemory>(what) || std::holds_alternative<Untraced>(what) ||
           std::holds_alternative<Atoms>(what);
}

}  // namespace waymark::flow
