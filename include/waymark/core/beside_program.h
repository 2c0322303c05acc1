/// Shared libraries of Waymark that the program loads while it runs.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>

#include "waymark/core/result.h"

namespace waymark {

/// The path of such a library, relative to this program in the build or installation. Errors: `not_found`.
[[nodiscard]] inline Result<std::filesystem::path> find_beside_program(const std::string& name) {
    std::error_code error;
    const std::filesystem::path folder =
        std::filesystem::read_symlink("/proc/self/exe", error).parent_path().parent_path() / "lib";
    const std::filesystem::path installed = folder / "waymark" / name, built = folder / name;
    for (const std::filesystem::path& place : {installed, built})
        if (std::filesystem::exists(place, error)) return place;
    return Error{Errc::not_found, name + " was not found as " + installed.string() + " or " + built.string() +
                                      "; build or install all of Waymark"};
}

}  // namespace waymark
