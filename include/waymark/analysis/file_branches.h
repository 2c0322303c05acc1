/// The file that sampled branches are wanted of, for formats that are of one file.
#pragma once

#include <string>

#include "waymark/analysis/branches.h"
#include "waymark/analysis/program.h"
#include "waymark/core/result.h"

namespace waymark::analysis {

/// The file, as recorded, of this path or name; empty: the only one that branches are in. Errors: `usage`: there is
/// none of that name, or several.
[[nodiscard]] Result<std::string> file_of_branches(const Branches& branches, Program& program, const std::string& name);

}  // namespace waymark::analysis
