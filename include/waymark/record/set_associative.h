/// The sets and ways of a modelled cache or TLB.
#pragma once

#include <cstdint>
#include <vector>

namespace waymark::record {

/// Sets of ways, the most recently used first.
class SetAssociative {
public:
    SetAssociative(std::uint32_t entries, std::uint32_t ways);
    /// The state of an entry, which becomes the most recent one; null if it is not present.
    [[nodiscard]] std::uint8_t* find(std::uint64_t tag) {
        Entry* const set = &entries_[(tag & mask_) * ways_];
        if (set->tag == tag && set->state != 0) return &set->state;
        for (std::uint32_t i = 1; i < ways_; ++i) {
            if (set[i].tag != tag || set[i].state == 0) continue;
            const Entry found = set[i];
            for (; i > 0; --i) set[i] = set[i - 1];
            set[0] = found;
            return &set->state;
        }
        return nullptr;
    }
    /// The same without making the entry the most recent.
    [[nodiscard]] std::uint8_t* peek(std::uint64_t tag);
    struct Evicted {
        std::uint64_t tag;
        std::uint8_t state;  ///< 0: no entry had to leave
    };
    /// Precondition: the entry is not present; `state` is not 0.
    Evicted insert(std::uint64_t tag, std::uint8_t state);

private:
    struct Entry {
        std::uint64_t tag = 0;
        std::uint8_t state = 0;
    };
    std::uint64_t mask_;
    std::uint32_t ways_;
    std::vector<Entry> entries_;
};

}  // namespace waymark::record
