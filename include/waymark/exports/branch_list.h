/// Files of branch lists, as simpleperf's `inject --output branch-list` writes them, in both of its forms.
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
    one,        ///< a header with a version, and messages that may be compressed
    compressed  ///< the same, with compressed messages (zstd)
};

/// Whether a file that begins with these bytes (8 suffice) is one.
[[nodiscard]] bool is_branch_list(Bytes head);

/// Adds what a file has; equal lists add up, up to the largest number there is. Samples of branches (LBR) in it are
/// passed over. `name`: of the file, for messages. Errors: `bad_format`; `unsupported`: a later version, or a
/// compressed one.
[[nodiscard]] Status add_branch_lists(answers::BranchLists& lists, Bytes file, std::string_view name);

/// Errors: `not_found`: there are no lists; `unsupported`: more than the format can hold.
[[nodiscard]] Result<ExportReport> write_branch_lists(const answers::BranchLists& lists, BranchListVersion version,
                                                      ByteSink& sink);

/// Each exact range as a list of one branch, so that expanding the lists gives the ranges again. Ranges that no branch
/// ends are left out. `of_image`: of this image alone (profile_image); empty: of all. Errors: as above, and the errors
/// of profile_image.
[[nodiscard]] Result<ExportReport> write_branch_list(const answers::Answers& answers, BranchListVersion version,
                                                     ByteSink& sink, const std::string& of_image = {});

}  // namespace waymark::exports
