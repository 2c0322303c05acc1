/// Sequences of blocks that a thread executed before, by the numbers of their blocks: the sums that the truth adds for
/// each, and the unit's prepared form (docs/decisions/0024-remembered-sequences.md).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "waymark/core/types.h"
#include "waymark/flow/unit.h"

namespace waymark::record {

/// Consecutive blocks, each of which begins after a branch and ends with the next branch.
struct KnownSequence {
    static constexpr std::size_t blocks = flow::PreparedSequence::most_blocks;
    /// Numbers of blocks, two in each word: the block whose branch comes first, and the blocks that this branch and the
    /// next ones led to.
    struct Key {
        std::array<std::uint64_t, (blocks + 1) / 2> pairs{};

        Key() = default;
        /// `first`: the block whose branch comes first; `others`: the `blocks` blocks after it.
        WM_INLINE Key(std::uint32_t first, const std::uint32_t* others) {
            pairs[0] = first | std::uint64_t{others[0]} << 32;
            for (std::size_t n = 1; n < pairs.size(); ++n)
                pairs[n] = others[2 * n - 1] | std::uint64_t{others[2 * n]} << 32;
        }
        [[nodiscard]] WM_INLINE std::uint32_t number(std::size_t n) const {
            return static_cast<std::uint32_t>(pairs[n / 2] >> (n % 2 == 0 ? 0 : 32));
        }
        /// Compares without a call and without a jump for each word.
        [[nodiscard]] WM_INLINE bool is(const Key& other) const {
            std::uint64_t differs = 0;
            for (std::size_t n = 0; n < pairs.size(); ++n) differs |= pairs[n] ^ other.pairs[n];
            return differs == 0;
        }
    };
    struct Executed {
        std::uint64_t start, end;
    };
    Key key{};
    std::uint32_t instructions{};  ///< instructions of the blocks after the first
    std::array<Executed, blocks> ranges{};
    std::unique_ptr<flow::PreparedSequence> prepared{};
    /// The sequence for a unit that cannot take it at once; cycles count from its beginning.
    std::unique_ptr<std::array<flow::RetiredBlock, blocks>> retired{};
};

/// A table of fixed size: each sequence has one slot, and takes it from another sequence when it is seen for the second
/// time. If few sequences are found again, the table stops searching for a while.
class KnownSequences {
public:
    /// Null if the sequence is unknown, or the unit cannot take it at once.
    [[nodiscard]] WM_INLINE const KnownSequence* find(const KnownSequence::Key& key) {
        const std::size_t slot = slot_of(key);
        const KnownSequence& found = slots_[slot];
        ++tries_;
        if (!found.key.is(key) || found.prepared == nullptr) [[unlikely]]
            return nullptr;
        ++hits_;
        return &found;
    }
    /// Call it after a sequence was not found. Returns true if it should be learned now.
    [[nodiscard]] bool missed(const KnownSequence::Key& key) {
        if (tries_ >= tries_of_a_look) look();
        const std::size_t slot = slot_of(key);
        if (slots_[slot].key.is(key)) return false;  // the unit cannot take it at once
        std::uint64_t tag = 0;
        for (const std::uint64_t pair : key.pairs) tag = tag * 31 + pair;
        return std::exchange(seen_[slot], tag) == tag;
    }
    [[nodiscard]] KnownSequence& slot(const KnownSequence::Key& key) { return slots_[slot_of(key)]; }
    /// Whether searching is paused now.
    [[nodiscard]] bool rests() const { return pause_ != 0; }
    /// `count` blocks were followed without looking up a sequence.
    void followed(std::size_t count) { pause_ -= std::min(pause_, count); }

private:
    static constexpr unsigned slot_bits = 11;
    static constexpr std::uint32_t tries_of_a_look = 1024;
    static constexpr std::size_t shortest_pause = 4096, longest_pause = 1U << 18;

    [[nodiscard]] WM_INLINE static std::size_t slot_of(const KnownSequence::Key& key) {
        constexpr std::uint64_t odd[] = {0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f, 0x165667b19e3779f9,
                                         0xd6e8feb86659fd93};
        std::uint64_t hash = 0;
        for (std::size_t n = 0; n < key.pairs.size(); ++n) hash ^= key.pairs[n] * odd[n];
        return static_cast<std::size_t>(hash * odd[0] >> (64 - slot_bits));
    }
    void look() {
        const bool few = hits_ < tries_ / 4;
        next_pause_ = few ? std::min(next_pause_ * 2, longest_pause) : shortest_pause / 2;
        if (few) pause_ = next_pause_;
        tries_ = hits_ = 0;
    }

    std::vector<KnownSequence> slots_ = std::vector<KnownSequence>(std::size_t{1} << slot_bits);
    std::vector<std::uint64_t> seen_ = std::vector<std::uint64_t>(std::size_t{1} << slot_bits);
    std::uint32_t tries_ = 0, hits_ = 0;
    std::size_t pause_ = 0, next_pause_ = shortest_pause / 2;
};

}  // namespace waymark::record
