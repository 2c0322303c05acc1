/// Where the captures of real hardware are that golden tests read.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>

namespace waymark {

/// The folder named by the environment variable WAYMARK_CORPUS, else `shared/corpus` beside the source tree. Nothing
/// when it is not there: a test then skips with a message.
inline std::optional<std::filesystem::path> corpus() {
    const char* named = std::getenv("WAYMARK_CORPUS");
    const std::filesystem::path folder = named != nullptr
                                             ? std::filesystem::path(named)
                                             : std::filesystem::path(WAYMARK_SOURCE_DIR) / ".." / "shared" / "corpus";
    std::error_code ignored;
    if (!std::filesystem::is_directory(folder, ignored)) return std::nullopt;
    return folder;
}

}  // namespace waymark
