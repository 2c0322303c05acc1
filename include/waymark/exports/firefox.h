/// Answers → a profile of the Firefox Profiler (processed profile, version 48): profiler.firefox.com opens it.
#pragma once

#include <optional>

#include "waymark/core/byte_sink.h"
#include "waymark/exports/export.h"

namespace waymark::exports {

struct FirefoxOptions {
    std::size_t metric = 0;  ///< index of Answers::metrics, of the call tree
    /// Most bytes; the timeline is made coarser until it fits. Without: what the timeline has.
    std::optional<std::uint64_t> max_bytes{};
};

/// A thread per track, with a sample wherever the stack changed, weighted by how long it stayed, and marks as markers;
/// and a thread that holds the call tree, weighted by cost. Errors: `not_found`: neither timeline nor costs; `usage`:
/// what cannot be made coarser is larger than `max_bytes`.
[[nodiscard]] Result<ExportReport> write_firefox(const answers::Answers& answers, const FirefoxOptions& options,
                                                 ByteSink& sink);

}  // namespace waymark::exports
