/// A little-endian ARM, AArch64 or x86-64 ELF file, read through elfutils' libelf, which stays out of every other file.
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

/// The last address there is.
inline constexpr std::uint64_t highest = std::numeric_limits<std::uint64_t>::max();

/// Immutable bytes and their owner: a mapping or a vector.
struct SharedBytes {
    std::shared_ptr<const void> owner;
    Bytes bytes;
};

/// Maps a whole file. Errors: `not_found`, `unreadable` (also a folder or a device), `bad_format` (empty).
[[nodiscard]] Result<SharedBytes> map_file(const std::string& path);
[[nodiscard]] SharedBytes share(std::vector<std::uint8_t> bytes);

/// Whether bytes begin like an ELF file.
[[nodiscard]] bool is_elf(Bytes bytes);

class ElfFile {
public:
    /// File contents and where they go, before the load bias.
    struct Piece {
        std::string name;  // `LOAD 0`, or the section's name
        std::uint64_t address{};
        std::uint64_t offset{}, bytes{};  // inside the file
        std::uint64_t declared_bytes{};   // more than `bytes` in a file that was cut short
        std::size_t section{};            // its number; 0: a segment
    };
    /// What a loader changes in the code of a relocatable file so that its branches lead where they should.
    struct Branches {
        struct Patch {
            std::uint64_t offset{};  // in the file
            std::uint32_t value{};   // four bytes, as they lie there
        };
        std::vector<Patch> patches;          // by offset
        std::vector<std::uint64_t> unknown;  // offsets of four bytes whose target nobody knows, in order
    };
    struct SymbolEntry {
        std::string name;
        std::uint64_t value{};  // address before the load bias, with the Thumb bit
        std::uint64_t bytes{};
        unsigned char type{}, binding{};  // STT_…, STB_…
        std::uint64_t section_end{};      // end of the section it is in; 0: unknown
        std::uint64_t section_start{};
        bool absolute{};  // a number, such as a linker script's constant, and no place in the program
    };
    /// An executable section.
    struct CodePiece {
        std::uint64_t address{}, declared_bytes{};
        Bytes contents{};  // as long as the file lives; empty in a separate debug file
    };
    /// The note that identifies the build.
    struct BuildId {
        std::uint64_t address{};  // of the note, before the load bias
        Bytes note{}, bytes{};    // the whole note, and the ID at its end
    };

    /// `name` is used in messages. Errors: `bad_format`: not ELF or damaged; `unsupported`: machine or byte order.
    [[nodiscard]] static Result<ElfFile> open(SharedBytes file, std::string name, Machines machines = Machines::arm);
    ~ElfFile();
    ElfFile(ElfFile&&) noexcept;
    ElfFile& operator=(ElfFile&&) = delete;

    [[nodiscard]] bool is_relocatable() const;
    [[nodiscard]] bool is_32_bit() const;
    [[nodiscard]] bool is_arm() const;
    [[nodiscard]] bool is_x86_64() const;
    [[nodiscard]] bool is_position_independent() const;
    /// It has a dynamic segment. Errors: `bad_format`: its program header table cannot be read.
    [[nodiscard]] Result<bool> is_dynamic() const;
    /// Where execution begins, before the load bias, with the Thumb bit.
    [[nodiscard]] std::uint64_t entry() const;
    [[nodiscard]] const SharedBytes& file() const;

    /// Loadable segments, or for a relocatable file its placed executable sections. Errors: `bad_format`: none with
    /// contents, or the tables are damaged.
    [[nodiscard]] Result<std::vector<Piece>> pieces() const;
    /// The branches between sections and to other files, by the relocations of the placed sections, where the file is
    /// loaded at `load_bias`. A target that is too far away for the instruction is unknown: loaders make code of their
    /// own that leads there. Damaged tables are passed over. `outside` knows what other files define.
    [[nodiscard]] Branches relocated_branches(std::uint64_t load_bias, const AddressOf& outside) const;
    /// Of .symtab and .dynsym, in file order; defined ones only. Damaged tables are passed over. Where the names
    /// together have more than four times the bytes of the file, which only overlapping strings give, further long ones
    /// are cut to 128 bytes and end in `…`; there are at most as many symbols as the file has room for.
    [[nodiscard]] std::vector<SymbolEntry> symbols() const;
    /// Of the symbol table of functions in .gnu_debugdata, which is compressed (xz). None: there is no such section, or
    /// it is damaged.
    [[nodiscard]] std::vector<SymbolEntry> compressed_symbols() const;
    /// It has the symbols of all its functions: a .symtab, or that of .gnu_debugdata. A stripped file has a .dynsym at
    /// most, with what it exports.
    [[nodiscard]] bool has_symbol_table() const;
    /// `puts@plt` for each entry of the procedure linkage table: code by which a program calls into libraries, and
    /// which has no symbols of its own. `PLT0@plt` for the code before the first entry, which all of them jump to until
    /// they are bound.
    [[nodiscard]] std::vector<SymbolEntry> linkage_symbols() const;
    /// In file order; none where the file has no section headers.
    [[nodiscard]] std::vector<CodePiece> code() const;
    /// Nothing: it has none that memory could hold.
    [[nodiscard]] std::optional<BuildId> build_id() const;
    /// Of section .ARM.attributes (type SHT_ARM_ATTRIBUTES); empty: there is none.
    [[nodiscard]] Bytes attributes() const;

private:
    struct State;
    explicit ElfFile(std::unique_ptr<State> state);
    [[nodiscard]] Error damaged(std::string_view what) const;
    std::unique_ptr<State> state_;
};

}  // namespace waymark::image
