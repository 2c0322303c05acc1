/// What an ELF file and its debug information say of an address: source lines, inlined calls, and where a file offset
/// is loaded. Separate debug files are found by build ID and by .gnu_debuglink; debuginfod servers are asked if and
/// only if the environment variable DEBUGINFOD_URLS names some.
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
    /// Which of several pieces of code of the line it is, in the compiler's own numbering (DWARF 5, 6.2.2; of a call
    /// DW_AT_GNU_discriminator); 0: the only one, or not numbered.
    std::uint32_t discriminator{};
    friend bool operator==(const SourceLine&, const SourceLine&) = default;
};

/// A call whose callee the compiler put in its place.
struct InlinedCall {
    SharedText function;             ///< what was called, for reading; empty: debug information does not name it
    SharedText linkage_name{};       ///< as its symbol would be, where that is another name
    std::optional<SourceLine> at{};  ///< where it is called
    std::uint32_t declared_line{};   ///< where the callee is declared; 0: not known
    friend bool operator==(const InlinedCall&, const InlinedCall&) = default;
};

/// A function as its author wrote it. Compilers may make several copies of its code, or split it into parts.
struct DeclaredFunction {
    std::string linkage_name;  ///< empty: debug information has none, as for C
    SourceLine at;             ///< of its name
    /// An LLVM compiler made it, so discriminators are in LLVM's encoding.
    bool by_llvm{};
    friend bool operator==(const DeclaredFunction&, const DeclaredFunction&) = default;
};

/// The inlined calls that the code in [first, end) lies in, the outermost first: each is made by the one before it, the
/// first by the function that has the symbol.
struct InlinedPlace {
    Address first{}, end{};
    std::vector<InlinedCall> calls{};
    [[nodiscard]] bool holds(Address address) const {
        return address.value >= first.value && address.value < end.value;
    }
};

/// One file, of any machine. Not for several threads at once.
class DebugInfo {
public:
    /// `debug_folders` are searched before /usr/lib/debug, and hold folders as that one does (.build-id/…). Errors:
    /// `not_found`, `bad_format`: no ELF file.
    [[nodiscard]] static Result<DebugInfo> open(const std::filesystem::path& path,
                                                const std::vector<std::filesystem::path>& debug_folders = {});
    ~DebugInfo();
    DebugInfo(DebugInfo&&) noexcept;
    DebugInfo& operator=(DebugInfo&&) noexcept;

    /// The address, without a load bias, of a byte of the file; nothing if no segment holds it.
    [[nodiscard]] std::optional<Address> address_of(std::uint64_t file_offset) const;
    /// What is loaded where (without a load bias). Of a relocatable file: its code, as `MemoryMap::add_elf` places it.
    struct Segment {
        std::uint64_t offset{}, bytes{};  ///< in the file; in memory
        Address address{};
        bool executable{};
    };
    [[nodiscard]] const std::vector<Segment>& segments() const;
    /// What is to be added to the addresses in the file where its bytes [offset, offset + bytes) are mapped at `at`, as
    /// its executable segment says that lies among them; nothing if none does. Of a relocatable file `at` less
    /// `offset`: a loader maps what it made of the file.
    [[nodiscard]] std::optional<std::uint64_t> load_bias(Address at, std::uint64_t offset, std::uint64_t bytes) const;
    /// The line an address (without a load bias) was compiled from. Reads debug information when first called.
    [[nodiscard]] std::optional<SourceLine> line(Address address);
    /// All lines of which a statement begins at an address (without a load bias), in the order of the line table, each
    /// once. Of optimised code several do, and `line` gives the last row alone.
    [[nodiscard]] std::vector<SourceLine> statements(Address address);
    /// The inlined calls an address (without a load bias) lies in; `line` is that of the last. The first question about
    /// a unit of compilation reads all there are in it; then each is O(log n).
    [[nodiscard]] InlinedPlace inlined(Address address);
    /// The function whose code an address (without a load bias) is, after inlining; nothing where debug information
    /// does not say where it is declared. Reads as much as `inlined`.
    [[nodiscard]] std::optional<DeclaredFunction> function(Address address);
    /// There is debug information. Looks for it when first called.
    [[nodiscard]] bool has_lines();
    /// The separate file it was found in; empty: in the file itself, or nowhere. Looks for it when first called.
    [[nodiscard]] std::filesystem::path debug_file();
    /// Empty if the file has none.
    [[nodiscard]] const std::vector<std::uint8_t>& build_id() const;
    /// A program for StarCore (ELF machine 58), whose instructions are not decoded.
    [[nodiscard]] bool is_starcore() const;

private:
    struct State;
    explicit DebugInfo(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace waymark::image
