/// Looks up addresses in an ELF file and its debug information: source lines, inlined calls, and load addresses of file
/// offsets. Separate debug files are found by build ID and by .gnu_debuglink; debuginfod servers are asked only if the
/// environment variable DEBUGINFOD_URLS names some.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/core/shared_text.h"
#include "waymark/core/types.h"

namespace waymark::image {

struct SourceLine {
    std::string file;
    std::uint32_t line{};
    /// Distinguishes several pieces of code of the line, in the compiler's own numbering (DWARF 5, 6.2.2; for a call
    /// DW_AT_GNU_discriminator); 0: there is only one piece, or pieces are not numbered.
    std::uint32_t discriminator{};
    friend bool operator==(const SourceLine&, const SourceLine&) = default;
};

/// A call that the compiler replaced by the callee's code.
struct InlinedCall {
    SharedText function;             ///< readable name of the callee; empty if debug information does not have it
    SharedText linkage_name{};       ///< its linkage name, if that differs
    std::optional<SourceLine> at{};  ///< place of the call
    std::uint32_t declared_line{};   ///< line of the callee's declaration; 0: not known
    friend bool operator==(const InlinedCall&, const InlinedCall&) = default;
};

/// A function in the source. Compilers may make several copies of its code, or split it into parts.
struct DeclaredFunction {
    std::string linkage_name;  ///< empty if debug information has none, as for C
    SourceLine at;             ///< of its name
    /// Compiled by an LLVM compiler, so discriminators use LLVM's encoding.
    bool by_llvm{};
    friend bool operator==(const DeclaredFunction&, const DeclaredFunction&) = default;
};

/// The inlined calls that contain the code in [first, end), the outermost first. Each call is in the code of the
/// previous one; the first is in the function with the symbol.
struct InlinedPlace {
    Address first{}, end{};
    std::vector<InlinedCall> calls{};
    [[nodiscard]] bool holds(Address address) const {
        return address.value >= first.value && address.value < end.value;
    }
};

/// The debug information of one file, of any machine. Not thread-safe.
class DebugInfo {
public:
    /// `debug_folders` are searched before /usr/lib/debug, and have the same structure (.build-id/…). Errors:
    /// `not_found`, `bad_format`: not an ELF file.
    [[nodiscard]] static Result<DebugInfo> open(const std::filesystem::path& path,
                                                const std::vector<std::filesystem::path>& debug_folders = {});
    ~DebugInfo();
    DebugInfo(DebugInfo&&) noexcept;
    DebugInfo& operator=(DebugInfo&&) noexcept;

    /// The address, without load bias, of a byte of the file; nullopt if no segment contains it.
    [[nodiscard]] std::optional<Address> address_of(std::uint64_t file_offset) const;
    /// A loaded part of the file (without load bias). For a relocatable file: its code, as placed by
    /// `MemoryMap::add_elf`.
    struct Segment {
        std::uint64_t offset{}, bytes{};  ///< offset in the file; size in memory
        Address address{};
        bool executable{};
    };
    [[nodiscard]] const std::vector<Segment>& segments() const;
    /// The load bias if bytes [offset, offset + bytes) of the file are mapped at `at`, from the executable segment
    /// among them; nullopt if there is none. For a relocatable file `at` minus `offset`, since a loader maps the result
    /// of loading.
    [[nodiscard]] std::optional<std::uint64_t> load_bias(Address at, std::uint64_t offset, std::uint64_t bytes) const;
    /// The source line of an address (without load bias). Reads debug information at first use.
    [[nodiscard]] std::optional<SourceLine> line(Address address);
    /// All lines with a statement that begins at an address (without load bias), in the order of the line table,
    /// without duplicates. In optimised code there can be several; `line` returns only the last row.
    [[nodiscard]] std::vector<SourceLine> statements(Address address);
    /// The inlined calls that contain an address (without load bias); `line` belongs to the last call. The first lookup
    /// in a compilation unit reads the whole unit; further lookups are O(log n).
    [[nodiscard]] InlinedPlace inlined(Address address);
    /// The function whose code is at an address (without load bias), after inlining; nullopt if debug information does
    /// not have its declaration. Reads as much as `inlined`.
    [[nodiscard]] std::optional<DeclaredFunction> function(Address address);
    /// Whether there is debug information. Searches for it at first use.
    [[nodiscard]] bool has_lines();
    /// The separate file that contains the debug information; empty: the file itself, or none. Searches for it at first
    /// use.
    [[nodiscard]] std::filesystem::path debug_file();
    /// The build ID; empty if the file has none.
    [[nodiscard]] const std::vector<std::uint8_t>& build_id() const;
    /// Whether it is a program for StarCore (ELF machine 58), whose instructions are not decoded.
    [[nodiscard]] bool is_starcore() const;

private:
    struct State;
    explicit DebugInfo(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace waymark::image
