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
    Bytes code{};           ///< what was there, as far as the file says; empty: it does not
    std::uint64_t time{};   ///< of a jitdump file's record, by the clock of that
};

/// The pieces of a file in the order in which the file has them, which is that of time.
struct GeneratedCodeFile {
    std::vector<GeneratedCode> pieces{};
    std::uint32_t process{};  ///< that wrote a jitdump file
    bool other_clock{};       ///< times count a counter of the processor, not CLOCK_MONOTONIC
    /// What was left out, each with file and line or offset: the first 20, then how many more there were.
    std::vector<std::string> problems{};
    std::shared_ptr<const void> owner{};  ///< keeps GeneratedCode::code valid
};

/// A file longer than this is refused: it is something else.
inline constexpr std::uint64_t max_perf_map_bytes = std::uint64_t{256} << 20;

/// Lines that are no entry are left out, with a problem. Errors: `not_found`, `unreadable`, `bad_format`: too long.
[[nodiscard]] Result<GeneratedCodeFile> read_perf_map(const std::filesystem::path& path);

/// Of either byte order. What cannot be read ends the file, with a problem. Errors: `not_found`, `unreadable`;
/// `bad_format`: it does not begin as a jitdump file of version 1.
[[nodiscard]] Result<GeneratedCodeFile> read_jitdump(const std::filesystem::path& path);

/// Which name holds at an address. Pieces do not overlap.
struct NamedPiece {
    Address address{};
    std::uint64_t bytes{};
    std::size_t from{};  ///< the index of its GeneratedCode
    friend auto operator<=>(const NamedPiece&, const NamedPiece&) = default;
};

/// For each address the piece of code whose bytes agree best with what a core saw in memory; of those that agree alike,
/// and where bytes are not known, the last one.
struct NamedPieces {
    std::vector<NamedPiece> pieces{};  ///< by address
    std::size_t doubtful = 0;          ///< pieces of the answer of which memory holds other bytes than the file says
    std::size_t replaced = 0;          ///< pieces without bytes that begin where a later one has another name
};
[[nodiscard]] NamedPieces named_pieces(const std::vector<GeneratedCode>& code, const MemoryMap& memory);

}  // namespace waymark::image
