/// Numbers keys in order of first use: the index of a table that grows with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace waymark::analysis {

/// Open addressing. `Key` has `==`, and `hash()` with good low bits.
template <class Key>
class KeyIndex {
public:
    static constexpr std::uint32_t full = 0xffffffff;
    /// The maximum number of keys.
    explicit KeyIndex(std::size_t most) : most_(most), slots_(1024, 0) {}

    /// The number of `key`; `full` if it is new and does not fit.
    std::uint32_t find_or_add(const Key& key) {
        std::size_t at = key.hash() & (slots_.size() - 1);
        while (slots_[at] != 0) {
            if (keys_[slots_[at] - 1] == key) return slots_[at] - 1;
            at = (at + 1) & (slots_.size() - 1);
        }
        if (keys_.size() == most_) return full;
        keys_.push_back(key);
        slots_[at] = static_cast<std::uint32_t>(keys_.size());
        if (keys_.size() * 2 > slots_.size()) grow();
        return static_cast<std::uint32_t>(keys_.size() - 1);
    }
    /// The number of `key`; `full` if it is not there.
    [[nodiscard]] std::uint32_t find(const Key& key) const {
        for (std::size_t at = key.hash() & (slots_.size() - 1); slots_[at] != 0; at = (at + 1) & (slots_.size() - 1))
            if (keys_[slots_[at] - 1] == key) return slots_[at] - 1;
        return full;
    }
    [[nodiscard]] const std::vector<Key>& keys() const { return keys_; }

private:
    void grow() {
        slots_.assign(slots_.size() * 2, 0);
        for (std::size_t i = 0; i < keys_.size(); ++i) {
            std::size_t at = keys_[i].hash() & (slots_.size() - 1);
            while (slots_[at] != 0) at = (at + 1) & (slots_.size() - 1);
            slots_[at] = static_cast<std::uint32_t>(i + 1);
        }
    }

    std::size_t most_;
    std::vector<std::uint32_t> slots_;  // number plus 1; 0: free
    std::vector<Key> keys_;
};

/// A hash of two numbers.
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
    std::uint64_t x = (a ^ (b * 0x9e37'79b9'7f4a'7c15U)) * 0xbf58'476d'1ce4'e5b9U;
    x ^= x >> 29;
    x *= 0x94d0'49bb'1331'11ebU;
    return x ^ x >> 32;
}

}  // namespace waymark::analysis
