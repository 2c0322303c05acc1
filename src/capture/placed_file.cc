#include "waymark/capture/placed_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

#include "waymark/core/file_error.h"

namespace waymark::capture {

namespace fs = std::filesystem;

namespace {

// ---- files that a signal handler removes

/// Names in use. A signal handler may read them at any time, so a name is entered before its file is created and
/// removed after the file is.
std::array<std::atomic<const char*>, 64> names_in_use;
static_assert(std::atomic<const char*>::is_always_lock_free);

/// Removes a file, or a folder of files and empty folders. Uses only functions that are allowed in a signal handler.
void remove_now(const char* path) {
    if (::unlink(path) == 0 || errno != EISDIR) return;
    // Another thread may still be writing a file into it.
    for (unsigned tries = 0; tries < 100; ++tries) {
        const int folder = ::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (folder < 0) return;
        struct Entry {
            std::uint64_t inode;
            std::int64_t next;
            std::uint16_t bytes;
            std::uint8_t type;
            char name[1];
        };
        alignas(Entry) char entries[4096];
        for (long count = 0; (count = ::syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0;)
            for (long at = 0; at < count;) {
                Entry head{};
                std::memcpy(&head, entries + at, sizeof head);
                if (const char* const name = entries + at + offsetof(Entry, name); ::unlinkat(folder, name, 0) != 0)
                    ::unlinkat(folder, name, AT_REMOVEDIR);
                at += head.bytes;
            }
        ::close(folder);
        if (::rmdir(path) == 0 || errno != ENOTEMPTY) return;
    }
}

extern "C" void remove_names_in_use(int signal) {
    for (const auto& name : names_in_use)
        if (const char* const path = name.load(); path != nullptr) remove_now(path);
    // The handler was reset when it was entered: the signal ends the process, as its parent expects.
    ::raise(signal);
}

void remove_on_signals() {
    static const bool once = [] {
        for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
            struct sigaction now {};
            ::sigaction(signal, nullptr, &now);
            if (now.sa_handler != SIG_DFL) continue;  // ignored, as under nohup, or handled by other code
            now.sa_handler = remove_names_in_use;
            now.sa_flags = static_cast<int>(SA_RESETHAND);
            ::sigaction(signal, &now, nullptr);
        }
        return true;
    }();
    static_cast<void>(once);
}

// ---- files left behind by a killed process

/// The process that created `name`, if it is a temporary name for `place`; otherwise 0.
pid_t maker_of(std::string_view name, const std::string& place) {
    constexpr std::string_view end = ".part";
    if (!name.starts_with(place + ".") || !name.ends_with(end)) return 0;
    name.remove_prefix(place.size() + 1);
    if (name.size() <= end.size()) return 0;
    name.remove_suffix(end.size());
    const std::size_t dash = name.find('-');
    if (dash == name.npos || dash == 0 || dash + 1 == name.size() || dash > 9 ||
        name.find_first_not_of("0123456789-") != name.npos || name.find('-', dash + 1) != name.npos)
        return 0;
    return static_cast<pid_t>(std::stol(std::string(name.substr(0, dash))));
}

/// Whether it is a file, or a folder that contains only files, links and empty folders.
bool has_our_shape(const fs::path& path) {
    std::error_code error;
    const auto status = fs::symlink_status(path, error);
    if (fs::is_regular_file(status)) return true;
    if (!fs::is_directory(status)) return false;
    for (const fs::directory_entry& entry : fs::directory_iterator(path, error))
        if (!entry.is_symlink(error) && !entry.is_regular_file(error) &&
            !(entry.is_directory(error) && fs::is_empty(entry.path(), error)))
            return false;
    return !error;
}

}  // namespace

/// Finds temporary files whose process is gone: no process of this machine has its number, and nobody holds the lock,
/// which a process of another container or machine would.
void TemporaryName::remove_leftovers(const fs::path& place) {
    std::error_code error;
    const fs::path folder = place.has_parent_path() ? place.parent_path() : fs::path(".");
    std::vector<fs::path> stale;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
        const pid_t maker = maker_of(entry.path().filename().string(), place.filename().string());
        if (maker <= 0 || ::kill(maker, 0) == 0 || errno != ESRCH || !has_our_shape(entry.path())) continue;
        const int file = ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (file < 0) continue;
        if (::flock(file, LOCK_EX | LOCK_NB) == 0) stale.push_back(entry.path());
        ::close(file);
    }
    for (const fs::path& path : stale) fs::remove_all(path, error);
}

TemporaryName::TemporaryName(const fs::path& place, Leftovers leftovers) {
    remove_on_signals();
    if (leftovers == Leftovers::remove) remove_leftovers(place);
    std::error_code none;
    for (unsigned i = 0; path_.empty() || fs::exists(fs::symlink_status(path_, none)); ++i) {
        path_ = place;
        path_ += fmt::format(".{}-{}.part", ::getpid(), i);
    }
    for (std::size_t i = 0; i < names_in_use.size() && slot_ < 0; ++i) {
        const char* expected = nullptr;
        if (names_in_use[i].compare_exchange_strong(expected, path_.c_str())) slot_ = static_cast<int>(i);
    }
}

TemporaryName::TemporaryName(TemporaryName&& other) noexcept { *this = std::move(other); }

TemporaryName& TemporaryName::operator=(TemporaryName&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(lock_, other.lock_);
    std::swap(slot_, other.slot_);
    // A short string moves with its object, so its address changes.
    if (slot_ >= 0) names_in_use[static_cast<std::size_t>(slot_)] = path_.c_str();
    if (other.slot_ >= 0) names_in_use[static_cast<std::size_t>(other.slot_)] = other.path_.c_str();
    return *this;
}

TemporaryName::~TemporaryName() { release(); }

void TemporaryName::lock() {
    if (lock_ < 0) lock_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    if (lock_ >= 0) static_cast<void>(::flock(lock_, LOCK_EX | LOCK_NB));
}

void TemporaryName::release() {
    if (slot_ >= 0) names_in_use[static_cast<std::size_t>(slot_)] = nullptr;
    if (lock_ >= 0) ::close(lock_);
    slot_ = lock_ = -1;
    path_.clear();
}

namespace {

/// Whether a file is an input, or a file of a capture folder, under any name.
bool is_part_of(const fs::path& file, const fs::path& input) {
    std::error_code none;
    if (fs::equivalent(file, input, none)) return true;
    if (!fs::is_regular_file(file, none)) return false;
    // A folder may be named by its snapshot.ini or dpu.ini.
    fs::path folder = input;
    if (input.extension() == ".ini" && fs::is_regular_file(input, none))
        folder = input.has_parent_path() ? input.parent_path() : fs::path(".");
    if (!fs::is_directory(folder, none)) return false;
    // Other files in the folder, such as an earlier report, are not inputs.
    constexpr unsigned most_looked_at = 4096;
    unsigned looked_at = 0;
    for (auto at = fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied, none);
         !none && at != fs::recursive_directory_iterator() && looked_at < most_looked_at;
         at.increment(none), ++looked_at) {
        const fs::path& part = at->path();
        const fs::path kind = part.extension();
        const bool of_capture = kind == ".ini" || kind == ".bin" || kind == ".elf" || part.filename() == "truth.txt";
        std::error_code ignored;
        if (of_capture && fs::equivalent(file, part, ignored)) return true;
    }
    return false;
}

/// Like `fopen(path, "wb")`, but fails with ENXIO if the path is a named pipe without a reader.
std::FILE* create_file(const std::string& path) {
    // Opening a named pipe without a reader would block.
    if (std::error_code none; fs::is_fifo(path, none)) {
        const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
        if (descriptor < 0) return nullptr;
        ::fcntl(descriptor, F_SETFL, 0);
        return ::fdopen(descriptor, "wb");
    }
    return std::fopen(path.c_str(), "wb");
}

std::string by_descriptor(int file) { return fmt::format("/proc/self/fd/{}", file); }

/// An unnamed file in a folder, with the mode of any other new file; null if the file system does not support unnamed
/// files.
std::FILE* open_unnamed(const fs::path& folder) {
    const int file = ::open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    if (file < 0) return nullptr;
    // linkat gives the file its name through this path.
    std::error_code none;
    std::FILE* const stream = fs::exists(by_descriptor(file), none) ? ::fdopen(file, "wb") : nullptr;
    if (stream == nullptr) ::close(file);
    return stream;
}

}  // namespace

std::optional<Error> would_replace(const std::string& path, const std::vector<std::string>& inputs) {
    if (std::none_of(inputs.begin(), inputs.end(), [&](const std::string& input) { return is_part_of(path, input); }))
        return {};
    return Error{Errc::usage, fmt::format("{} is the input; give another file for the output", path)};
}

Result<std::unique_ptr<PlacedFile>> PlacedFile::open(const std::string& path, const std::vector<std::string>& inputs,
                                                     Placing how) {
    const auto made = [](std::FILE* file, TemporaryName temporary, fs::path place) {
        return std::unique_ptr<PlacedFile>(new PlacedFile(file, std::move(temporary), std::move(place)));
    };
    if (path.empty() || path == "-") return made(stdout, {}, {});
    // The operating system would use only the part before the zero byte.
    if (path.find('\0') != path.npos) return cannot_create(path, EINVAL);
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
    // A file without write permission is not replaced either.
    if (fs::exists(there) && ::access(place.c_str(), W_OK) != 0) return cannot_create(path, errno);
    std::unique_ptr<PlacedFile> out;
    if (std::FILE* const unnamed = open_unnamed(place.parent_path()); unnamed != nullptr) {
        out = made(unnamed, {}, place);
        out->unnamed_ = true;
    } else {
        TemporaryName temporary(place, how.leftovers);
        std::FILE* file = std::fopen(temporary.path().c_str(), "wbxe");
        // A process of another machine may have the same number and have created the name first.
        for (unsigned tries = 0; file == nullptr && errno == EEXIST && tries < 100; ++tries) {
            temporary = TemporaryName(place, TemporaryName::Leftovers::leave);
            file = std::fopen(temporary.path().c_str(), "wbxe");
        }
        if (file == nullptr && (errno == EACCES || errno == EPERM) && fs::exists(there)) return in_place();
        if (file == nullptr) return cannot_create(path, errno);
        temporary.lock();
        out = made(file, std::move(temporary), place);
    }
    out->how_ = how;
    if (fs::exists(there))
        static_cast<void>(::fchmod(::fileno(out->file_), static_cast<mode_t>(there.permissions() & fs::perms::all)));
    return out;
}

PlacedFile::~PlacedFile() {
    if (file_ != nullptr && file_ != stdout) std::fclose(file_);
    std::error_code none;
    if (!temporary_.empty()) fs::remove(temporary_.path(), none);
}

int PlacedFile::commit(int error) {
    if (std::fflush(file_) != 0 && error == 0) error = errno;
    if (error == 0 && how_.synced && file_ != stdout && ::fsync(::fileno(file_)) != 0) error = errno;
    if (error == 0 && unnamed_) {
        TemporaryName name(place_, how_.leftovers);
        // The lock shows others that the temporary name is in use.
        static_cast<void>(::flock(::fileno(file_), LOCK_EX | LOCK_NB));
        if (::linkat(AT_FDCWD, by_descriptor(::fileno(file_)).c_str(), AT_FDCWD, name.path().c_str(),
                     AT_SYMLINK_FOLLOW) != 0)
            error = errno;
        else
            temporary_ = std::move(name);
    }
    if (file_ != stdout && std::fclose(file_) != 0 && error == 0) error = errno;
    file_ = nullptr;
    if (error != 0 || temporary_.empty()) return error;
    if (std::rename(temporary_.path().c_str(), place_.c_str()) != 0) return errno;
    temporary_.release();
    if (how_.synced) {
        // Some network file systems cannot sync a folder, and do not need it.
        const int folder =
            ::open(place_.has_parent_path() ? place_.parent_path().c_str() : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (folder >= 0) {
            static_cast<void>(::fsync(folder));
            ::close(folder);
        }
    }
    return 0;
}

Result<std::unique_ptr<FileSink>> FileSink::open(const std::string& path, const std::vector<std::string>& inputs) {
    WM_ASSIGN_OR_RETURN(auto file, PlacedFile::open(path, inputs));
    return std::unique_ptr<FileSink>(new FileSink(std::move(file), path == "-" ? "standard output" : path));
}

void FileSink::write(Bytes bytes) {
    if (error_ == 0 && std::fwrite(bytes.data(), 1, bytes.size(), file_->file()) != bytes.size()) error_ = errno;
}

Status FileSink::commit() {
    if (const int error = file_->commit(error_); error != 0)
        return Error{Errc::unreadable, fmt::format("cannot write {}: {}", path_, reason(error))};
    return Nothing{};
}

Result<std::unique_ptr<PlacedFolder>> PlacedFolder::open(const std::string& path) {
    if (path.find('\0') != path.npos) return cannot_create(path, EINVAL);
    std::error_code error;
    fs::path place = fs::weakly_canonical(path, error);
    if (error) return cannot_create(path, error.value());
    if (place.filename().empty()) place = place.parent_path();
    if (fs::exists(place, error) && !fs::is_directory(place, error))
        return Error{Errc::usage, fmt::format("{} is not a folder", path)};
    TemporaryName temporary(place);
    if (!fs::create_directory(temporary.path(), error)) return cannot_create(place, error.value());
    temporary.lock();
    return std::unique_ptr<PlacedFolder>(new PlacedFolder(std::move(temporary), std::move(place), path));
}

PlacedFolder::~PlacedFolder() {
    std::error_code none;
    if (!temporary_.empty()) fs::remove_all(temporary_.path(), none);
}

Error PlacedFolder::as_placed(Error error) const {
    const std::string temporary = folder().string();
    if (const std::size_t at = error.message.find(temporary); at != error.message.npos)
        error.message.replace(at, temporary.size(), given_);
    return error;
}

Status PlacedFolder::commit_new() {
    if (std::rename(temporary_.path().c_str(), place_.c_str()) == 0) {
        temporary_.release();
        return Nothing{};
    }
    if (errno == ENOTEMPTY || errno == EEXIST)
        return Error{Errc::usage, fmt::format("{} exists and is not empty; name another folder", place_.string())};
    return Error{Errc::unreadable, fmt::format("cannot write {}: {}", place_.string(), reason(errno))};
}

Status PlacedFolder::commit(const std::string& last, const std::function<bool(const fs::path& name)>& of_earlier) {
    const auto failed = [&](int error) {
        return Error{Errc::unreadable, fmt::format("cannot write {}: {}", place_.string(), reason(error))};
    };
    // Only an empty or absent folder is replaced this way.
    const fs::path temporary = temporary_.path();
    if (std::rename(temporary.c_str(), place_.c_str()) == 0) {
        temporary_.release();
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
    // The temporary name then refers to the earlier folder, which the destructor of this object removes.
    if (!of_others && ::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, place_.c_str(), RENAME_EXCHANGE) == 0)
        return Nothing{};
    for (const fs::directory_entry& entry : fs::directory_iterator(temporary, error))
        now.push_back(entry.path().filename());
    if (error) return failed(error.value());
    fs::remove(place_ / last, error);
    if (error) return failed(error.value());
    std::sort(now.begin(), now.end(),
              [&](const fs::path& a, const fs::path& b) { return std::pair(a == last, a) < std::pair(b == last, b); });
    for (const fs::path& name : earlier)
        if (std::find(now.begin(), now.end(), name) == now.end() && name != last) fs::remove(place_ / name, error);
    for (const fs::path& name : now) {
        fs::rename(temporary / name, place_ / name, error);
        if (error) return failed(error.value());
    }
    return Nothing{};
}

}  // namespace waymark::capture
