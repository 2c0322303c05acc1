/// Which files were mapped, where and when: the base for looking up names of addresses in a trace. The same for every
/// unit. A folder stores it as `maps.txt` (src/capture/README.md describes the format).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/core/types.h"

namespace waymark::capture {

struct Problem;
class FileAccess;

/// A stretch [address, address + bytes) of a process's memory with the contents of a file, from one time to another.
struct Module {
    std::uint32_t process{};               ///< its process; 0: the only one, or not known
    Address address{};                     ///< address of the first byte
    std::uint64_t bytes{};                 ///< at least 1
    std::uint64_t offset{};                ///< offset of the first byte in the file
    std::string file{};                    ///< path on the recorded machine; empty: the code is in no file
    std::vector<std::uint8_t> build_id{};  ///< of the file; empty: it has none
    std::uint64_t from{};                  ///< time of mapping, by ModuleMap::clock
    std::optional<std::uint64_t> to{};     ///< time of unmapping or replacement; absent: none
    /// For a kernel module: offset of its first section of code in its memory, if the recorder states it.
    std::optional<std::uint64_t> code_offset{};
    friend bool operator==(const Module&, const Module&) = default;

    [[nodiscard]] bool holds(Address a) const { return a >= address && a - address < bytes; }
    [[nodiscard]] bool overlaps(const Module& other) const {
        return process == other.process && (holds(other.address) || other.holds(address));
    }
};

/// A period in which a source traced.
struct TracedTime {
    std::string source;
    std::uint64_t from{};
    std::optional<std::uint64_t> to{};  ///< absent: to the end
    friend bool operator==(const TracedTime&, const TracedTime&) = default;
};

/// The thread (or core) that a source traced. Sources of one thread traced it one after another, in the listed order:
/// `waymark record` begins a new source where code changed, and the thread continues in it.
struct TracedThread {
    std::uint32_t thread{};
    std::string source;
    friend bool operator==(const TracedThread&, const TracedThread&) = default;
};

/// A file with names of generated code, in the same folder as the map.
struct GeneratedNames {
    enum class Format : std::uint8_t { perf_map, jitdump } format{};
    std::string file;  ///< its name in the folder
    friend bool operator==(const GeneratedNames&, const GeneratedNames&) = default;
};

/// A copy in the folder of a mapped file.
struct CopiedFile {
    std::string copy;                      ///< its name in the folder, without blanks
    std::vector<std::uint8_t> build_id{};  ///< of the file; empty: it has none
    std::string file;                      ///< path on the recorded machine
    friend bool operator==(const CopiedFile&, const CopiedFile&) = default;
};

/// The units in which a map counts time.
inline constexpr std::string_view instructions_clock = "instructions";  ///< instructions of all threads together
/// Bytes of trace in the buffer's file at that time: the offset of the next trace.
inline constexpr std::string_view trace_bytes_clock = "trace-bytes";

struct ModuleMap {
    std::string clock{};                ///< the unit of times: one of the clocks above
    std::vector<Module> modules{};      ///< in order of mapping
    std::vector<TracedTime> sources{};  ///< unlisted sources traced all the time
    std::vector<TracedThread> threads{};
    std::vector<GeneratedNames> names{};
    std::vector<CopiedFile> copies{};
    friend bool operator==(const ModuleMap&, const ModuleMap&) = default;

    [[nodiscard]] bool empty() const { return modules.empty(); }
    /// Whether there is something to write. Also true for sources that continue others, even if no file was mapped.
    [[nodiscard]] bool says_something() const { return !modules.empty() || !names.empty() || threads.size() > 1; }
    /// The source that traced the same thread before this one; empty if there is none.
    [[nodiscard]] std::string_view before(std::string_view source) const;
    /// Indices of the modules that were mapped at some time while a source traced. Waymark's own recordings have at
    /// most one of them at each address of a process.
    [[nodiscard]] std::vector<std::size_t> seen_by(std::string_view source) const;
};

/// The name of the file in a capture folder.
inline constexpr std::string_view module_map_file = "maps.txt";
/// The version of the format that is written; readers refuse other versions.
inline constexpr unsigned module_map_version = 1;
/// A longer file is refused: it cannot be a map.
inline constexpr std::uint64_t max_module_map_bytes = std::uint64_t{64} << 20;

/// The text of `maps.txt`. Reading it gives an equal map.
[[nodiscard]] std::string to_text(const ModuleMap& map);
/// Reads that text. A malformed line is omitted and becomes a problem with `file` and its line number; after 20 of
/// them, further ones are counted. A text of another version is not read, and gives a problem.
[[nodiscard]] ModuleMap read_module_map(std::string_view text, const std::filesystem::path& file,
                                        std::vector<Problem>& problems);

/// The same for the file in a capture folder; an empty map if there is none.
[[nodiscard]] ModuleMap read_module_map(const std::filesystem::path& folder, const FileAccess& files,
                                        std::vector<Problem>& problems);

/// Hexadecimal, two digits for each byte: the notation of build IDs.
[[nodiscard]] std::string hex_text(const std::vector<std::uint8_t>& bytes);

}  // namespace waymark::capture
