#include <algorithm>
#include <array>
#include <span>

#include "waymark/isa/decode_instr.h"

namespace waymark::isa {

Fetched fetch(const CodeReader& code, const Space& space, Address address, Isa isa) {
    if (isa != Isa::a32 && isa != Isa::t32 && isa != Isa::tee) return {};

    const Code found = code.at(address, space);
    std::array<std::uint8_t, 4> bytes{};
    std::size_t have = std::min(bytes.size(), found.bytes.size());
    std::copy_n(found.bytes.begin(), have, bytes.begin());

    // The piece of memory may end inside the instruction. Only what the instruction needs is looked for beyond that
    // end: a 16-bit instruction may be the last thing that is mapped.
    const auto complete = [&](std::size_t needed) {
        while (have < needed) {
            const Address beyond{(address.value + have) & 0xffff'ffffU};
            const Bytes piece = code.at(beyond, space).bytes;
            if (piece.empty()) return false;
            const std::size_t taken = std::min(needed - have, piece.size());
            std::copy_n(piece.begin(), taken, bytes.begin() + static_cast<std::ptrdiff_t>(have));
            have += taken;
        }
        return true;
    };
    const auto halfword = [&](std::size_t at) {
        return static_cast<std::uint32_t>(bytes[at]) | static_cast<std::uint32_t>(bytes[at + 1]) << 8;
    };

    if (have == 0 || !complete(isa == Isa::a32 ? 4 : 2)) return {};
    if (isa == Isa::a32) return {halfword(2) << 16 | halfword(0), 4, found.section};
    if (!is_thumb_32(halfword(0))) return {halfword(0), 2, found.section};
    if (!complete(4)) return {};
    return {halfword(0) << 16 | halfword(2), 4, found.section};
}

std::optional<Instruction> decode_at(const CodeReader& code, const Space& space, Address address, Isa isa,
                                     const DecodeOptions& options) {
    const Fetched fetched = fetch(code, space, address, isa);
    if (fetched.bytes == 0) return {};
    return decode_instr(address, isa, fetched.opcode, fetched.bytes == 4, options);
}

}  // namespace waymark::isa
