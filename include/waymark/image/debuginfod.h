/// The outcome of requests to debuginfod servers (`DEBUGINFOD_URLS`).
#pragma once

#include <string>

namespace waymark::image {

/// A clause: the servers did not answer in time and are not asked again. Empty: they were not asked, or answered.
[[nodiscard]] std::string silent_servers();

}  // namespace waymark::image
