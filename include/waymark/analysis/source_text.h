/// Reads the text of source files for a report. Debug information may name any file, and a report is passed on, so only
/// the program's own sources are read.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "waymark/answers/answers.h"

namespace waymark::analysis {

struct SourceSearch {
    /// Folders of sources that the user names: a file is searched there first, under its whole path and then under
    /// shorter and shorter ends of the path.
    std::vector<std::filesystem::path> roots{};
    /// As for `image::DebugInfo::open`.
    std::vector<std::filesystem::path> debug_folders{};
};

/// The reason why an existing file is not read, as part of a finding.
struct RefusedSource {
    std::string path, why;
};

struct ReadSources {
    std::size_t files{};                 ///< that were read
    std::vector<std::string> folders{};  ///< folders that contain them
    std::vector<RefusedSource> refused{};
};

/// Fills SourceFile::lines. A file is read if it is a regular file of at most 16 MiB without a NUL byte, has a source
/// file's name, and is below a root, below a folder in which an image was compiled (image::source_folders), or below
/// /usr. Links are resolved first. Adds findings about the files that were read and those that were refused.
ReadSources read_sources(answers::Answers& answers, const SourceSearch& search);

}  // namespace waymark::analysis
