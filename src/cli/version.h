/// The output of `waymark --version`.
#pragma once

#include <string>

namespace waymark::cli {

/// The version; how and for what the program was built; the versions of the libraries in use, which may be newer than
/// those at build time.
[[nodiscard]] std::string version_text();

}  // namespace waymark::cli
