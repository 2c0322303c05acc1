/// Chooses the file for formats that contain sampled branches of one file.
#pragma once

#include <string>

#include "waymark/analysis/branches.h"
#include "waymark/analysis/program.h"
#include "waymark/core/result.h"

namespace waymark::analysis {

/// The recorded file with this path or name; if empty, the only file with branches. Errors: `usage`: no file or several
/// files match.
[[nodiscard]] Result<std::string> file_of_branches(const Branches& branches, Program& program, const std::string& name);

}  // namespace waymark::analysis
