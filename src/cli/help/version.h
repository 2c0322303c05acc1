/// What `waymark --version` prints.
#pragma once

#include <string>

namespace waymark::cli {

/// The version; how and for what the program was built; the versions of the libraries that it uses now, which may be
/// newer than those it was built with.
[[nodiscard]] std::string version_text();

}  // namespace waymark::cli
