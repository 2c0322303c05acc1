/// Instruction sets, and the interface for reading code.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "waymark/core/types.h"

namespace waymark::isa {

/// The instruction set state of a core. x86-64 is only for samples of branches (isa/x86.h).
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

/// The parts of a core's state that select the memory to which an address belongs.
struct Space {
    bool ns{};                                  ///< Non-secure
    bool hyp{};                                 ///< Hyp mode (EL2)
    std::optional<std::uint32_t> context_id{};  ///< where traced
    std::optional<std::uint32_t> vmid{};        ///< where traced
    bool nse{};                                 ///< Root or, with `ns`, Realm
    /// A number that CodeReader::view substitutes for all other members. 0: none.
    std::uint32_t number{};
    friend bool operator==(const Space&, const Space&) = default;
};

/// Program bytes at an address, up to the end of the piece of memory that contains them.
struct Code {
    Bytes bytes;              ///< empty: nothing is known to be mapped there. Valid as long as the reader
    std::uint32_t section{};  ///< identifies the image: two sections may have different code at one address
};

/// Gives program bytes to decoders, which therefore need not know ELF. While a decoder uses an implementation, it
/// always returns the same bytes; implementations are thread-safe.
class CodeReader {
public:
    virtual ~CodeReader() = default;
    /// The bytes from `address` on, as visible in `space`.
    [[nodiscard]] virtual Code at(Address address, const Space& space) const = 0;
    /// `space` reduced to the members on which the results depend: two spaces with one view see the same memory. `at`
    /// also accepts a view, with the same result.
    [[nodiscard]] virtual Space view(const Space& space) const { return space; }
    /// Whether a section (Code::section) that two numbered views have at some address is completely in both, with the
    /// same contents.
    [[nodiscard]] virtual bool whole_sections() const { return false; }
};

}  // namespace waymark::isa
