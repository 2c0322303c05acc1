/// Instruction sets, and where their instructions come from.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "waymark/core/types.h"

namespace waymark::isa {

/// The instruction set state of a core. x86-64 is that of samples of branches alone (isa/x86.h).
enum class Isa : std::uint8_t { a32, t32, tee, jazelle, a64, x86_64 };

/// The name used in every report: A32, T32, TEE, Jazelle, A64, x86-64.
[[nodiscard]] constexpr std::string_view name(Isa isa) {
    switch (isa) {
        case Isa::a32: return "A32";
        case Isa::t32: return "T32";
        case Isa::tee: return "TEE";
        case Isa::jazelle: return "Jazelle";
        case Isa::a64: return "A64";
        case Isa::x86_64: return "x86-64";
    }
    return "?";
}

/// Which memory an address belongs to: the parts of a core's state that select it.
struct Space {
    bool ns{};                                  ///< Non-secure
    bool hyp{};                                 ///< Hyp mode (EL2)
    std::optional<std::uint32_t> context_id{};  ///< where traced
    std::optional<std::uint32_t> vmid{};        ///< where traced
    bool nse{};                                 ///< Root or, with `ns`, Realm
    /// What CodeReader::view put in the place of all of them: a number that the reader gave out. 0: none.
    std::uint32_t number{};
    friend bool operator==(const Space&, const Space&) = default;
};

/// Program bytes at an address, up to the end of the piece of memory that holds them.
struct Code {
    Bytes bytes;              ///< empty: nothing is known to be mapped there. Valid as long as the reader that gave it
    std::uint32_t section{};  ///< which image: two sections may hold different code for one address
};

/// Where decoders get program bytes from; keeps them from knowing ELF. Implementations answer the same question always
/// the same way while a decoder uses them, and are safe to call from several threads.
class CodeReader {
public:
    virtual ~CodeReader() = default;
    /// The bytes from `address` on, as seen in `space`.
    [[nodiscard]] virtual Code at(Address address, const Space& space) const = 0;
    /// `space` reduced to what the answers depend on: two spaces with one view see the same memory. `at` takes a view,
    /// too, and gives the same answer for it.
    [[nodiscard]] virtual Space view(const Space& space) const { return space; }
    /// A section (Code::section) that two views with numbers have at some address lies in both from its first to its
    /// last byte, with the same contents.
    [[nodiscard]] virtual bool whole_sections() const { return false; }
};

}  // namespace waymark::isa
