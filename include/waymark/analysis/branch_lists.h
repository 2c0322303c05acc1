/// Expands branch lists (answers/branch_list.h), with the file they belong to, into exact ranges and branches.
#pragma once

#include <filesystem>

#include "waymark/answers/answers.h"
#include "waymark/answers/branch_list.h"
#include "waymark/core/result.h"

namespace waymark::analysis {

/// The result of expanding the lists of a file.
struct ExpandedLists {
    std::uint64_t outcomes{};  ///< number of outcomes, each counted as often as its list occurred
    std::uint64_t lost{};      ///< outcomes for which the file has no branch
};

/// Adds an image with its ranges and jumps to `answers`. Each list is walked once, from its address on, and counts as
/// often as it occurred. A list ends where an indirect branch is taken. Errors: the errors of reading the file.
[[nodiscard]] Result<ExpandedLists> add_branch_lists(answers::Answers& answers, const answers::BranchListImage& lists,
                                                     const std::filesystem::path& file);

}  // namespace waymark::analysis
