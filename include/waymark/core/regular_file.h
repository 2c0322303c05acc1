/// Checks whether a path can be read like a file, more than once: opening a named pipe blocks until there is a writer,
/// and a device may never end.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

#include "waymark/core/result.h"

namespace waymark {

/// The error for a named pipe, a device or a socket. nullopt for a file, a folder, and a path that does not exist,
/// which opening reports.
[[nodiscard]] inline std::optional<Error> no_regular_file(const std::filesystem::path& path) {
    namespace fs = std::filesystem;
    std::error_code none;
    const char* what = nullptr;
    switch (fs::status(path, none).type()) {
        case fs::file_type::fifo: what = "a named pipe"; break;
        case fs::file_type::character: what = "a device"; break;
        case fs::file_type::block: what = "a block device"; break;
        case fs::file_type::socket: what = "a socket"; break;
        default: return {};
    }
    return Error{Errc::unreadable, path.string() + ": is " + what +
                                       " where a regular file is needed; save the data to a file, and name that file"};
}

}  // namespace waymark
