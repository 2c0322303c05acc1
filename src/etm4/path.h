/// Support of ETMv4 and ETE for follow::KnownPaths.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "recent_addresses.h"
#include "waymark/etm4/codec.h"
#include "waymark/follow/paths.h"

namespace waymark::etm4 {

/// Short, long and exact match addresses, without context.
[[nodiscard]] constexpr bool is_address(std::uint8_t header) {
    constexpr std::uint32_t headers = [] {
        std::uint32_t all = 0;
        for (unsigned i = 0; i < 16; ++i) {
            const auto h = static_cast<std::uint8_t>(0x90 + i);
            all |= is_header<ShortAddress>(h) || is_header<LongAddress>(h) || is_header<ExactMatchAddress>(h) ? 1U << i
                                                                                                              : 0U;
        }
        return all;
    }();
    return header >> 4 == 9 && (headers >> (header & 15U) & 1U) != 0;
}

/// Atoms of any form.
[[nodiscard]] constexpr bool is_atom(std::uint8_t header) { return header >= 0xc0; }

/// Source addresses, which an ETE sends.
[[nodiscard]] constexpr bool is_source_address(std::uint8_t header) {
    return is_header<ShortSourceAddress>(header) || is_header<LongSourceAddress>(header) ||
           is_header<ExactMatchSourceAddress>(header);
}

struct PathPackets {
    using State = RecentAddresses;
    using Entries = RecentAddresses::Entries;
    static constexpr unsigned most_outcomes = 24;
    static constexpr bool address_is_outcome = false;

    struct Change {
        Entries needed{};  ///< bits of the earlier entries, the newest first
        Entries before{};
        Entries after{};         ///< entries that address packets added
        std::uint8_t added = 0;  ///< number of these entries: 3 if there are more

        [[nodiscard]] WM_INLINE bool fits(const RecentAddresses& state) const {
            const Entries now = state.entries();
            std::uint64_t differ = 0;
            for (std::size_t i = 0; i < now.size(); ++i) differ |= (now[i] ^ before[i]) & needed[i];
            return differ == 0;
        }
        WM_INLINE void apply(RecentAddresses& state) const {
            const Entries old = state.entries();
            switch (added) {
                case 0: return;
                case 1: return state.set({after[0], old[0], old[1]});
                case 2: return state.set({after[0], after[1], old[0]});
                default: return state.set(after);
            }
        }
    };

    class Recorder {
    public:
        explicit Recorder(const RecentAddresses& state)
            : before_(state.entries()), state_(state), others_{state, state, state} {
            // Address packets copy bits of entries, or replace them.
            for (std::size_t i = 0; i < others_.size(); ++i) {
                Entries other = before_;
                other[i] = ~other[i];
                others_[i].set(other);
            }
        }
        [[nodiscard]] const RecentAddresses& state() const { return state_; }
        [[nodiscard]] Change change() const { return {copied_, before_, state_.entries(), added_}; }
        follow::PlainPacket read(const std::uint8_t* at) {
            using Is = follow::PlainPacket::Is;
            if (is_atom(*at)) {
                const Atoms& atoms = atom_table[*at & 0x3fU];
                return {Is::outcomes, 1, atoms.count, atoms.e};
            }
            if (!is_address(*at)) return {};
            const unsigned bytes = state_.take(at);
            for (std::size_t i = 0; i < others_.size(); ++i) {
                others_[i].take(at);
                copied_[i] |= state_.newest() ^ others_[i].newest();
            }
            added_ = static_cast<std::uint8_t>(added_ < 3 ? added_ + 1 : 3);
            return {Is::address, static_cast<std::uint8_t>(bytes), 0, 0};
        }

    private:
        Entries before_;
        RecentAddresses state_;
        std::array<RecentAddresses, 3> others_;  // each differs in all bits of one entry
        Entries copied_{};
        std::uint8_t added_ = 0;
    };
};

}  // namespace waymark::etm4
