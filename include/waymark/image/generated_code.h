/// Names for code that a program generates while it runs: perf maps and jitdump files, as just-in-time compilers write
/// them for Linux perf.
///
/// A perf map (`/tmp/perf-PID.map`) has a line `START SIZE NAME` for each piece, numbers in hexadecimal. A jitdump file
/// has a header and records (perf's jitdump specification, version 1): code was loaded, with its bytes; code was moved;
/// debug information; close.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/core/types.h"
#include "waymark/image/memory_map.h"
#include "waymark/image/symbols.h"

namespace waymark::image {

/// A piece of generated code.
struct GeneratedCode {
    std::string name;
    Address address{};      ///< bit 0 (Thumb) cleared
    std::uint64_t bytes{};  ///< at least 1
    Bytes code{};           ///< its bytes, if the file has them; otherwise empty
    std::uint64_t time{};   ///< time of a jitdump record, by that file's clock
};

/// The pieces of a file in its order, which is chronological.
struct GeneratedCodeFile {
    std::vector<GeneratedCode> pieces{};
    std::uint32_t process{};  ///< process that wrote a jitdump file
    bool other_clock{};       ///< times are from a counter of the processor, not CLOCK_MONOTONIC
    /// Omitted entries, each with file and line or offset: the first 20, then the number of others.
    std::vector<std::string> problems{};
    std::shared_ptr<const void> owner{};  ///< keeps GeneratedCode::code valid
};

/// A longer file is refused: it cannot be a perf map.
inline constexpr std::uint64_t max_perf_map_bytes = std::uint64_t{256} << 20;

/// Malformed lines are omitted, with a problem. Errors: `not_found`, `unreadable`, `bad_format`: too long.
[[nodiscard]] Result<GeneratedCodeFile> read_perf_map(const std::filesystem::path& path);

/// Reads either byte order. A malformed record ends the file, with a problem. Errors: `not_found`, `unreadable`;
/// `bad_format`: it does not begin like a jitdump file of version 1.
[[nodiscard]] Result<GeneratedCodeFile> read_jitdump(const std::filesystem::path& path);

/// The name that applies at an address. Pieces do not overlap.
struct NamedPiece {
    Address address{};
    std::uint64_t bytes{};
    std::size_t from{};  ///< the index of its GeneratedCode
    friend auto operator<=>(const NamedPiece&, const NamedPiece&) = default;
};

/// For each address, the piece of code whose bytes agree best with a core's memory. If several agree equally well, or
/// bytes are not known, it is the last one.
struct NamedPieces {
    std::vector<NamedPiece> pieces{};  ///< by address
    std::size_t doubtful = 0;  ///< number of pieces in the result for which memory has other bytes than the file
    std::size_t replaced = 0;  ///< pieces without bytes that a later piece with another name replaces
};
[[nodiscard]] NamedPieces named_pieces(const std::vector<GeneratedCode>& code, const MemoryMap& memory);

}  // namespace waymark::image
