/// The program's memory as far as it is known: pieces of files and ELF segments at addresses, perhaps different ones
/// for each security state and for Hyp. Decoders read it through `isa::CodeReader`.
///
/// Overlap rule: where sections overlap, the one added LAST is seen. So add the general image first and corrections (a
/// patched region, a module, a dump of what was really in memory) after it.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/core/types.h"
#include "waymark/isa/isa.h"

namespace waymark::image {

/// The security and Hyp states in which a section is visible: Secure, Non-secure and Realm, each with Hyp (EL2) or not,
/// and Root, which only has EL3.
class SpaceFilter {
public:
    static constexpr unsigned states = 7;
    /// Every state.
    constexpr SpaceFilter() = default;
    [[nodiscard]] static constexpr SpaceFilter any() { return {}; }
    [[nodiscard]] static constexpr SpaceFilter secure() { return SpaceFilter{0b0011}; }
    [[nodiscard]] static constexpr SpaceFilter non_secure() { return SpaceFilter{0b1100}; }
    [[nodiscard]] static constexpr SpaceFilter secure_not_hyp() { return SpaceFilter{0b0001}; }
    [[nodiscard]] static constexpr SpaceFilter non_secure_not_hyp() { return SpaceFilter{0b0100}; }
    [[nodiscard]] static constexpr SpaceFilter realm() { return SpaceFilter{0b1100000}; }
    [[nodiscard]] static constexpr SpaceFilter realm_not_hyp() { return SpaceFilter{0b0100000}; }
    [[nodiscard]] static constexpr SpaceFilter realm_hyp() { return SpaceFilter{0b1000000}; }
    [[nodiscard]] static constexpr SpaceFilter root() { return SpaceFilter{0b0010000}; }
    [[nodiscard]] static constexpr SpaceFilter hyp() { return SpaceFilter{0b1001010}; }
    [[nodiscard]] static constexpr SpaceFilter el3() { return SpaceFilter{0b0010011}; }

    /// From the letters of a snapshot's `space` key in any case (docs/spec/pft.md, 7.2): empty is any; N, S; H and EL2
    /// are Hyp; EL1N, P and NP are Non-secure but not Hyp; EL1S and SP Secure; R Realm, EL1R Realm but not Hyp, EL2R
    /// Realm's Hyp, ROOT Root; EL3 Root and Secure, since trace does not distinguish EL3 from Secure EL1. nullopt for
    /// other letters.
    [[nodiscard]] static std::optional<SpaceFilter> parse(std::string_view letters);

    /// The number of a state, 0 to `states` - 1.
    [[nodiscard]] static constexpr unsigned state(const isa::Space& space) {
        if (space.nse && !space.ns) return 4;
        return (space.nse ? 5U : space.ns ? 2U : 0U) + (space.hyp ? 1U : 0U);
    }
    /// A space of the state with this number.
    [[nodiscard]] static constexpr isa::Space space(unsigned state) {
        const bool realm = state >= 5, hyp = realm ? state == 6 : state < 4 && (state & 1U) != 0;
        return {.ns = realm || state == 2 || state == 3, .hyp = hyp, .nse = state >= 4};
    }
    [[nodiscard]] constexpr bool has(unsigned state) const { return ((mask_ >> state) & 1U) != 0; }
    /// A filter for exactly the states with these numbers.
    [[nodiscard]] static SpaceFilter of(const std::vector<unsigned>& states_held);
    /// A name for reports: `any`, `S`, `N`, `R`, `H`, `EL3`, otherwise the names of the states joined: `EL1S`, `EL2S`,
    /// `EL1N`, `EL2N`, `ROOT`, `EL1R`, `EL2R` (EL1: not Hyp).
    [[nodiscard]] std::string name() const;
    friend constexpr bool operator==(SpaceFilter, SpaceFilter) = default;

private:
    explicit constexpr SpaceFilter(std::uint8_t mask) : mask_(mask) {}
    std::uint8_t mask_ = 0b1111111;
};

/// The sections that an `add_…` function added.
struct Added {
    std::uint32_t section{};           ///< id of the first; further ones have consecutive ids
    std::uint32_t sections = 1;        ///< number of sections, at least 1
    std::vector<std::string> notes{};  ///< sentences about deviations from the declaration, such as a shorter dump
};

/// One section, for `info`.
struct Section {
    std::uint32_t id{};
    Address address{};
    std::uint64_t bytes{};
    SpaceFilter space{};
    std::string name{};  ///< origin as given: a file name, `vmlinux[LOAD 0]`
};

/// A stretch [address, address + bytes) of one section, and whether it is visible to code readers.
struct Region {
    Address address{};
    std::uint64_t bytes{};
    std::uint32_t section{};
    SpaceFilter space{};                         ///< states to which this applies; equal states share a row
    std::optional<std::uint32_t> shadowed_by{};  ///< the section that is visible instead; absent: this one is
};

/// The address of a symbol, with or without the Thumb bit; nullopt if not known. An empty function means that no symbol
/// is known.
using AddressOf = std::function<std::optional<std::uint64_t>(const std::string& name)>;

/// The head of this file has the rule for overlaps. Building is single-threaded; after it the const members are
/// thread-safe. Files are mapped into memory, not read, so they must not change while the map exists (if a mapped file
/// is truncated, the program ends with SIGBUS). Movable; returned bytes stay valid after a move. `Space::context_id`
/// and `vmid` have no effect: use one map for each address space. Programs for other machines are accepted only in
/// special cases: x86-64 for samples of branches, StarCore (only for names, in either byte order) for traces of a Debug
/// and Profiling Unit.
enum class Machines : std::uint8_t { arm, arm_and_x86_64, arm_and_starcore };

class MemoryMap final : public isa::CodeReader {
public:
    MemoryMap();
    ~MemoryMap() override;
    MemoryMap(MemoryMap&&) noexcept;
    MemoryMap& operator=(MemoryMap&&) noexcept;
    MemoryMap(const MemoryMap&) = delete;
    MemoryMap& operator=(const MemoryMap&) = delete;

    /// Sets the machines whose ELF files add_elf() accepts; by default only ARM and AArch64.
    void accept(Machines machines);

    /// Maps bytes [offset, offset + length) of a file at `address`; without `length`, the rest of the file. A shorter
    /// file is mapped as far as it goes, with a note. `name` is for reports; empty: the file's name. Errors:
    /// `not_found`, `unreadable`; `bad_format`: the file has no byte of the range; `usage`: the range exceeds the
    /// address space.
    [[nodiscard]] Result<Added> add_file(const std::filesystem::path& path, Address address, std::uint64_t offset = 0,
                                         std::optional<std::uint64_t> length = std::nullopt, SpaceFilter space = {},
                                         std::string name = {});

    /// Takes ownership of bytes. Errors: `usage`: none, or they exceed the address space.
    [[nodiscard]] Result<Added> add_bytes(std::vector<std::uint8_t> bytes, Address address, SpaceFilter space = {},
                                          std::string name = {});

    /// Maps the loadable segments of a little-endian ARM or AArch64 ELF file (32 or 64 bits; executable, shared object
    /// or core) as far as the file has their contents: .bss is not mapped. A relocatable file has no segments. Its
    /// executable sections are placed one after another from `load_bias` on, in file order, each at its alignment, but
    /// the sections for a kernel module's start (.init…) last. A note states the address of each. Branches are
    /// relocated. A branch with an unknown target becomes a place without code, so that nothing is decoded wrongly.
    /// Other relocations change no branch and are omitted. `outside` resolves symbols of other files. Addresses are the
    /// file's plus `load_bias`, modulo 2^32 for 32-bit files. Errors: `not_found`, `unreadable`; `bad_format`: not ELF,
    /// damaged, or without contents (a separate debug file); `unsupported`: another machine or byte order.
    [[nodiscard]] Result<Added> add_elf(const std::filesystem::path& path, std::uint64_t load_bias = 0,
                                        SpaceFilter space = {}, std::string name = {}, const AddressOf& outside = {});
    /// The same for a file already in memory. `name` replaces the path in messages.
    [[nodiscard]] Result<Added> add_elf_bytes(std::vector<std::uint8_t> file, std::uint64_t load_bias,
                                              SpaceFilter space, std::string name);

    /// Memory that a callback provides: fills `into` with the known bytes from `address` on, as visible in a space
    /// without Context ID and VMID, and returns their number. Called by one thread at a time, with room up to the end
    /// of the page (4 KiB); bytes that it returned are not requested again.
    using Ask = std::function<std::size_t(Address address, const isa::Space& space, std::span<std::uint8_t> into)>;
    /// Sets the callback for addresses that no section contains. The bytes it provides belong to no section in
    /// `sections()`.
    void ask_beyond(Ask ask);

    /// The bytes at an address. They end with their section, or where another section becomes visible; they are valid
    /// as long as the map, and the section id is an index into `sections()`. O(log n) in the number of pieces.
    [[nodiscard]] isa::Code at(Address address, const isa::Space& space) const override;

    [[nodiscard]] bool empty() const;
    /// All sections; the index is the id.
    [[nodiscard]] const std::vector<Section>& sections() const;
    /// Where each section is visible, and which section hides it elsewhere; sorted by address, then section.
    [[nodiscard]] std::vector<Region> regions() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// The kind of an image file.
enum class ImageKind : std::uint8_t { elf, raw };
/// Decides by the file's first four bytes. Errors: `not_found`, `unreadable`, `bad_format` (empty).
[[nodiscard]] Result<ImageKind> recognise(const std::filesystem::path& path);

/// An argument `FILE[@ADDRESS]` of the command line.
struct ImageArgument {
    std::filesystem::path path;
    std::optional<Address> address{};
    friend bool operator==(const ImageArgument&, const ImageArgument&) = default;
};
/// Splits at the last `@` that is followed by a number (0x… hexadecimal, else decimal); a file name may contain `@`.
/// Errors: `usage`: no file name, or an empty or malformed address.
[[nodiscard]] Result<ImageArgument> parse_image_argument(std::string_view text);

/// Adds `FILE[@ADDRESS]` to a map: an ELF file at its own addresses (`@ADDRESS`: with that load bias), any other file
/// as a raw dump at ADDRESS. `outside`: as `MemoryMap::add_elf`. Errors: the errors of the functions above, and `usage`
/// for a raw dump without an address.
[[nodiscard]] Result<Added> add_image(MemoryMap& map, std::string_view argument, SpaceFilter space = {},
                                      const AddressOf& outside = {});

}  // namespace waymark::image
