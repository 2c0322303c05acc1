/// Sampled branches of one file, as tools that lay out code take them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "waymark/analysis/branches.h"
#include "waymark/analysis/program.h"
#include "waymark/core/result.h"

namespace waymark::analysis {

/// Addresses are those of the file.
struct FileBranches {
    struct Sum {
        std::uint64_t taken{}, mispredicts{};
    };
    std::string file;                                                ///< as recorded
    std::map<std::pair<std::uint64_t, std::uint64_t>, Sum> pairs{};  ///< taken, by where from and where to
    std::map<std::uint64_t, std::uint64_t> samples{};                ///< of all branches, by address
    std::uint64_t elsewhere{};                                       ///< taken, and left the file
    std::uint64_t not_retired{};                                     ///< which are counted too
};
/// `name`: the file, by its path or name; empty: the only one that branches are in. Errors: `usage`: there is none of
/// that name, or several; `unreadable`: the file was not found, so its addresses are not known.
[[nodiscard]] Result<FileBranches> branches_of_file(const Branches& branches, Program& program,
                                                    const std::string& name);

}  // namespace waymark::analysis
