/// Cycle counts and timestamps for the inner loop of the fast decoder: read from memory, without a branch for each
/// byte.
#pragma once

#include <cstdint>
#include <optional>

#include "elements.h"
#include "waymark/core/seven_bits.h"
#include "waymark/etm4/codec.h"
#include "waymark/etm4/packet.h"
#include "waymark/etm4/state.h"

namespace waymark::etm4 {

/// A cycle count packet of any format.
struct PlainCount {
    unsigned bytes;        ///< size of the packet; 0: there is none
    bool known;            ///< the packet has a count
    std::uint32_t count;   ///< as transmitted
    std::uint32_t commit;  ///< number of P0 elements; 0 in commit mode 1

    [[nodiscard]] WM_INLINE element::CycleCount element(std::uint32_t threshold) const {
        if (known) [[likely]]
            return {count + threshold, threshold};
        return {std::nullopt, threshold};
    }
    /// Reads the packet at `at`, where 9 bytes must be readable.
    [[nodiscard]] WM_INLINE static PlainCount at(const std::uint8_t* at, const PacketState& packets,
                                                 const Config& config) {
        const std::uint8_t header = *at;
        std::uint64_t wire = eight_bytes(at + 1);
        // The usual form has both numbers in one byte.
        if (header == CycleCountF1::info.value && !config.commit_mode_1 && (wire & 0x8080U) == 0) [[likely]]
            return {3, true, static_cast<std::uint32_t>(wire >> 8 & 0x7fU), static_cast<std::uint32_t>(wire & 0x7fU)};
        if (is_header<CycleCountF3>(header))
            return {1, true, header & 3U, config.commit_mode_1 ? 0 : (header >> 2 & 3U) + 1};
        if (is_header<CycleCountF2>(header)) {
            CycleCountF2 p;
            p.commit = at[1] >> 4;
            p.count = at[1] & 0xfU;
            p.from_maximum = (header & 1U) != 0;
            return {2, true, p.count, packets.count(p).commit.value_or(0)};
        }
        if (!is_header<CycleCountF1>(header)) return {};
        unsigned bytes = 1;
        std::uint32_t committed = 0;
        if (!config.commit_mode_1) {
            const SevenBits commit = SevenBits::of(wire);
            if (commit.bytes > number_field.max_bytes || commit.value >> number_field.width != 0) [[unlikely]]
                return {};
            committed = static_cast<std::uint32_t>(commit.value);
            wire >>= 8 * commit.bytes;
            bytes += commit.bytes;
        }
        if ((header & 1U) != 0) return {bytes, false, 0, committed};
        const SevenBits count = SevenBits::of(wire);
        static_assert(8 - number_field.max_bytes >= cycle_field.max_bytes && cycle_field.width == 21);
        if (count.bytes > cycle_field.max_bytes) [[unlikely]]
            return {};
        return {bytes + count.bytes, true, static_cast<std::uint32_t>(count.value), committed};
    }
};

/// Reads the timestamp packet at `at`, where 18 bytes must be readable. Returns its size; 0 if there is none.
[[nodiscard]] WM_INLINE unsigned read_timestamp(const std::uint8_t* at, Timestamp& p) {
    if (!is_header<Timestamp>(*at)) return 0;
    unsigned bytes = 1 + TimestampField::read_at_once(at + 1, p.value);
    p.has_cycles = (*at & 1U) != 0;
    if (!p.has_cycles) return bytes;
    const SevenBits cycles = SevenBits::of(eight_bytes(at + bytes));
    if (cycles.bytes > cycle_field.max_bytes) [[unlikely]]
        return 0;
    p.cycles = static_cast<std::uint32_t>(cycles.value);
    return bytes + cycles.bytes;
}

}  // namespace waymark::etm4
