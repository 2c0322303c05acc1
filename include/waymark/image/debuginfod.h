/// What became of questions to debuginfod servers (`DEBUGINFOD_URLS`).
#pragma once

#include <string>

namespace waymark::image {

/// That the servers sent nothing in time and are not asked again: a clause. Empty: they were not asked, or answered.
[[nodiscard]] std::string silent_servers();

}  // namespace waymark::image
