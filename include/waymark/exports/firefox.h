/// Exports answers as a profile of the Firefox Profiler (processed profile, version 48), for profiler.firefox.com.
#pragma once

#include <optional>

#include "waymark/core/byte_sink.h"
#include "waymark/exports/export.h"

namespace waymark::exports {

struct FirefoxOptions {
    std::size_t metric = 0;  ///< metric of the call tree, index of Answers::metrics
    /// Maximum size in bytes; the timeline is made coarser until it fits. nullopt: the timeline is not reduced.
    std::optional<std::uint64_t> max_bytes{};
};

/// A thread for each track, with a sample at each change of the stack, weighted by its duration, and marks as markers;
/// and a thread with the call tree, weighted by cost. Errors: `not_found`: neither timeline nor costs; `usage`: the
/// parts that cannot be reduced are larger than `max_bytes`.
[[nodiscard]] Result<ExportReport> write_firefox(const answers::Answers& answers, const FirefoxOptions& options,
                                                 ByteSink& sink);

}  // namespace waymark::exports
