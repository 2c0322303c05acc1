/// Exports answers as a Perfetto trace (protobuf TrackEvents), for ui.perfetto.dev and trace_processor.
#pragma once

#include <optional>

#include "waymark/core/byte_sink.h"
#include "waymark/exports/export.h"

namespace waymark::exports {

struct PerfettoOptions {
    /// Maximum size in bytes; nullopt: three times the size of the trace. Slices too short to fit are merged or
    /// omitted.
    std::optional<std::uint64_t> max_bytes{};
};

/// Tracks with their slices, marks as instants, series as counters. Memory does not grow with the output. Errors:
/// `not_found`: the answers have no timeline; `usage`: not even the tracks fit into `max_bytes`.
[[nodiscard]] Result<ExportReport> write_perfetto(const answers::Answers& answers, const PerfettoOptions& options,
                                                  ByteSink& sink);

}  // namespace waymark::exports
