#include "waymark/flow/blocks.h"

#include <algorithm>

namespace waymark::flow {

namespace {
std::uint64_t hash(const Block& b) {
    // Where a block starts, how long it is and which image it stands in nearly always tell it apart.
    const std::uint64_t h =
        (b.start ^ static_cast<std::uint64_t>(b.section) << 40 ^ static_cast<std::uint64_t>(b.bytes) << 32);
    return (h ^ h >> 29) * 0x9e3779b97f4a7c15U;
}
}  // namespace

std::span<const Block> BlockTable::blocks() const {
    const std::scoped_lock lock(mutex_);
    return {current_.get(), size_};
}

std::uint32_t BlockTable::intern(const Block& block) {
    const std::uint64_t h = hash(block);
    const std::scoped_lock lock(mutex_);
    std::size_t slot = slot_of(h);
    for (; slots_[slot] != none; slot = (slot + 1) & (slots_.size() - 1))
        if (current_[static_cast<std::ptrdiff_t>(slots_[slot])] == block) return slots_[slot];
    const auto id = static_cast<std::uint32_t>(size_);
    if (size_ == capacity_) {
        capacity_ = std::max<std::size_t>(1024, capacity_ * 2);
        std::shared_ptr<Block[]> bigger(new Block[capacity_]);
        std::copy_n(current_.get(), size_, bigger.get());
        if (current_) outgrown_.push_back(std::move(current_));
        current_ = std::move(bigger);
    }
    current_[static_cast<std::ptrdiff_t>(size_++)] = block;
    slots_[slot] = id;
    if (2 * size_ > slots_.size()) grow();
    return id;
}

void BlockTable::grow() {
    slots_.assign(2 * slots_.size(), none);
    --shift_;
    for (std::uint32_t id = 0; id < size_; ++id) {
        std::size_t slot = slot_of(hash(current_[static_cast<std::ptrdiff_t>(id)]));
        while (slots_[slot] != none) slot = (slot + 1) & (slots_.size() - 1);
        slots_[slot] = id;
    }
}

void BatchWriter::flush() {
    Owned& b = *batch_;
    if (b.count == 0 && b.events.empty()) return;
    if (sink_ != nullptr) {
        sink_->consume(b.batch(table_.blocks()));
        b.count = 0;
        b.events.clear();
        return;
    }
    const Offset base = b.base;
    kept_.push_back(std::move(batch_));
    if (spare_.empty()) {
        batch_.reset(new Owned);
    } else {
        batch_ = std::move(spare_.back());
        spare_.pop_back();
    }
    batch_->base = base;
}

void BatchWriter::range_in_next(std::uint32_t edge, Offset offset, std::uint32_t cycles) {
    next(offset);
    range(edge, offset, cycles);
}

std::vector<std::unique_ptr<BatchWriter::Owned>> BatchWriter::take() {
    flush();
    return std::exchange(kept_, {});
}

void BatchWriter::recycle(std::vector<std::unique_ptr<Owned>>&& batches) {
    for (std::unique_ptr<Owned>& batch : batches) {
        batch->count = 0;
        batch->events.clear();
        spare_.push_back(std::move(batch));
    }
    batches.clear();
}

}  // namespace waymark::flow
