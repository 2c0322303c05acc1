/// The address history in the inner loop of the fast decoder: three numbers in registers.
#pragma once

#include <array>
#include <cstdint>

#include "waymark/core/types.h"
#include "waymark/etm4/codec.h"
#include "waymark/etm4/state.h"
#include "waymark/follow/block_cache.h"

namespace waymark::etm4 {

/// Packs an address into one number: bit 0 of an address is 0, so it stores the alignment.
[[nodiscard]] inline std::uint64_t pack(const KnownAddress& place) {
    return place.address.value | (place.is1 ? 1U : 0U);
}
[[nodiscard]] inline KnownAddress unpack(std::uint64_t packed) {
    return {{packed & ~std::uint64_t{1}}, (packed & 1U) != 0};
}

/// The target of a packed address, where a block begins.
struct FlowTarget {
    std::uint64_t packed;
    bool a64;  ///< the context is AArch64

    /// Whether an instruction of the context's instruction set can have this address.
    [[nodiscard]] WM_INLINE bool regular() const { return (packed & (a64 ? 2U : (~packed & 1U) << 1)) == 0; }
    [[nodiscard]] WM_INLINE std::uint32_t high_half() const {
        return a64 ? static_cast<std::uint32_t>(packed >> 32) : 0;
    }
    /// The address as follow::Starts::key. Precondition: regular().
    [[nodiscard]] WM_INLINE std::uint32_t key() const {
        const auto low = static_cast<std::uint32_t>(packed);
        return a64 ? (low & ~1U) | 2U : low;
    }
};

/// Finds the blocks of targets. Valid until a block is added.
class TargetFinder {
public:
    TargetFinder(const follow::BlockCache& cache, std::uint32_t high_half)
        : cache_(cache), window_(cache.window(high_half)) {}

    /// Position of the block; negative if it is not known.
    [[nodiscard]] WM_INLINE follow::Position find(const FlowTarget& target) {
        if (target.high_half() != window_.high_half) [[unlikely]]
            window_ = cache_.window(target.high_half());
        return target.regular() ? window_.starts.find(target.key()) : follow::nowhere;
    }

private:
    const follow::BlockCache& cache_;
    follow::BlockCache::Window window_;
};

/// All bits of all entries are known, because a Trace Info was read.
class RecentAddresses {
public:
    explicit RecentAddresses(const AddressHistory& history)
        : newest_(pack(history.entry(0))), middle_(pack(history.entry(1))), oldest_(pack(history.entry(2))) {}
    /// Copies the entries to `history`.
    void give(AddressHistory& history) const {
        for (const std::uint64_t entry : {oldest_, middle_, newest_}) history.push(unpack(entry));
    }
    [[nodiscard]] WM_INLINE std::uint64_t newest() const { return newest_; }
    /// Whether entries were added.
    [[nodiscard]] WM_INLINE bool moved() const { return moved_; }
    using Entries = std::array<std::uint64_t, 3>;  ///< packed, the newest first
    [[nodiscard]] WM_INLINE Entries entries() const { return {newest_, middle_, oldest_}; }
    WM_INLINE void set(const Entries& entries) {
        moved_ = true;
        newest_ = entries[0];
        middle_ = entries[1];
        oldest_ = entries[2];
    }

    /// Reads the short, long or exact match address packet at `at`, where 9 bytes must be readable; its address becomes
    /// the newest entry. Returns the size of the packet.
    WM_INLINE unsigned take(const std::uint8_t* at) { return take(at, at[0]); }
    /// The same for a Source Address packet, which has the form of an address packet, but another header.
    WM_INLINE unsigned take_source(const std::uint8_t* at) {
        const unsigned header = at[0];
        const unsigned before = header < 0xb4 ? 0x20 : header < 0xb6 ? 0x1f : header < 0xb8 ? 0x1c : 0x1b;
        return take(at, static_cast<std::uint8_t>(header - before));
    }
    /// The packed address becomes the newest entry.
    WM_INLINE void push(std::uint64_t entry) {
        oldest_ = middle_;
        middle_ = newest_;
        newest_ = entry;
        moved_ = true;
    }

private:
    WM_INLINE unsigned take(const std::uint8_t* at, std::uint8_t header) {
        std::uint64_t sent = 0;
        for (unsigned i = 0; i < 8; ++i) sent |= std::uint64_t{at[1 + i]} << 8 * i;
        if (header < 0x94) {
            push(header == 0x90 ? newest_ : header == 0x91 ? middle_ : oldest_);
            return 1;
        }
        if (header < 0x98) {
            const std::uint64_t is1 = header & 1U ? 0 : 1;
            // 0x95 is IS0, 0x96 IS1: address bits from 2 or 1 on, 7 of them, or 15 if bit 7 of the first byte is 1.
            const std::uint64_t two = sent >> 7 & 1U;
            const std::uint64_t bits = (sent & 0x7fU) | (sent >> 1 & 0x7f80U & (0U - two));
            const std::uint64_t covered = 0x1ffU | (0x1fe00U & (0U - two));
            push((newest_ & ~(covered >> is1)) | bits << (2 - is1) | is1);
            return static_cast<unsigned>(2 + two);
        }
        // 0x9a and 0x9d are IS0: bits 8:2, 15:9. 0x9b and 0x9e are IS1: bits 7:1, 15:8.
        const std::uint64_t is1 = header == 0x9b || header == 0x9e ? 1 : 0;
        const std::uint64_t low =
            is1 != 0 ? (sent & 0x7fU) << 1 | (sent & 0xff00U) : (sent & 0x7fU) << 2 | (sent & 0x7f00U) << 1;
        const std::uint64_t whole = (sent & ~std::uint64_t{0xffff}) | low | is1;
        if (header < 0x9c) {
            push((newest_ & ~std::uint64_t{0xffff'ffff}) | (whole & 0xffff'ffffU));
            return 5;
        }
        push(whole);
        return 9;
    }

    bool moved_ = false;
    std::uint64_t newest_, middle_, oldest_;
};

}  // namespace waymark::etm4
