/// Exports answers as Cobertura XML, which GitLab, Jenkins and Azure show.
#pragma once

#include "waymark/core/byte_sink.h"
#include "waymark/exports/covered_sources.h"
#include "waymark/exports/export.h"

namespace waymark::exports {

struct CoberturaOptions {
    std::uint64_t time{};  ///< time of creation, in seconds since 1970
    CoveredSources coverage{};
};

/// Packages are folders, classes are files. Code that was not observed is named in a comment and counts as not
/// executed. Errors: the errors of `write_lcov`.
[[nodiscard]] Result<ExportReport> write_cobertura(const answers::Answers& answers, const CoberturaOptions& options,
                                                   ByteSink& sink);

}  // namespace waymark::exports
