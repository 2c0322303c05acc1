/// Writes files atomically, even if the process is killed or several machines share the folder (capture/placed_file.h),
/// and computes their hashes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>
#include <utility>

#include "waymark/core/byte_sink.h"
#include "waymark/core/result.h"

namespace waymark::fleet {

/// Name and size of the written file.
struct WrittenFile {
    std::uint64_t bytes{};
    std::string hash;  ///< hash of the contents (hasher.h)
};

/// Writes a temporary file in the same folder, syncs it, renames it, and syncs the folder. An earlier file is replaced.
/// Errors: `unreadable` if it cannot be written; then nothing is left behind.
[[nodiscard]] Result<WrittenFile> write_durably(const std::filesystem::path& place,
                                                const std::function<void(ByteSink&)>& write);
[[nodiscard]] Status write_durably(const std::filesystem::path& place, std::string_view text);
/// The same without syncing: for files that may be lost if the machine crashes.
[[nodiscard]] Status replace_file(const std::filesystem::path& place, std::string_view text);

/// Size and hash of a file. Errors: `unreadable`.
[[nodiscard]] Result<WrittenFile> hash_of_file(const std::filesystem::path& path);

/// Reads a small file. Errors: `not_found`; `unreadable`, also for a file larger than `most` bytes.
[[nodiscard]] Result<std::string> read_small_file(const std::filesystem::path& path, std::uint64_t most = 16 << 20);

/// A lock for writing a job's plan or submitting it, so that all its files come from one writer. The system releases it
/// when the process ends, even if it is killed.
class FolderLock {
public:
    enum class Held : std::uint8_t { fails, waits };
    /// `usage`: another process holds the lock; the message contains `why`, the activity of that process.
    static Result<FolderLock> take(const std::filesystem::path& folder, std::string_view why, Held held = Held::fails);
    FolderLock(FolderLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
    FolderLock& operator=(FolderLock&&) = delete;
    ~FolderLock();

private:
    explicit FolderLock(int file) : file_(file) {}
    int file_;
};

/// The name of this machine, without its domain.
[[nodiscard]] std::string host_name();

}  // namespace waymark::fleet
