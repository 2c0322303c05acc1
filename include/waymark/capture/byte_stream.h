/// Reads captured bytes in constant memory: from a file, standard input, a gzip or zstd file, or several files in
/// sequence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/core/types.h"

namespace waymark::capture {

/// A source of bytes. Not thread-safe: one reader at a time.
class ByteStream {
public:
    virtual ~ByteStream() = default;

    /// Fills `into` from its front with the next bytes and returns their number; 0 means the end, also for all later
    /// calls. Fewer bytes than requested do not mean the end. A damaged or truncated compressed file first delivers
    /// everything that can be decompressed, then fails (`Errc::unreadable`), also for all later calls; the error names
    /// the file, the offset in it, and what to do. Precondition: `into` is not empty.
    [[nodiscard]] virtual Result<std::size_t> read(std::span<std::uint8_t> into) = 0;

    /// Size of the whole stream, if it is known without reading: not for standard input, pipes and compressed files.
    [[nodiscard]] virtual std::optional<std::uint64_t> size() const { return std::nullopt; }
};

/// Opens a file for reading; `-` is standard input. gzip (also of several members) and zstd (also of several frames)
/// are recognised by their first bytes, whatever the file is called, and decompressed while reading. Errors:
/// - `not_found`: there is no such file;
/// - `unreadable`: a directory, no permission, or any other refusal of the operating system;
/// - `bad_format`: the file is empty (a compressed file whose content is empty is none: its first read returns 0).
[[nodiscard]] Result<std::unique_ptr<ByteStream>> open_bytes(const std::filesystem::path& path);

/// The bytes of several files as one stream, in the given order; each may be compressed. A file is opened when it is
/// needed, so `read` returns an error of a later file after the bytes of those before it; the first is opened at once.
/// Empty files are skipped, unless all are empty. Errors: the errors of `open_bytes`, and `usage` if `paths` is empty.
[[nodiscard]] Result<std::unique_ptr<ByteStream>> concatenate(std::vector<std::filesystem::path> paths);

/// The first `most` bytes of standard input, which can be read again; fewer if it has fewer by now. Waits for the first
/// byte. Empty if it is neither a file nor a pipe.
[[nodiscard]] std::vector<std::uint8_t> peek_standard_input(std::size_t most);

/// A stream over owned bytes in memory.
[[nodiscard]] std::unique_ptr<ByteStream> from_memory(std::vector<std::uint8_t> bytes);

/// The rest of a stream as one piece of at most `limit` bytes. Errors: the errors of `read`, and `unsupported` if there
/// are more bytes than `limit`.
[[nodiscard]] Result<std::vector<std::uint8_t>> read_all(ByteStream& stream, std::uint64_t limit);

}  // namespace waymark::capture
