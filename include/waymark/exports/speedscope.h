/// Answers → a file of speedscope.app: what ran when (evented profiles) and who called whom (sampled profiles).
#pragma once

#include <optional>

#include "waymark/core/byte_sink.h"
#include "waymark/exports/export.h"

namespace waymark::exports {

struct SpeedscopeOptions {
    std::size_t metric = 0;  ///< index of Answers::metrics, of the sampled profile
    /// Most bytes; the timeline is made coarser until it fits. Without: what the timeline has.
    std::optional<std::uint64_t> max_bytes{};
};

/// An evented profile per track, and a sampled one of the call tree, or of functions alone where there is none. Errors:
/// `not_found`: neither timeline nor costs; `usage`: what cannot be made coarser is larger than `max_bytes`.
[[nodiscard]] Result<ExportReport> write_speedscope(const answers::Answers& answers, const SpeedscopeOptions& options,
                                                    ByteSink& sink);

}  // namespace waymark::exports
