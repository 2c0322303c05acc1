/// The return stack of a trace unit, as decoders keep it: a taken branch with link pushes its return address, and a
/// return to that address needs no address in the trace.
#pragma once

#include <array>
#include <cstddef>

#include "waymark/follow/place.h"

namespace waymark::follow {

/// The depth of the deepest known unit; the oldest entry is discarded. A unit with fewer entries sends an address if
/// its own stack is empty, so its depth need not be known.
class ReturnStack {
public:
    static constexpr std::size_t depth = 16;
    struct Entry {
        Place place;
        bool ns{};  ///< the security state after the return
        /// For a fast follower: the block of the call, in the cache with this serial number; 0: no block.
        std::uint32_t cache{};
        Position call{};
        friend bool operator==(const Entry&, const Entry&) = default;
    };

    void push(const Entry& entry) {
        top_ = (top_ + 1) % depth;
        entries_[top_] = entry;
        if (size_ < depth) ++size_;
    }
    /// Precondition: not empty.
    Entry pop() {
        const Entry entry = entries_[top_];
        top_ = (top_ + depth - 1) % depth;
        --size_;
        return entry;
    }
    /// The entry `below` entries under the top. Precondition: below < size().
    [[nodiscard]] WM_INLINE const Entry& top(std::size_t below = 0) const {
        return entries_[(top_ + depth - below) % depth];
    }
    [[nodiscard]] bool empty() const { return size_ == 0; }
    [[nodiscard]] std::size_t size() const { return size_; }
    void clear() { size_ = 0; }

private:
    std::array<Entry, depth> entries_{};
    std::size_t top_ = 0, size_ = 0;
};

}  // namespace waymark::follow
