/// The text of source files for a report. Debug information names files, and whoever made it may name any: a report is
/// passed on, so only what is the program's own source is read.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "waymark/answers/answers.h"

namespace waymark::analysis {

struct SourceSearch {
    /// Folders of sources that the user names: a file is looked for there first, under its whole name and then under
    /// ever less of its end.
    std::vector<std::filesystem::path> roots{};
    /// As `image::DebugInfo::open` takes them.
    std::vector<std::filesystem::path> debug_folders{};
};

/// Why a file that is there is not read, in the words of a finding.
struct RefusedSource {
    std::string path, why;
};

struct ReadSources {
    std::size_t files{};                 ///< that were read
    std::vector<std::string> folders{};  ///< below which they are
    std::vector<RefusedSource> refused{};
};

/// Fills SourceFile::lines. Read is a regular file of at most 16 MiB, without a NUL byte, whose name is that of a
/// source file, below a root, below a folder in which an image was compiled (image::source_folders), or
/// below /usr. The place counts to which links lead. Adds findings about what was read and what was refused.
ReadSources read_sources(answers::Answers& answers, const SourceSearch& search);

}  // namespace waymark::analysis
