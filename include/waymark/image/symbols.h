/// Names for addresses: the symbol tables of ELF files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/core/types.h"
#include "waymark/image/memory_map.h"
#include "waymark/isa/isa.h"

namespace waymark::image {

enum class SymbolKind : std::uint8_t { function, object, none };

/// One symbol. The strings live as long as the `Symbols` object, until something is added to it.
struct Symbol {
    std::string_view name;          ///< readable name: demangled if it is a C++ name
    std::string_view linkage_name;  ///< name in the file
    Address address{};              ///< bit 0 (Thumb) cleared
    std::uint64_t bytes{};          ///< size in the file; 0: not given
    SymbolKind kind{};
    isa::Isa isa{};  ///< for a function: the instruction set at its entry
};

/// An address relative to the symbol that contains it.
struct SymbolOffset {
    std::string_view name;  ///< as `Symbol::name`
    std::uint64_t offset{};
    Symbol symbol;
};

/// The contents of an address according to an ELF file ($a, $t, $d, $x: "mapping symbols").
enum class Contents : std::uint8_t { a32, t32, a64, data };
/// Nothing: data.
[[nodiscard]] constexpr std::optional<isa::Isa> instruction_set(Contents contents) {
    switch (contents) {
        case Contents::a32: return isa::Isa::a32;
        case Contents::t32: return isa::Isa::t32;
        case Contents::a64: return isa::Isa::a64;
        case Contents::data: break;
    }
    return std::nullopt;
}

/// Symbols of any number of files. If files or symbols overlap, a lookup finds the innermost symbol. Among symbols with
/// the same address, the order is: functions, objects, untyped symbols; then global symbols before others; then symbols
/// with a size before others; then the order of addition. Building is single-threaded; afterwards lookups are
/// thread-safe.
class Symbols {
public:
    Symbols();
    ~Symbols();
    Symbols(Symbols&&) noexcept;
    Symbols& operator=(Symbols&&) noexcept;
    Symbols(const Symbols&) = delete;
    Symbols& operator=(const Symbols&) = delete;

    /// Sets the machines whose files add_elf() accepts; by default only ARM and AArch64.
    void accept(Machines machines);
    /// Adds the symbols of .symtab, .dynsym and .gnu_debugdata, at their address plus `load_bias` (as
    /// `MemoryMap::add_elf`), and an entry `puts@plt` for each entry of the procedure linkage table. Returns the number
    /// added; 0 for a stripped file. Separate debug files are accepted. Errors: as `MemoryMap::add_elf`.
    [[nodiscard]] Result<std::size_t> add_elf(const std::filesystem::path& path, std::uint64_t load_bias = 0);
    /// The same for a file in memory; `name` replaces the path in messages.
    [[nodiscard]] Result<std::size_t> add_elf_bytes(std::vector<std::uint8_t> file, std::uint64_t load_bias,
                                                    std::string name);
    /// Sets the table that is used where this one has no symbol: names from files, below the names of generated code.
    void set_base(std::shared_ptr<const Symbols> base);
    /// Adds one symbol. If `bytes` is 0, it extends up to the next symbol.
    void add(std::string linkage_name, Address address, std::uint64_t bytes, SymbolKind kind);

    /// The symbol that contains an address: within its size, or without a size, before the next symbol and the end of
    /// its ELF section. O(log n).
    [[nodiscard]] std::optional<SymbolOffset> find(Address address) const;
    /// The code at [first, first + bytes) comes from `file` (a path), from the byte at `offset` on. Areas do not
    /// overlap.
    void add_area(const std::string& file, Address first, std::uint64_t bytes, std::uint64_t offset);
    struct Area {
        std::string_view file;  ///< as given
        std::string_view name;  ///< the last part of the path
        Address first{};
        std::uint64_t bytes{}, offset{};
    };
    /// The area that contains an address. O(log n).
    [[nodiscard]] std::optional<Area> area(Address address) const;
    /// A stretch without symbols, after a function in the same area.
    struct Nameless {
        std::string name;   ///< name of the nearest symbol before it, marked approximate
        Address address{};  ///< its beginning: the end of that function
    };
    /// The stretch that contains an address. nullopt if a symbol contains the address, no function precedes it in its
    /// area, or it is in no area.
    [[nodiscard]] std::optional<Nameless> before(Address address) const;
    /// A name for an address outside of all symbols: from the preceding function in the same area, or else from the
    /// file and the offset in it, with the mark `?`: `qsort+0x1a4?`, `libc.so.6+0x12a40?`. Empty if no area contains
    /// it.
    [[nodiscard]] std::string approximate(Address address) const;
    /// A name such as `main` or `main+0x10`; `approximate` if no symbol contains the address, or empty.
    [[nodiscard]] std::string text(Address address) const;

    /// The address of a symbol by its linkage name, otherwise by its demangled name; global symbols come before local
    /// ones.
    [[nodiscard]] std::optional<Address> address_of(std::string_view name) const;
    /// The same, and otherwise the only function whose demangled name without parameters matches: `sort` for
    /// `sort(int*, int)`. nullopt if several functions have that name. O(n) if the name is not complete.
    [[nodiscard]] std::optional<Address> function_called(std::string_view name) const;
    /// The contents at an address according to mapping symbols; nullopt if no mapping symbol precedes it in its ELF
    /// section.
    [[nodiscard]] std::optional<Contents> contents(Address address) const;

    /// Whether one of the ELF files is a program or library for Linux: its system calls have the numbers of Linux.
    [[nodiscard]] bool are_for_linux() const;

    [[nodiscard]] std::size_t size() const;
    /// All symbols, by address.
    [[nodiscard]] std::vector<Symbol> all() const;

private:
    struct State;
    [[nodiscard]] std::optional<Symbol> function_before(Address address) const;
    std::unique_ptr<State> state_;
};

/// Demangles a C++ name; other names stay unchanged, and so do names of more than 4096 bytes, or that would become
/// longer than 64 KiB.
[[nodiscard]] std::string demangle(const std::string& linkage_name);

}  // namespace waymark::image
