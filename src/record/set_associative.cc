#include "waymark/record/set_associative.h"

namespace waymark::record {

SetAssociative::SetAssociative(std::uint32_t entries, std::uint32_t ways)
    : mask_(entries / ways - 1), ways_(ways), entries_(entries) {}

std::uint8_t* SetAssociative::peek(std::uint64_t tag) {
    Entry* const set = &entries_[(tag & mask_) * ways_];
    for (std::uint32_t i = 0; i < ways_; ++i)
        if (set[i].tag == tag && set[i].state != 0) return &set[i].state;
    return nullptr;
}

SetAssociative::Evicted SetAssociative::insert(std::uint64_t tag, std::uint8_t state) {
    Entry* const set = &entries_[(tag & mask_) * ways_];
    // A free way is used before an entry is evicted.
    std::uint32_t last = ways_ - 1;
    for (std::uint32_t i = 0; i < ways_; ++i)
        if (set[i].state == 0) {
            last = i;
            break;
        }
    const Evicted evicted{set[last].tag, set[last].state};
    for (; last > 0; --last) set[last] = set[last - 1];
    set[0] = {tag, state};
    return evicted;
}

}  // namespace waymark::record
