/// A hash table for searches that clear it often.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace waymark::follow {

/// Positions in a list, by a key. Open addressing: an entry needs no separate allocation, and clearing takes no time.
template <class Key, class Hash>
class Positions {
public:
    void clear() {
        // After few entries, fewer slots are used, which are then in the processor's caches.
        if (size_ * 16 < used_) used_ = std::max(used_ / 4, std::min(least, slots_.size()));
        size_ = 0;
        if (++round_ != 0) return;
        // After 2^32 rounds, slots of the first round would seem to be in use.
        for (Slot& slot : slots_) slot.round = 0;
        round_ = 1;
    }
    /// The position of `key`, which becomes `position` if the key is new; and whether it is new.
    [[nodiscard]] std::pair<std::uint32_t, bool> try_emplace(const Key& key, std::uint32_t position) {
        if ((size_ + 1) * 2 > used_) grow();
        Slot& slot = slots_[slot_of(key)];
        if (slot.round == round_) return {slot.position, false};
        slot = {key, position, round_};
        ++size_;
        return {position, true};
    }

private:
    struct Slot {
        Key key{};
        std::uint32_t position = 0;
        std::uint32_t round = 0;  // taken if it equals `round_`
    };
    static constexpr std::size_t least = 64;
    /// The key's slot, or the free slot for it. The number of used slots is a power of two.
    [[nodiscard]] std::size_t slot_of(const Key& key) const {
        const std::size_t mask = used_ - 1;
        std::size_t at = Hash{}(key)&mask;
        while (slots_[at].round == round_ && !(slots_[at].key == key)) at = (at + 1) & mask;
        return at;
    }
    void grow() {
        std::vector<Slot> taken;
        for (std::size_t at = 0; at < used_; ++at)
            if (slots_[at].round == round_) taken.push_back(std::exchange(slots_[at], {}));
        used_ = used_ == 0 ? least : used_ * 2;
        if (slots_.size() < used_) slots_.resize(used_);
        for (Slot& slot : taken) slots_[slot_of(slot.key)] = slot;
    }

    std::vector<Slot> slots_;
    std::size_t used_ = 0;  // of the slots
    std::size_t size_ = 0;
    std::uint32_t round_ = 1;
};

}  // namespace waymark::follow
