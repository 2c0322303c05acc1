#include "file_sink.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

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

Result<std::unique_ptr<FileSink>> FileSink::open(const std::string& path, const std::vector<std::string>& inputs) {
    if (path == "-") return std::unique_ptr<FileSink>(new FileSink(stdout, {}, "standard output"));
    if (const auto error = would_replace(path, inputs)) return *error;
    std::error_code none;
    const fs::path place = fs::is_symlink(path, none) ? fs::weakly_canonical(path, none) : fs::path(path);
    const auto there = fs::status(place, none);
    if (fs::is_directory(there)) return cannot_create(path, EISDIR);
    if (fs::exists(there) && !fs::is_regular_file(there)) {
        std::FILE* const file = create_file(place.string());
        if (file == nullptr) return cannot_create(path, errno);
        return std::unique_ptr<FileSink>(new FileSink(file, {}, place));
    }
    const fs::path temporary = temporary_name(place);
    std::FILE* const file = std::fopen(temporary.c_str(), "wbx");
    if (file == nullptr) return cannot_create(path, errno);
    return std::unique_ptr<FileSink>(new FileSink(file, temporary, place));
}

FileSink::~FileSink() {
    if (file_ != nullptr && file_ != stdout) std::fclose(file_);
    std::error_code none;
    if (!temporary_.empty()) fs::remove(temporary_, none);
}

void FileSink::write(Bytes bytes) {
    if (error_ == 0 && std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) error_ = errno;
}

waymark::Status FileSink::commit() {
    if (std::fflush(file_) != 0 && error_ == 0) error_ = errno;
    if (file_ != stdout && std::fclose(file_) != 0 && error_ == 0) error_ = errno;
    file_ = nullptr;
    if (error_ == 0 && !temporary_.empty()) {
        if (std::rename(temporary_.c_str(), path_.c_str()) != 0)
            error_ = errno;
        else
            temporary_.clear();
    }
    if (error_ == 0) return Nothing{};
    return Error{Errc::unreadable, fmt::format("cannot write {}: {}", path_.string(), std::strerror(error_))};
}

}  // namespace waymark::cli
