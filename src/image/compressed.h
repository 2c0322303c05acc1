/// Compressed tables of symbols (.gnu_debugdata) and kernel modules (.ko.xz, .ko.zst, .ko.gz).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "waymark/core/types.h"

namespace waymark::image {

/// More than any module and any table of symbols has.
inline constexpr std::size_t most_decompressed = std::size_t{256} << 20;
/// Once the compressed modules in use take as much memory, no other is unpacked.
inline constexpr std::size_t most_unpacked = std::size_t{768} << 20;
/// The copies that were used last stay in memory while they take no more than this together.
inline constexpr std::size_t most_kept = std::size_t{64} << 20;

/// The contents of an xz, zstd or gzip file, as its first bytes say; empty: the file is of another format, damaged,
/// or holds more than `most_decompressed`.
[[nodiscard]] std::vector<std::uint8_t> decompressed(Bytes packed);

}  // namespace waymark::image
