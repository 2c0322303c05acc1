/// Exports answers as a file of speedscope.app: execution over time (evented profiles) and the call tree (sampled
/// profiles).
#pragma once

#include <optional>

#include "waymark/core/byte_sink.h"
#include "waymark/exports/export.h"

namespace waymark::exports {

struct SpeedscopeOptions {
    std::size_t metric = 0;  ///< metric of the sampled profile, index of Answers::metrics
    /// Maximum size in bytes; the timeline is made coarser until it fits. nullopt: the timeline is not reduced.
    std::optional<std::uint64_t> max_bytes{};
};

/// An evented profile for each track, and a sampled one of the call tree, or of functions if there is no tree. Errors:
/// `not_found`: neither timeline nor costs; `usage`: the parts that cannot be reduced are larger than `max_bytes`.
[[nodiscard]] Result<ExportReport> write_speedscope(const answers::Answers& answers, const SpeedscopeOptions& options,
                                                    ByteSink& sink);

}  // namespace waymark::exports
