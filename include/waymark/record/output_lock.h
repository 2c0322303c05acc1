/// Keeps two recordings from writing into one place. The lock is the kernel's (flock): it is gone when the process that
/// holds it ends in any way, and it leaves no file in the folder.
#pragma once

#include <filesystem>
#include <utility>

#include "waymark/core/result.h"

namespace waymark::record {

class OutputLock {
public:
    /// Locks an existing folder. Errors: `usage`: another recording writes there; `unreadable`: it cannot be opened.
    /// Where a file system has no locks, none is taken.
    [[nodiscard]] static Result<OutputLock> of_folder(const std::filesystem::path& folder);
    /// Locks a folder, which is made if it does not exist. The process that holds the lock removes the folder. `path`:
    /// the output, which messages name. Errors as above.
    [[nodiscard]] static Result<OutputLock> of_new_folder(const std::filesystem::path& folder,
                                                          const std::filesystem::path& path);

    OutputLock() = default;
    OutputLock(OutputLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
    OutputLock& operator=(OutputLock&& other) noexcept {
        std::swap(file_, other.file_);
        return *this;
    }
    ~OutputLock();

private:
    explicit OutputLock(int file) : file_(file) {}
    [[nodiscard]] static Status take(int file, const std::filesystem::path& path);
    int file_ = -1;
};

}  // namespace waymark::record
