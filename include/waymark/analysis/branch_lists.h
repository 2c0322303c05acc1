/// Branch lists (answers/branch_list.h) and the file they are of → exact ranges and branches.
#pragma once

#include <filesystem>

#include "waymark/answers/answers.h"
#include "waymark/answers/branch_list.h"
#include "waymark/core/result.h"

namespace waymark::analysis {

/// What became of the lists of a file.
struct ExpandedLists {
    std::uint64_t outcomes{};  ///< each as often as it was
    std::uint64_t lost{};      ///< of them, that the file has no branch for
};

/// Adds an image with its ranges and jumps to `answers`, whose image it becomes; each list is walked once, from its
/// address on, and counts as often as it was met. A list ends where an indirect branch is taken. Errors: the errors of
/// reading the file.
[[nodiscard]] Result<ExpandedLists> add_branch_lists(answers::Answers& answers, const answers::BranchListImage& lists,
                                                     const std::filesystem::path& file);

}  // namespace waymark::analysis
