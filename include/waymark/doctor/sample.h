/// The pieces of a buffer to examine: a small buffer as a whole, or some pieces of a large one, from its beginning to
/// its end.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "waymark/capture/capture.h"
#include "waymark/core/result.h"
#include "waymark/core/types.h"

namespace waymark::doctor {

/// Adjacent bytes.
struct Piece {
    Offset first;
    std::vector<std::uint8_t> bytes;
};

struct BufferSample {
    std::vector<Piece> pieces;  ///< in order; whole frames, if the buffer begins with one
    std::optional<std::uint64_t>
        size_bytes;  ///< size of the buffer; absent: a stream or compressed file that was not read to its end
    std::optional<Error> damage;  ///< the error that ended reading early
    [[nodiscard]] std::uint64_t bytes() const;
    /// Whether nothing was omitted.
    [[nodiscard]] bool whole() const { return size_bytes == bytes(); }
};

/// Number of pieces from a buffer larger than `most_bytes`: its beginning, its end, and others between them at equal
/// distances.
inline constexpr unsigned sample_pieces = 16;
inline constexpr std::uint64_t sample_bytes = std::uint64_t{16} << 20;

/// Reads at most `most_bytes` from the files, as one stream. From files without random access (standard input,
/// compressed files) it takes the first `most_bytes`. Errors: the errors of `capture::open_bytes`.
[[nodiscard]] Result<BufferSample> take_sample(const std::vector<std::filesystem::path>& files,
                                               std::uint64_t most_bytes = sample_bytes);

/// The same for a buffer; in one with parts, each part that begins anew is a piece.
[[nodiscard]] Result<BufferSample> take_sample(const capture::Buffer& buffer, std::uint64_t most_bytes = sample_bytes);

}  // namespace waymark::doctor
