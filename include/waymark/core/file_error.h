/// Describes errors of the operating system about files, in the same words everywhere.
#pragma once

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

#include "waymark/core/result.h"

namespace waymark {

/// The message for an errno value, such as `No such file or directory`.
[[nodiscard]] inline std::string reason(int error) { return std::generic_category().message(error); }

/// A sentence such as `cannot create out/a.txt: there is no folder out; make it first`. `error`: an errno value.
/// Examines the file system as it is now; if that does not explain the error, uses the operating system's message.
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
        // An existing path component that is not a folder.
        fs::path there = path;
        while (there.has_relative_path() && !fs::exists(there, none)) there = there.parent_path();
        if (fs::exists(there, none) && !fs::is_directory(there, none)) why = there.string() + " is not a folder";
    }
    return {Errc::unreadable, "cannot create " + path.string() + ": " + why};
}

/// Creates a folder, unless it exists. Its parent must exist: a missing parent is probably a typing error. Errors:
/// `unreadable`, as `cannot_create`.
[[nodiscard]] inline Status make_folder(std::filesystem::path path) {
    if (path.filename().empty()) path = path.parent_path();  // of DIR/
    std::error_code error;
    std::filesystem::create_directory(path, error);
    if (error) return cannot_create(path, error.value());
    return Nothing{};
}

}  // namespace waymark
