#include "file_sink.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "output.h"
#include "waymark/core/file_error.h"

namespace waymark::cli {

namespace fs = std::filesystem;

fs::path temporary_name(const fs::path& path) {
    std::error_code none;
    for (unsigned i = 0;; ++i) {
        fs::path name = path;
        name += fmt::format(".{}-{}.part", ::getpid(), i);
        if (!fs::exists(fs::symlink_status(name, none))) return name;
    }
}

namespace {

std::string by_descriptor(int file) { return fmt::format("/proc/self/fd/{}", file); }

/// A file without a name in a folder, and its mode as of any other new file; null where the file system has none such.
std::FILE* open_unnamed(const fs::path& folder) {
    const int file = ::open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    if (file < 0) return nullptr;
    // It gets its name through here.
    std::error_code none;
    std::FILE* const stream = fs::exists(by_descriptor(file), none) ? ::fdopen(file, "wb") : nullptr;
    if (stream == nullptr) ::close(file);
    return stream;
}

}  // namespace

Result<std::unique_ptr<PlacedFile>> PlacedFile::open(const std::string& path, const std::vector<std::string>& inputs) {
    const auto made = [](std::FILE* file, fs::path temporary, fs::path place) {
        return std::unique_ptr<PlacedFile>(new PlacedFile(file, std::move(temporary), std::move(place)));
    };
    if (path.empty() || path == "-") return made(stdout, {}, {});
    if (const auto error = would_replace(path, inputs)) return *error;
    std::error_code none;
    const fs::path place = fs::is_symlink(path, none) ? fs::weakly_canonical(path, none) : fs::path(path);
    const auto there = fs::status(place, none);
    if (fs::is_directory(there)) return cannot_create(path, EISDIR);
    const auto in_place = [&]() -> Result<std::unique_ptr<PlacedFile>> {
        std::FILE* const file = create_file(place.string());
        if (file == nullptr) return cannot_create(path, errno);
        return made(file, {}, {});
    };
    if (fs::exists(there) && !fs::is_regular_file(there)) return in_place();
    // A file that nobody may write is not replaced either.
    if (fs::exists(there) && ::access(place.c_str(), W_OK) != 0) return cannot_create(path, errno);
    std::unique_ptr<PlacedFile> out;
    if (std::FILE* const unnamed = open_unnamed(place.parent_path()); unnamed != nullptr) {
        out = made(unnamed, {}, place);
        out->unnamed_ = true;
    } else {
        fs::path temporary = temporary_name(place);
        std::FILE* const file = std::fopen(temporary.c_str(), "wbxe");
        if (file == nullptr && (errno == EACCES || errno == EPERM) && fs::exists(there)) return in_place();
        if (file == nullptr) return cannot_create(path, errno);
        out = made(file, std::move(temporary), place);
    }
    if (fs::exists(there))
        static_cast<void>(::fchmod(::fileno(out->file_), static_cast<mode_t>(there.permissions() & fs::perms::all)));
    return out;
}

PlacedFile::~PlacedFile() {
    if (file_ != nullptr && file_ != stdout) std::fclose(file_);
    std::error_code none;
    if (!temporary_.empty()) fs::remove(temporary_, none);
}

int PlacedFile::commit(int error) {
    if (std::fflush(file_) != 0 && error == 0) error = errno;
    if (error == 0 && unnamed_) {
        fs::path name = temporary_name(place_);
        if (::linkat(AT_FDCWD, by_descriptor(::fileno(file_)).c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) != 0)
            error = errno;
        else
            temporary_ = std::move(name);
    }
    if (file_ != stdout && std::fclose(file_) != 0 && error == 0) error = errno;
    file_ = nullptr;
    if (error != 0 || temporary_.empty()) return error;
    if (std::rename(temporary_.c_str(), place_.c_str()) != 0) return errno;
    temporary_.clear();
    return 0;
}

Result<std::unique_ptr<FileSink>> FileSink::open(const std::string& path, const std::vector<std::string>& inputs) {
    WM_ASSIGN_OR_RETURN(auto file, PlacedFile::open(path, inputs));
    return std::unique_ptr<FileSink>(new FileSink(std::move(file), path == "-" ? "standard output" : path));
}

void FileSink::write(Bytes bytes) {
    if (error_ == 0 && std::fwrite(bytes.data(), 1, bytes.size(), file_->file()) != bytes.size()) error_ = errno;
}

waymark::Status FileSink::commit() {
    if (const int error = file_->commit(error_); error != 0)
        return Error{Errc::unreadable, fmt::format("cannot write {}: {}", path_, reason(error))};
    return Nothing{};
}

Result<std::unique_ptr<PlacedFolder>> PlacedFolder::open(const std::string& path) {
    std::error_code error;
    fs::path place = fs::weakly_canonical(path, error);
    if (error) return cannot_create(path, error.value());
    if (place.filename().empty()) place = place.parent_path();
    if (fs::exists(place, error) && !fs::is_directory(place, error))
        return Error{Errc::usage, fmt::format("{} is no folder", path)};
    if (const fs::path around = place.parent_path(); !around.empty()) fs::create_directories(around, error);
    if (error) return cannot_create(path, error.value());
    const fs::path temporary = temporary_name(place);
    if (!fs::create_directory(temporary, error)) return cannot_create(path, error.value());
    return std::unique_ptr<PlacedFolder>(new PlacedFolder(temporary, std::move(place)));
}

PlacedFolder::~PlacedFolder() {
    std::error_code none;
    if (!temporary_.empty()) fs::remove_all(temporary_, none);
}

waymark::Status PlacedFolder::commit(const std::string& last,
                                     const std::function<bool(const fs::path& name)>& of_earlier) {
    const auto failed = [&](int error) {
        return Error{Errc::unreadable, fmt::format("cannot write {}: {}", place_.string(), reason(error))};
    };
    // Only what is empty, or not there, is replaced so.
    if (std::rename(temporary_.c_str(), place_.c_str()) == 0) {
        temporary_.clear();
        return Nothing{};
    }
    if (errno != ENOTEMPTY && errno != EEXIST) return failed(errno);
    std::error_code error;
    std::vector<fs::path> earlier, now;
    bool of_others = false;
    for (const fs::directory_entry& entry : fs::directory_iterator(place_, error))
        (of_earlier(entry.path().filename()) ? earlier.push_back(entry.path().filename())
                                             : static_cast<void>(of_others = true));
    if (error) return failed(error.value());
    // What the folder's temporary name then holds is the earlier one, which goes with this object.
    if (!of_others && ::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, place_.c_str(), RENAME_EXCHANGE) == 0)
        return Nothing{};
    for (const fs::directory_entry& entry : fs::directory_iterator(temporary_, error))
        now.push_back(entry.path().filename());
    if (error) return failed(error.value());
    fs::remove(place_ / last, error);
    if (error) return failed(error.value());
    std::sort(now.begin(), now.end(),
              [&](const fs::path& a, const fs::path& b) { return std::pair(a == last, a) < std::pair(b == last, b); });
    for (const fs::path& name : earlier)
        if (std::find(now.begin(), now.end(), name) == now.end() && name != last) fs::remove(place_ / name, error);
    for (const fs::path& name : now) {
        fs::rename(temporary_ / name, place_ / name, error);
        if (error) return failed(error.value());
    }
    return Nothing{};
}

}  // namespace waymark::cli
