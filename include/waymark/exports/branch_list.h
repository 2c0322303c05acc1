/// Files of branch lists, in both forms that simpleperf's `inject --output branch-list` writes.
#pragma once

#include <string>
#include <string_view>

#include "waymark/answers/branch_list.h"
#include "waymark/core/byte_sink.h"
#include "waymark/core/result.h"
#include "waymark/exports/export.h"

namespace waymark::exports {

enum class BranchListVersion : std::uint8_t {
    old,        ///< one message
    one,        ///< a header with a version, followed by messages that may be compressed
    compressed  ///< the same, with compressed messages (zstd)
};

/// Whether a file that begins with these bytes (8 suffice) is a branch list.
[[nodiscard]] bool is_branch_list(Bytes head);

/// Adds the contents of a file; counts of equal lists are added, and saturate. Samples of branches (LBR) in it are
/// skipped. `name`: name of the file, for messages. Errors: `bad_format`; `unsupported`: a later version, or a
/// compressed one.
[[nodiscard]] Status add_branch_lists(answers::BranchLists& lists, Bytes file, std::string_view name);

/// Errors: `not_found`: there are no lists; `unsupported`: more than the format can represent.
[[nodiscard]] Result<ExportReport> write_branch_lists(const answers::BranchLists& lists, BranchListVersion version,
                                                      ByteSink& sink);

/// Converts each exact range to a list of one branch, so that expanding the lists gives the ranges again. Ranges that
/// do not end with a branch are omitted. `of_image`: only this image (profile_image); empty: all. Errors: as above, and
/// the errors of profile_image.
[[nodiscard]] Result<ExportReport> write_branch_list(const answers::Answers& answers, BranchListVersion version,
                                                     ByteSink& sink, const std::string& of_image = {});

}  // namespace waymark::exports
