/// Bytes that can be read at any place: files too large for memory whose parts point at one another.
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

/// Reading is safe from several threads at once.
class ByteFile {
public:
    virtual ~ByteFile() = default;

    /// Fills `into` from the bytes at `offset` on and returns how many; fewer than asked only at the end. Errors:
    /// `unreadable`, with the offset.
    [[nodiscard]] virtual Result<std::size_t> read_at(std::uint64_t offset, std::span<std::uint8_t> into) const = 0;
    [[nodiscard]] virtual std::uint64_t size() const = 0;
    /// For messages.
    [[nodiscard]] virtual const std::string& name() const = 0;
};

/// Opens a file. What cannot be read at any place is copied to a temporary file first, which needs as much room on
/// disk: standard input (`-`), and gzip and zstd files. A damaged or cut compressed file gives what could be
/// decompressed; `damage` (if given) then holds the error. Errors: the errors of `open_bytes` (capture/byte_stream.h),
/// and `unreadable` when the temporary file cannot be written.
[[nodiscard]] Result<std::unique_ptr<ByteFile>> open_byte_file(const std::filesystem::path& path,
                                                               std::vector<Error>* damage = nullptr);

/// The beginning of a file.
struct FileHead {
    std::vector<std::uint8_t> bytes{};  ///< unpacked if the file is compressed
    /// The file itself, opened by the same call. Null: it is compressed, so it cannot be read at any place.
    std::shared_ptr<const ByteFile> file{};
};

/// Opens a file and reads its first `most` bytes; fewer: there are no more, or they cannot be read. Errors: the errors
/// of `open_bytes`.
[[nodiscard]] Result<FileHead> open_head(const std::filesystem::path& path, std::size_t most);

/// Bytes in memory, which it owns.
[[nodiscard]] std::unique_ptr<ByteFile> byte_file_from_memory(std::vector<std::uint8_t> bytes,
                                                              std::string name = "memory");

}  // namespace waymark::capture
