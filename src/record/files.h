/// What recorders share about the files they write.
#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>

#include "waymark/capture/dpu_folder.h"
#include "waymark/core/file_error.h"
#include "waymark/core/result.h"
#include "waymark/record/output_lock.h"
#include "waymark/record/truth.h"

namespace waymark::record {

/// Trace is written in pieces of this many bytes.
constexpr std::size_t write_bytes = 1 << 20;

/// `cannot write out/cstrace.bin: No space left on device`, by errno.
inline Error cannot(const char* what, const std::filesystem::path& path) {
    return {Errc::unreadable, fmt::format("cannot {} {}: {}", what, path.string(), std::strerror(errno))};
}

/// A text as an ini file can hold it, which cannot hold everything a command line can.
inline std::string ini_text(std::string text) {
    for (char& c : text)
        if (c == ';' || c == '#' || static_cast<unsigned char>(c) < ' ' || c == '\'' || c == '"') c = ' ';
    const std::size_t first = text.find_first_not_of(' ');
    if (first == text.npos) return {};
    return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

/// Remove what an earlier recording wrote, and nothing else that is in the folder.
void remove_ptm_recording(const std::filesystem::path& folder);
void remove_dpu_recording(const std::filesystem::path& folder);
inline void remove_recordings(const std::filesystem::path& folder) {
    std::error_code error;
    if (std::filesystem::exists(folder / truth_file, error)) remove_ptm_recording(folder);
    if (std::filesystem::exists(folder / capture::dpu_ini, error)) remove_dpu_recording(folder);
}

/// Makes the folder of a recording where there is none, and locks it. `holds_recording` says whether what is in it is
/// `what`, which may be replaced; anything else is refused without `force`.
template <class F>
Result<OutputLock> lock_folder(const std::filesystem::path& folder, F&& holds_recording, const char* what, bool force) {
    namespace fs = std::filesystem;
    std::error_code error;
    if (fs::exists(folder, error) && !fs::is_directory(folder, error))
        return Error{Errc::usage, fmt::format("{} is no folder; name one that is new or empty", folder.string())};
    fs::create_directories(folder, error);
    if (error) return cannot_create(folder, error.value());
    WM_ASSIGN_OR_RETURN(OutputLock lock, OutputLock::of_folder(folder));
    if (!fs::is_empty(folder, error) && !holds_recording() && !force)
        return Error{Errc::usage,
                     fmt::format("{} exists and is not {}; give a folder that is new or empty, or one that "
                                 "this command made before. With --force a recording of another unit in it is "
                                 "replaced, and other files stay",
                                 folder.string(), what)};
    return lock;
}

}  // namespace waymark::record
