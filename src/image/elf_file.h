/// A little-endian ARM, AArch64 or x86-64 ELF file, read through elfutils' libelf, which no other file includes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/core/types.h"
#include "waymark/image/memory_map.h"

namespace waymark::image {

/// The highest possible address.
inline constexpr std::uint64_t highest = std::numeric_limits<std::uint64_t>::max();

/// Immutable bytes and their owner: a mapping or a vector.
struct SharedBytes {
    std::shared_ptr<const void> owner;
    Bytes bytes;
};

/// Maps a whole file. Errors: `not_found`, `unreadable` (also for a folder or a device), `bad_format` (empty file).
[[nodiscard]] Result<SharedBytes> map_file(const std::string& path);
[[nodiscard]] SharedBytes share(std::vector<std::uint8_t> bytes);

/// Whether bytes begin like an ELF file.
[[nodiscard]] bool is_elf(Bytes bytes);

class ElfFile {
public:
    /// A part of the file with its address, before the load bias.
    struct Piece {
        std::string name;  // `LOAD 0`, or the section's name
        std::uint64_t address{};
        std::uint64_t offset{}, bytes{};  // inside the file
        std::uint64_t declared_bytes{};   // larger than `bytes` if the file was cut short
        std::size_t section{};            // section number; 0: a segment
    };
    /// Changes that a loader makes to the code of a relocatable file so that branches reach their targets.
    struct Branches {
        struct Patch {
            std::uint64_t offset{};  // in the file
            std::uint32_t value{};   // four bytes, in the order of the file
        };
        std::vector<Patch> patches;          // by offset
        std::vector<std::uint64_t> unknown;  // offsets of four-byte words whose target is not known, ascending
    };
    struct SymbolEntry {
        std::string name;
        std::uint64_t value{};  // address before the load bias, with the Thumb bit
        std::uint64_t bytes{};
        unsigned char type{}, binding{};  // STT_…, STB_…
        std::uint64_t section_end{};      // end of its section; 0: unknown
        std::uint64_t section_start{};
        bool absolute{};  // a constant, such as one of a linker script, not an address in the program
    };
    /// An executable section.
    struct CodePiece {
        std::uint64_t address{}, declared_bytes{};
        Bytes contents{};  // valid as long as the file; empty in a separate debug file
    };
    /// The note that identifies the build.
    struct BuildId {
        std::uint64_t address{};  // address of the note, before the load bias
        Bytes note{}, bytes{};    // the note section; the build ID within it
    };

    /// `name` is used in messages. Errors: `bad_format` if it is not ELF or damaged; `unsupported`: machine or byte
    /// order.
    [[nodiscard]] static Result<ElfFile> open(SharedBytes file, std::string name, Machines machines = Machines::arm);
    ~ElfFile();
    ElfFile(ElfFile&&) noexcept;
    ElfFile& operator=(ElfFile&&) = delete;

    [[nodiscard]] bool is_relocatable() const;
    [[nodiscard]] bool is_32_bit() const;
    [[nodiscard]] bool is_arm() const;
    [[nodiscard]] bool is_x86_64() const;
    [[nodiscard]] bool is_position_independent() const;
    /// Whether it has a dynamic segment. Errors: `bad_format`: its program header table cannot be read.
    [[nodiscard]] Result<bool> is_dynamic() const;
    /// The entry point, before the load bias, with the Thumb bit.
    [[nodiscard]] std::uint64_t entry() const;
    [[nodiscard]] const SharedBytes& file() const;

    /// Loadable segments; for a relocatable file its placed executable sections. Errors: `bad_format`: none has
    /// contents, or the tables are damaged.
    [[nodiscard]] Result<std::vector<Piece>> pieces() const;
    /// Branches between sections and to other files, from the relocations of the placed sections, if the file is loaded
    /// at `load_bias`. A target that is too far away for the instruction is unknown, since loaders create code of their
    /// own that leads there. Damaged tables are skipped. `outside` resolves symbols of other files.
    [[nodiscard]] Branches relocated_branches(std::uint64_t load_bias, const AddressOf& outside) const;
    /// Defined symbols of .symtab and .dynsym, in file order. Damaged tables are skipped. If the names together are
    /// larger than four times the file, which is possible only with overlapping strings, further long names are cut to
    /// 128 bytes and end in `…`. There are at most as many symbols as the file has room for.
    [[nodiscard]] std::vector<SymbolEntry> symbols() const;
    /// Symbols of functions in .gnu_debugdata, which is compressed (xz). Empty if there is no such section, or it is
    /// damaged.
    [[nodiscard]] std::vector<SymbolEntry> compressed_symbols() const;
    /// Whether it has the symbols of all its functions: a .symtab, or the table in .gnu_debugdata. A stripped file has
    /// at most a .dynsym, with its exports.
    [[nodiscard]] bool has_symbol_table() const;
    /// A symbol such as `puts@plt` for each entry of the procedure linkage table: code by which a program calls into
    /// libraries, and which has no symbols of its own. `PLT0@plt` for the code before the first entry, to which all
    /// entries jump until they are bound.
    [[nodiscard]] std::vector<SymbolEntry> linkage_symbols() const;
    /// The code in file order; empty if the file has no section headers.
    [[nodiscard]] std::vector<CodePiece> code() const;
    /// nullopt if it has no build ID in loaded memory.
    [[nodiscard]] std::optional<BuildId> build_id() const;
    /// Whether it is a program or library for Linux: it names a program interpreter, or the Linux ABI, or has a note of
    /// Android or Go.
    [[nodiscard]] bool is_for_linux() const;
    /// Contents of section .ARM.attributes (type SHT_ARM_ATTRIBUTES); empty if there is none.
    [[nodiscard]] Bytes attributes() const;

private:
    struct State;
    explicit ElfFile(std::unique_ptr<State> state);
    [[nodiscard]] Error damaged(std::string_view what) const;
    std::unique_ptr<State> state_;
};

}  // namespace waymark::image
