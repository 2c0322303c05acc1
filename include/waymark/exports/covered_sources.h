/// Selects the source files in a report of coverage, and their names in it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "waymark/answers/own_code.h"

namespace waymark::exports {

struct CoveredSources {
    std::vector<std::string> only{};                     ///< functions, source files or images, as for answers::Only
    answers::CodeKind code = answers::CodeKind::system;  ///< only code of the kinds up to this one
    /// Only files below these folders. Cobertura names files relative to the folder.
    std::vector<std::string> source_roots{};
    /// Beginnings of paths, in whole components, and their replacements; the first match is used.
    std::vector<std::pair<std::string, std::string>> prefixes{};
    /// lcov: FN records also have the last line of the function, which lcov supports from version 2.0 on.
    bool end_lines = false;
};

}  // namespace waymark::exports
