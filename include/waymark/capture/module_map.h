/// Which files were mapped where, and when: what names for the addresses of a trace are looked up by. The same for
/// every unit. A folder holds it as `maps.txt` (src/capture/README.md describes the format).
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
    std::uint32_t process{};               ///< the process it belongs to; 0: the only one, or not known
    Address address{};                     ///< of the first byte
    std::uint64_t bytes{};                 ///< at least 1
    std::uint64_t offset{};                ///< in the file, of the first byte
    std::string file{};                    ///< as the recorded machine called it; empty: no file holds this code
    std::vector<std::uint8_t> build_id{};  ///< of the file; empty: it has none
    std::uint64_t from{};                  ///< the time it was mapped, by ModuleMap::clock
    std::optional<std::uint64_t> to{};     ///< the time it was unmapped or replaced; absent: it never was
    /// Of a kernel module: where its first section of code begins in its memory, as far as the recorder says so.
    std::optional<std::uint64_t> code_offset{};
    friend bool operator==(const Module&, const Module&) = default;

    [[nodiscard]] bool holds(Address a) const { return a >= address && a - address < bytes; }
    [[nodiscard]] bool overlaps(const Module& other) const {
        return process == other.process && (holds(other.address) || other.holds(address));
    }
};

/// When a source traced.
struct TracedTime {
    std::string source;
    std::uint64_t from{};
    std::optional<std::uint64_t> to{};  ///< absent: to the end
    friend bool operator==(const TracedTime&, const TracedTime&) = default;
};

/// Which thread (or core) a source traced. Sources of one thread traced it one after another, in the order in which
/// they are listed: `waymark record` begins a new source where code changed, and the thread goes on in it.
struct TracedThread {
    std::uint32_t thread{};
    std::string source;
    friend bool operator==(const TracedThread&, const TracedThread&) = default;
};

/// A file with names of code that the program generated, beside the map.
struct GeneratedNames {
    enum class Format : std::uint8_t { perf_map, jitdump } format{};
    std::string file;  ///< its name in the folder
    friend bool operator==(const GeneratedNames&, const GeneratedNames&) = default;
};

/// A file in the folder with the contents of one that was mapped.
struct CopiedFile {
    std::string copy;                      ///< its name in the folder, without blanks
    std::vector<std::uint8_t> build_id{};  ///< of the file; empty: it has none
    std::string file;                      ///< as the recorded machine called it
    friend bool operator==(const CopiedFile&, const CopiedFile&) = default;
};

/// What times of a map count.
inline constexpr std::string_view instructions_clock = "instructions";  ///< of all threads together
/// Bytes of trace that were written before, in the file that holds the trace: the offset of what was traced next.
inline constexpr std::string_view trace_bytes_clock = "trace-bytes";

struct ModuleMap {
    std::string clock{};                ///< what times count: one of the clocks above
    std::vector<Module> modules{};      ///< in the order in which they were mapped
    std::vector<TracedTime> sources{};  ///< sources that are not listed traced all the time
    std::vector<TracedThread> threads{};
    std::vector<GeneratedNames> names{};
    std::vector<CopiedFile> copies{};
    friend bool operator==(const ModuleMap&, const ModuleMap&) = default;

    [[nodiscard]] bool empty() const { return modules.empty(); }
    /// There is something to write: also which source goes on with which, where no file was mapped.
    [[nodiscard]] bool says_something() const { return !modules.empty() || !names.empty() || threads.size() > 1; }
    /// The source that traced the same thread before this one did; empty: none did.
    [[nodiscard]] std::string_view before(std::string_view source) const;
    /// Indices of the modules that were mapped at some time while a source traced. What is recorded by Waymark has at
    /// most one of them at each address of a process.
    [[nodiscard]] std::vector<std::size_t> seen_by(std::string_view source) const;
};

/// The name of the file in a capture folder.
inline constexpr std::string_view module_map_file = "maps.txt";
/// The version of the format that is written; others are refused.
inline constexpr unsigned module_map_version = 1;
/// A file longer than this is refused: it is something else.
inline constexpr std::uint64_t max_module_map_bytes = std::uint64_t{64} << 20;

/// The text of `maps.txt`. Reading it gives an equal map.
[[nodiscard]] std::string to_text(const ModuleMap& map);
/// Reads that text. A line that cannot be understood is left out and becomes a problem with `file` and its number;
/// after 20 of them the rest is counted. Of another version nothing is read, with a problem.
[[nodiscard]] ModuleMap read_module_map(std::string_view text, const std::filesystem::path& file,
                                        std::vector<Problem>& problems);

/// The same of the file in a capture folder; empty where there is none.
[[nodiscard]] ModuleMap read_module_map(const std::filesystem::path& folder, const FileAccess& files,
                                        std::vector<Problem>& problems);

/// Hexadecimal, two digits for each byte: how build IDs are written.
[[nodiscard]] std::string hex_text(const std::vector<std::uint8_t>& bytes);

}  // namespace waymark::capture
