/// Exports profiles of one program or library for compilers' tools, from the exact tables of ranges and branches.
/// Neither the trace nor the file is needed.
#pragma once

#include "waymark/core/byte_sink.h"
#include "waymark/exports/export.h"

namespace waymark::exports {

struct ImageProfileOptions {
    std::string image{};  ///< name or build ID of the program or library; empty: the program, which has `main`
    answers::Index index = answers::none;  ///< this one instead
    /// AutoFDO text: addresses in memory, relative to the load address of the file's beginning, instead of offsets in
    /// the file.
    bool as_loaded = false;
};

/// The image with that index, if given; otherwise the one selected by name. The first digits of a build ID, at least 6,
/// are enough. Errors: `not_found`: there is none with that name, with the existing ones; or none is selected, and only
/// libraries ran as far as their code is known.
[[nodiscard]] Result<answers::Index> profile_image(const answers::Answers& answers, const std::string& name,
                                                   answers::Index index = answers::none);

/// Google's AutoFDO text, as simpleperf writes it: `create_llvm_prof --profiler text`. Ranges `first-last:count`, no
/// addresses, branches `from->to:count`, as offsets in the file, or as loaded; 0 is code outside the file. Samples give
/// no ranges, but the addresses of branches, `address:count`. Errors: `not_found`: there are no ranges or sampled
/// branches of the image, or the load addresses of its file are not known.
[[nodiscard]] Result<ExportReport> write_autofdo_text(const answers::Answers& answers,
                                                      const ImageProfileOptions& options, ByteSink& sink);

/// llvm-profgen's unsymbolised profile: ranges and branches as offsets from the load address of the page with the
/// file's first code. Errors: as above.
[[nodiscard]] Result<ExportReport> write_profgen(const answers::Answers& answers, const ImageProfileOptions& options,
                                                 ByteSink& sink);

/// The same in the form that llvm-profgen reads from `perf script`, with a count before each sample. Errors: as above.
[[nodiscard]] Result<ExportReport> write_profgen_script(const answers::Answers& answers,
                                                        const ImageProfileOptions& options, ByteSink& sink);

}  // namespace waymark::exports
