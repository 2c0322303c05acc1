#include "waymark/record/files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "waymark/capture/dpu_folder.h"
#include "waymark/capture/module_map.h"
#include "waymark/capture/not_permitted.h"
#include "waymark/capture/ran_before.h"
#include "waymark/core/file_error.h"
#include "waymark/record/images.h"
#include "waymark/record/truth.h"

namespace waymark::record {

namespace fs = std::filesystem;

Error cannot(const char* what, const fs::path& path) {
    return {Errc::unreadable, fmt::format("cannot {} {}: {}", what, path.string(), std::strerror(errno))};
}

std::size_t write_some(int file, Bytes bytes) {
    std::size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t n = write(file, bytes.data() + done, bytes.size() - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        done += static_cast<std::size_t>(n);
    }
    return done;
}

std::string ini_text(std::string text) {
    for (char& c : text)
        if (c == ';' || c == '#' || static_cast<unsigned char>(c) < ' ' || c == '\'' || c == '"') c = ' ';
    const std::size_t first = text.find_first_not_of(' ');
    if (first == text.npos) return {};
    return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

namespace {

/// Folder for the earlier recording until the new one is known to contain something.
constexpr const char* set_aside_folder = ".before";
/// Folder used while the recording is moved there and back. Only a complete recording has the other name.
constexpr const char* moving_folder = ".moving";

/// Files of a recording with program flow.
std::vector<fs::path> flow_files(const fs::path& folder) {
    std::error_code error;
    std::vector<fs::path> own;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
        const std::string name = entry.path().filename().string(), extension = entry.path().extension().string();
        const auto begins = [&](std::string_view prefix) { return name.starts_with(prefix); };
        const bool described =
            extension == ".ini" && (name == "snapshot.ini" || name == "trace.ini" || name == "memory.ini" ||
                                    begins("core_") || begins("source_") || begins("sink_") || begins("link_"));
        const bool data = extension == ".bin" && (name == "trace.bin" || name == Images::archive_file ||
                                                  begins("trace_") || begins("code_") || begins("truth_"));
        if (described || data || name == truth_file || name == perf_map_copy || name == jitdump_copy ||
            name == capture::module_map_file || name == capture::ran_before_file ||
            name == capture::not_permitted_file || name == ".new" || name == ".trace")
            own.push_back(entry.path());
    }
    return own;
}

/// Files of a recording of a DPU.
std::vector<fs::path> dpu_files(const fs::path& folder) {
    std::error_code error;
    std::vector<fs::path> own;
    for (const auto& name : {std::string(capture::dpu_ini), std::string(dpu_buffer_file), std::string(dpu_nexus_file),
                             std::string(truth_file), std::string(capture::module_map_file)})
        if (fs::exists(folder / name, error)) own.push_back(folder / name);
    for (unsigned i = 0; fs::exists(folder / fmt::format("{}{}.elf", dpu_image_prefix, i), error); ++i)
        own.push_back(folder / fmt::format("{}{}.elf", dpu_image_prefix, i));
    return own;
}

std::vector<fs::path> recorded_files(const fs::path& folder) {
    std::error_code error;
    std::vector<fs::path> out;
    if (fs::exists(folder / truth_file, error)) out = flow_files(folder);
    if (fs::exists(folder / capture::dpu_ini, error))
        for (fs::path& path : dpu_files(folder))
            if (std::find(out.begin(), out.end(), path) == out.end()) out.push_back(std::move(path));
    return out;
}

/// Moves all files of `from` to `to`, and removes `from`.
Status move_all(const fs::path& from, const fs::path& to) {
    std::error_code error;
    std::vector<fs::path> files;
    for (const fs::directory_entry& entry : fs::directory_iterator(from, error)) files.push_back(entry.path());
    for (const fs::path& path : files) {
        fs::rename(path, to / path.filename(), error);
        if (error) return Error{Errc::unreadable, fmt::format("cannot move {}: {}", path.string(), error.message())};
    }
    fs::remove_all(from, error);
    return Nothing{};
}

/// Whether the folder has a recording with trace.
bool has_trace(const fs::path& folder) {
    std::error_code error;
    const bool described = (fs::exists(folder / truth_file, error) && fs::exists(folder / "snapshot.ini", error)) ||
                           fs::exists(folder / capture::dpu_ini, error);
    if (!described) return false;
    for (const fs::path& path : recorded_files(folder)) {
        const std::string name = path.filename().string();
        const bool trace = name.starts_with("trace") || name == dpu_buffer_file || name == dpu_nexus_file;
        if (trace && path.extension() == ".bin" && fs::file_size(path, error) != 0 && !error) return true;
    }
    return false;
}

/// Finishes what a killed recording left undone. A killed recording stays if it has trace; otherwise the previous
/// recording is restored.
void recover_recordings(const fs::path& folder) {
    std::error_code error;
    if (fs::exists(folder / moving_folder, error)) static_cast<void>(move_all(folder / moving_folder, folder));
    if (!fs::exists(folder / set_aside_folder, error)) return;
    if (has_trace(folder))
        forget_recordings_aside(folder);
    else
        take_recordings_back(folder);
}

}  // namespace

Result<bool> set_recordings_aside(const fs::path& folder) {
    std::error_code error;
    const std::vector<fs::path> files = recorded_files(folder);
    fs::remove_all(folder / set_aside_folder, error);
    if (files.empty()) return false;
    if (!fs::create_directory(folder / moving_folder, error))
        return cannot_create(folder / moving_folder, error ? error.value() : EEXIST);
    for (const fs::path& path : files) {
        fs::rename(path, folder / moving_folder / path.filename(), error);
        if (!error) continue;
        const Error why{Errc::unreadable, fmt::format("cannot move {}: {}", path.string(), error.message())};
        static_cast<void>(move_all(folder / moving_folder, folder));
        return why;
    }
    fs::rename(folder / moving_folder, folder / set_aside_folder, error);
    return true;
}

void take_recordings_back(const fs::path& folder) {
    std::error_code error;
    // Without its truth, a recording is not recognised if this process is killed during the move.
    fs::remove(folder / truth_file, error);
    fs::remove(folder / capture::dpu_ini, error);
    for (const fs::path& path : dpu_files(folder)) fs::remove_all(path, error);
    for (const fs::path& path : flow_files(folder)) fs::remove_all(path, error);
    fs::rename(folder / set_aside_folder, folder / moving_folder, error);
    if (!error) static_cast<void>(move_all(folder / moving_folder, folder));
}

void forget_recordings_aside(const fs::path& folder) {
    std::error_code error;
    fs::remove_all(folder / set_aside_folder, error);
}

Result<OutputLock> lock_folder(const fs::path& folder, const std::function<bool()>& holds_recording, const char* what,
                               bool force) {
    std::error_code error;
    if (fs::exists(folder, error) && !fs::is_directory(folder, error))
        return Error{Errc::usage, fmt::format("{} is not a folder; name one that is new or empty", folder.string())};
    WM_RETURN_IF_ERROR(make_folder(folder));
    WM_ASSIGN_OR_RETURN(OutputLock lock, OutputLock::of_folder(folder));
    recover_recordings(folder);
    if (!fs::is_empty(folder, error) && !holds_recording() && !force)
        return Error{Errc::usage,
                     fmt::format("{} exists and is not {}; give a folder that is new or empty, or one that "
                                 "this command made before. With --force a recording of another unit in it is "
                                 "replaced, and other files stay",
                                 folder.string(), what)};
    return lock;
}

}  // namespace waymark::record
