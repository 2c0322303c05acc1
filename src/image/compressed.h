/// Compressed tables of symbols (.gnu_debugdata) and kernel modules (.ko.xz, .ko.zst, .ko.gz).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "waymark/core/types.h"

namespace waymark::image {

/// More than the size of any module or table of symbols.
inline constexpr std::size_t most_decompressed = std::size_t{256} << 20;
/// When unpacked modules in use take this much memory, no other module is unpacked.
inline constexpr std::size_t most_unpacked = std::size_t{768} << 20;
/// The most recently used copies stay in memory while their sum is no larger than this.
inline constexpr std::size_t most_kept = std::size_t{64} << 20;

/// Unpacks an xz, zstd or gzip file, recognised by its first bytes. Empty if the file has another format, is damaged,
/// or unpacks to more than `most_decompressed`.
[[nodiscard]] std::vector<std::uint8_t> decompressed(Bytes packed);

}  // namespace waymark::image
