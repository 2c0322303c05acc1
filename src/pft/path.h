/// Support of Program Flow Trace for follow::KnownPaths.
#pragma once

#include <array>
#include <cstdint>

#include "last_target.h"
#include "waymark/follow/few_outcomes.h"
#include "waymark/follow/paths.h"
#include "waymark/pft/codec.h"

namespace waymark::pft {

/// Atom packets, decoded.
inline const std::array<follow::FewOutcomes, 256> atom_bytes = [] {
    std::array<follow::FewOutcomes, 256> all;
    for (unsigned byte = 0; byte < 256; ++byte) {
        const auto wire = static_cast<std::uint8_t>(byte);
        if ((wire & Atom::info.mask) != Atom::info.value) continue;
        Cursor cursor(Bytes(&wire, 1));
        Atoms atoms;
        AtomPattern::read(cursor, atoms);
        if (cursor.step() != Step::ok) continue;
        std::uint32_t e = 0;
        for (unsigned i = 0; i < atoms.count; ++i) e |= (atoms.e(i) ? 1U : 0U) << i;
        all[byte] = {e, atoms.count};
    }
    return all;
}();

struct PathPackets {
    using State = LastTarget;
    static constexpr unsigned most_outcomes = 16;
    static constexpr bool address_is_outcome = true;

    /// After a branch packet every bit is known: bits that it sends, and earlier bits on which the path depends.
    struct Change {
        std::uint32_t needed = 0;  ///< bits of the earlier key
        std::uint32_t before = 0, after = 0;
        std::uint32_t kept = ~std::uint32_t{0};  ///< 0 after a branch packet

        [[nodiscard]] WM_INLINE bool fits(const LastTarget& state) const {
            return ((state.key() ^ before) & needed) == 0;
        }
        WM_INLINE void apply(LastTarget& state) const { state.set_key((state.key() & kept) | after); }
    };

    class Recorder {
    public:
        explicit Recorder(const LastTarget& state) : before_(state), state_(state), other_(state) {
            // The effect of a branch packet depends on bit 0, the instruction set; it copies or replaces all other
            // bits.
            other_.set_key(~state.key() ^ 1U);
        }
        [[nodiscard]] const LastTarget& state() const { return state_; }
        [[nodiscard]] Change change() const {
            if (!moved_) return {};
            return {copied_ | 1U, before_.key(), state_.key(), 0};
        }
        follow::PlainPacket read(const std::uint8_t* at) {
            using Is = follow::PlainPacket::Is;
            if ((*at & Atom::info.mask) == Atom::info.value) {
                const follow::FewOutcomes& atoms = atom_bytes[*at];
                if (atoms.count == 0) return {};
                return {Is::outcomes, 1, atoms.count, atoms.bits()};
            }
            if ((*at & BranchAddress::info.mask) != BranchAddress::info.value) return {};
            const unsigned bytes = state_.take(at);
            if (bytes == 0) return {};
            other_.take(at);
            copied_ |= state_.key() ^ other_.key();
            moved_ = true;
            return {Is::address, static_cast<std::uint8_t>(bytes), 0, 0};
        }

    private:
        LastTarget before_, state_, other_;
        std::uint32_t copied_ = 0;
        bool moved_ = false;
    };
};

}  // namespace waymark::pft
