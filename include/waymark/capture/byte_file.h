/// Bytes with random access: for files that are too large for memory and have references between their parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/core/types.h"

namespace waymark::capture {

/// Reading is thread-safe.
class ByteFile {
public:
    virtual ~ByteFile() = default;

    /// Fills `into` with the bytes from `offset` on and returns their number; fewer than requested only at the end.
    /// Errors: `unreadable`, with the offset.
    [[nodiscard]] virtual Result<std::size_t> read_at(std::uint64_t offset, std::span<std::uint8_t> into) const = 0;
    [[nodiscard]] virtual std::uint64_t size() const = 0;
    /// For messages.
    [[nodiscard]] virtual const std::string& name() const = 0;
};

/// Opens a file. A file without random access is first copied to a temporary file, which needs as much room on disk:
/// standard input (`-`), and gzip and zstd files. For a damaged or truncated compressed file, the result is what could
/// be decompressed; `damage` (if given) then has the error. Errors: the errors of `open_bytes` (capture/byte_stream.h),
/// and `unreadable` if the temporary file cannot be written.
[[nodiscard]] Result<std::unique_ptr<ByteFile>> open_byte_file(const std::filesystem::path& path,
                                                               std::vector<Error>* damage = nullptr);

/// The beginning of a file.
struct FileHead {
    std::vector<std::uint8_t> bytes{};  ///< unpacked if the file is compressed
    /// The file itself, opened by the same call. Null if it is compressed, so that it has no random access.
    std::shared_ptr<const ByteFile> file{};
};

/// Opens a file and reads its first `most` bytes; fewer if the file is shorter or cannot be read further. Errors: the
/// errors of `open_bytes`.
[[nodiscard]] Result<FileHead> open_head(const std::filesystem::path& path, std::size_t most);

/// Owned bytes in memory.
[[nodiscard]] std::unique_ptr<ByteFile> byte_file_from_memory(std::vector<std::uint8_t> bytes,
                                                              std::string name = "memory");

}  // namespace waymark::capture
