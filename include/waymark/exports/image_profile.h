/// Answers → profiles of one program or library for compilers' tools, from the exact tables of ranges and branches.
/// They need neither the trace nor the file.
#pragma once

#include "waymark/core/byte_sink.h"
#include "waymark/exports/export.h"

namespace waymark::exports {

struct ImageProfileOptions {
    std::string image{};  ///< name or build ID of the program or library; empty: the program, which has `main`
    answers::Index index = answers::none;  ///< this one instead
    /// AutoFDO text: addresses as in memory, counted from where the file begins there, in place of offsets in the file.
    bool as_loaded = false;
};

/// The image of that index, if there is one; else the one that is asked for by name. A build ID may be given by its
/// first digits, 6 at least. Errors: `not_found`: there is none of that name, with those there are; or none is asked
/// for, and only libraries ran as far as their code is known.
[[nodiscard]] Result<answers::Index> profile_image(const answers::Answers& answers, const std::string& name,
                                                   answers::Index index = answers::none);

/// Google's AutoFDO text, as simpleperf writes it: `create_llvm_prof --profiler text`. Ranges `first-last:count`, no
/// addresses, branches `from->to:count`, as offsets in the file, or as loaded; 0 is code outside the file. Of samples
/// no ranges, but the addresses of branches, `address:count`. Errors: `not_found`: there are no ranges or sampled
/// branches of the image, or it is not known what of its file is loaded where.
[[nodiscard]] Result<ExportReport> write_autofdo_text(const answers::Answers& answers,
                                                      const ImageProfileOptions& options, ByteSink& sink);

/// llvm-profgen's unsymbolised profile: ranges and branches as offsets from where the page of the file's first
/// code is loaded. Errors: as above.
[[nodiscard]] Result<ExportReport> write_profgen(const answers::Answers& answers, const ImageProfileOptions& options,
                                                 ByteSink& sink);

/// The same as llvm-profgen reads it from `perf script`, with a count before each sample. Errors: as above.
[[nodiscard]] Result<ExportReport> write_profgen_script(const answers::Answers& answers,
                                                        const ImageProfileOptions& options, ByteSink& sink);

}  // namespace waymark::exports
