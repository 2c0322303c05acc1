#include "waymark/record/files.h"

#include <fmt/format.h>

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

void remove_flow_recording(const fs::path& folder) {
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
    for (const fs::path& path : own) fs::remove_all(path, error);
}

}  // namespace

void remove_dpu_recording(const fs::path& folder) {
    std::error_code error;
    for (const auto& name : {std::string(capture::dpu_ini), std::string(dpu_buffer_file), std::string(dpu_nexus_file),
                             std::string(truth_file), std::string(capture::module_map_file)})
        fs::remove(folder / name, error);
    for (unsigned i = 0; fs::remove(folder / fmt::format("{}{}.elf", dpu_image_prefix, i), error); ++i) {
    }
}

void remove_recordings(const fs::path& folder) {
    std::error_code error;
    if (fs::exists(folder / truth_file, error)) remove_flow_recording(folder);
    if (fs::exists(folder / capture::dpu_ini, error)) remove_dpu_recording(folder);
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
