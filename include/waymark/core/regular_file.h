/// Whether a path names something that can be read like a file from front to back, more than once: opening a named pipe
/// waits for a writer, and a device may never end.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

#include "waymark/core/result.h"

namespace waymark {

/// The error for a named pipe, a device or a socket. Nothing for a file and a folder, and for what does not exist:
/// opening it reports that.
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
    return Error{Errc::unreadable,
                 path.string() + ": is " + what +
                     " where a regular file is needed; write what it gives into a file, and name that"};
}

}  // namespace waymark
