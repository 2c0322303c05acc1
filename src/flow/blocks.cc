#include "waymark/flow/blocks.h"

#include <algorithm>

namespace waymark::flow {

std::size_t BlockTable::Hash::operator()(const Block& b) const {
    // Where a block starts, how long it is and which image it stands in nearly always tell it apart.
    std::uint64_t h = b.start * 0x9e3779b97f4a7c15U;
    h ^= (static_cast<std::uint64_t>(b.section) << 32 | b.bytes) * 0xc2b2ae3d27d4eb4fU;
    return static_cast<std::size_t>(h ^ (h >> 29));
}

std::uint32_t BlockTable::intern(const Block& block) {
    const auto [found, added] = ids_.try_emplace(block, static_cast<std::uint32_t>(size_));
    if (!added) return found->second;
    if (size_ == capacity_) {
        capacity_ = std::max<std::size_t>(1024, capacity_ * 2);
        std::shared_ptr<Block[]> bigger(new Block[capacity_]);
        std::copy_n(current_.get(), size_, bigger.get());
        if (current_) outgrown_.push_back(std::move(current_));
        current_ = std::move(bigger);
    }
    current_[static_cast<std::ptrdiff_t>(size_)] = block;
    return static_cast<std::uint32_t>(size_++);
}

void BatchWriter::flush() {
    if (count_ == 0 && events_.empty()) return;
    sink_.consume({table_.blocks(), base_, std::span(ranges_).first(count_), events_});
    count_ = 0;
    events_.clear();
}

}  // namespace waymark::flow
