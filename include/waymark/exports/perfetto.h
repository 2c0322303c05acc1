/// Answers → a Perfetto trace (protobuf TrackEvents): ui.perfetto.dev and trace_processor open it.
#pragma once

#include <optional>

#include "waymark/core/byte_sink.h"
#include "waymark/exports/export.h"

namespace waymark::exports {

struct PerfettoOptions {
    /// Most bytes; without: three times the bytes of the trace. Slices shorter than what fits are merged or left out.
    std::optional<std::uint64_t> max_bytes{};
};

/// Tracks with their slices, marks as instants, series as counters. Memory does not grow with the output. Errors:
/// `not_found`: the answers have no timeline; `usage`: not even the tracks fit into `max_bytes`.
[[nodiscard]] Result<ExportReport> write_perfetto(const answers::Answers& answers, const PerfettoOptions& options,
                                                  ByteSink& sink);

}  // namespace waymark::exports
