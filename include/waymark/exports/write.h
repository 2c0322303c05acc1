/// Writes answers in any format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "waymark/core/byte_sink.h"
#include "waymark/exports/branch_list.h"
#include "waymark/exports/covered_sources.h"
#include "waymark/exports/export.h"

namespace waymark::exports {

/// Options of all formats; each format uses the options that concern it.
struct WriteOptions {
    std::size_t metric = 0;
    std::optional<std::uint64_t> most_bytes{};  ///< for formats with a timeline
    std::string image{};                        ///< for profiles of one image: ImageProfileOptions
    bool bolt_traces = false;                   ///< BoltOptions
    BranchListVersion branch_list_version{};
    CoveredSources coverage{};
    bool autofdo_as_loaded = false;  ///< ImageProfileOptions
};
/// `format`: a format that is a single file of text or bytes; tables and databases have functions of their own. Errors:
/// the errors of the format's function. Precondition: `format` is not csv, jsonl or sqlite.
[[nodiscard]] Result<ExportReport> write(const Format& format, const answers::Answers& answers,
                                         const WriteOptions& options, ByteSink& sink);

}  // namespace waymark::exports
