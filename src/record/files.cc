#include "waymark/record/files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "waymark/capture/dpu_folder.h"
#include "waymark/capture/module_map.h"
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

/// Where an earlier recording waits until it is known that the new one has something.
constexpr const char* set_aside_folder = ".before";

/// What a recording of a unit of program flow wrote.
std::vector<fs::path> flow_files(const fs::path& folder) {
    std::error_code error;
    std::vector<fs::path> own;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
        const std::string name = entry.path().filename().string(), extension = entry.path().extension().string();
        const auto begins = [&](std::string_view prefix) { return name.starts_with(prefix); };
        const bool described = extension == ".ini" && (name == "snapshot.ini" || name == "trace.ini" ||
                                                       name == "memory.ini" || begins("core_") || begins("source_"));
        const bool data = extension == ".bin" && (name == "trace.bin" || name == Images::archive_file ||
                                                  begins("trace_") || begins("code_") || begins("truth_"));
        if (described || data || name == truth_file || name == perf_map_copy || name == jitdump_copy ||
            name == capture::module_map_file || name == ".new" || name == ".trace")
            own.push_back(entry.path());
    }
    return own;
}

/// What a recording of a DPU wrote.
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

}  // namespace

void remove_dpu_recording(const fs::path& folder) {
    std::error_code error;
    for (const fs::path& path : dpu_files(folder)) fs::remove(path, error);
}

void remove_recordings(const fs::path& folder) {
    std::error_code error;
    for (const fs::path& path : recorded_files(folder)) fs::remove_all(path, error);
    fs::remove_all(folder / set_aside_folder, error);
}

bool set_recordings_aside(const fs::path& folder) {
    std::error_code error;
    const std::vector<fs::path> files = recorded_files(folder);
    fs::remove_all(folder / set_aside_folder, error);
    if (files.empty() || !fs::create_directory(folder / set_aside_folder, error)) {
        remove_recordings(folder);
        return false;
    }
    for (const fs::path& path : files) fs::rename(path, folder / set_aside_folder / path.filename(), error);
    return true;
}

void take_recordings_back(const fs::path& folder) {
    std::error_code error;
    for (const fs::path& path : recorded_files(folder)) fs::remove_all(path, error);
    for (const fs::path& path : flow_files(folder)) fs::remove_all(path, error);
    std::vector<fs::path> files;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder / set_aside_folder, error))
        files.push_back(entry.path());
    for (const fs::path& path : files) fs::rename(path, folder / path.filename(), error);
    fs::remove_all(folder / set_aside_folder, error);
}

void forget_recordings_aside(const fs::path& folder) {
    std::error_code error;
    fs::remove_all(folder / set_aside_folder, error);
}

Result<OutputLock> lock_folder(const fs::path& folder, const std::function<bool()>& holds_recording, const char* what,
                               bool force) {
    std::error_code error;
    if (fs::exists(folder, error) && !fs::is_directory(folder, error))
        return Error{Errc::usage, fmt::format("{} is no folder; name one that is new or empty", folder.string())};
    WM_RETURN_IF_ERROR(make_folder(folder));
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
