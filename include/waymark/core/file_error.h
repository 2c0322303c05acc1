/// What the operating system says of files, in words, said once for all who read or make some.
#pragma once

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

#include "waymark/core/result.h"

namespace waymark {

/// `No such file or directory`, for an error of errno.
[[nodiscard]] inline std::string reason(int error) { return std::generic_category().message(error); }

/// `cannot create out/a.txt: there is no folder out; make it first`. `error` is of errno. Looks at the file system as
/// it is now: where that does not explain the error, the operating system's message is given.
[[nodiscard]] inline Error cannot_create(const std::filesystem::path& path, int error) {
    namespace fs = std::filesystem;
    std::string why = reason(error);
    std::error_code none;
    if (error == EISDIR && fs::is_directory(path, none)) why = "it is a folder; name a file";
    if (error == ENXIO && fs::is_fifo(path, none)) why = "it is a named pipe that nobody reads; name a file";
    const fs::path folder = path.parent_path();
    if (error == ENOENT && !folder.empty() && !fs::exists(folder, none))
        why = "there is no folder " + folder.string() + "; make it first";
    if (error == ENOTDIR) {
        // Something that is no folder, where a folder is needed.
        fs::path there = path;
        while (there.has_relative_path() && !fs::exists(there, none)) there = there.parent_path();
        if (fs::exists(there, none) && !fs::is_directory(there, none)) why = there.string() + " is no folder";
    }
    return {Errc::unreadable, "cannot create " + path.string() + ": " + why};
}

/// Makes a folder, unless it is there. The folder around it has to be there: where it is not, the path is likely to be
/// mistyped. Errors: `unreadable`, as `cannot_create`.
[[nodiscard]] inline Status make_folder(std::filesystem::path path) {
    if (path.filename().empty()) path = path.parent_path();  // of DIR/
    std::error_code error;
    std::filesystem::create_directory(path, error);
    if (error) return cannot_create(path, error.value());
    return Nothing{};
}

}  // namespace waymark
