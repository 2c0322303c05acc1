/// Which source files a report of coverage is about, and how it names them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "waymark/answers/own_code.h"

namespace waymark::exports {

struct CoveredSources {
    std::vector<std::string> only{};  ///< functions, source files or images, as answers::Only takes them
    answers::CodeKind code = answers::CodeKind::system;  ///< and only code of the kinds up to this one
    /// Only files below these folders. Cobertura names files relative to the folder.
    std::vector<std::string> source_roots{};
    /// Beginnings of paths, by whole parts, and what to write in their place; the first that fits.
    std::vector<std::pair<std::string, std::string>> prefixes{};
    /// lcov: FN records have the last line of the function too, which lcov reads from version 2.0 on.
    bool end_lines = false;
};

}  // namespace waymark::exports
