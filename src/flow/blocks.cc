#include "waymark/flow/blocks.h"

#include <algorithm>
#include <bit>
#include <mutex>

#include "waymark/flow/breaks_flow.h"

namespace waymark::flow {

namespace {
std::uint64_t hash(const Block& b) {
    // Start, length and image nearly always identify a block.
    const std::uint64_t h =
        (b.start ^ static_cast<std::uint64_t>(b.section) << 40 ^ static_cast<std::uint64_t>(b.bytes) << 32);
    return (h ^ h >> 29) * 0x9e3779b97f4a7c15U;
}
}  // namespace

BlockTable::Rows::Rows(std::size_t most)
    : shift(64 - static_cast<unsigned>(std::countr_zero(2 * most))), slots(2 * most) {
    blocks.reserve(most);
    first = blocks.data();
    for (auto& slot : slots) slot.store(none, std::memory_order_relaxed);
}

BlockTable::Rows::Found BlockTable::Rows::find(const Block& block) const {
    for (auto i = static_cast<std::size_t>(hash(block) >> shift);; i = (i + 1) & (slots.size() - 1)) {
        const std::uint32_t id = slots[i].load(std::memory_order_acquire);
        if (id == none || first[id] == block) return {id, i};
    }
}

void BlockTable::Rows::add(const Block& block, std::size_t slot) {
    const auto id = static_cast<std::uint32_t>(blocks.size());
    blocks.push_back(block);
    slots[slot].store(id, std::memory_order_release);
}

BlockTable::BlockTable() { rows_.store(all_.emplace_back(std::make_unique<Rows>(1024)).get()); }

std::span<const Block> BlockTable::blocks() const {
    // The order matters: an index that is used after a row was counted contains the row.
    const std::size_t size = size_.load(std::memory_order_acquire);
    return {rows_.load(std::memory_order_acquire)->first, size};
}

std::uint32_t BlockTable::intern(const Block& block) {
    Rows* rows = rows_.load(std::memory_order_acquire);
    auto found = rows->find(block);
    if (found.id != none) return found.id;

    // Another core may have these cache lines; prefetch them while the lock is taken.
    __builtin_prefetch(&rows->slots[found.slot], 1);
    __builtin_prefetch(rows->first + size_.load(std::memory_order_relaxed), 1);
    const std::scoped_lock lock(mutex_);
    const std::size_t size = size_.load(std::memory_order_relaxed);
    rows = rows_.load(std::memory_order_relaxed);
    // Another thread may have added the block meanwhile.
    found = rows->find(block);
    if (found.id != none) return found.id;
    if (size == rows->blocks.capacity()) {
        const Rows& full = *rows;
        rows = all_.emplace_back(std::make_unique<Rows>(2 * size)).get();
        for (const Block& b : full.blocks) rows->add(b, rows->find(b).slot);
        found = rows->find(block);
        rows_.store(rows, std::memory_order_release);
    }
    rows->add(block, found.slot);
    size_.store(size + 1, std::memory_order_release);
    return static_cast<std::uint32_t>(size);
}

void BatchWriter::find_room() {
    constexpr std::size_t least = batch_ranges + most_in_path;
    Owned& b = *batch_;
    if (room_end_ != nullptr && static_cast<std::size_t>(room_end_ - b.ranges) >= least) return;
    const std::span<Range> room = sink_->room(least);
    const bool enough = room.size() >= least;
    b.ranges = enough ? room.data() : b.own.data();
    room_end_ = enough ? room.data() + room.size() : nullptr;
}

void BatchWriter::flush() {
    Owned& b = *batch_;
    if (b.count == 0 && b.events.empty()) return;
    if (sink_ != nullptr) {
        sink_->consume(b.batch(table_.blocks()));
        if (room_end_ != nullptr && b.count != 0) {
            b.ranges += b.count;
            find_room();
        }
        b.clear();
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

void BatchWriter::make_room_for_event() {
    if (batch_->events.size() == batch_ranges) flush();
    if (batch_->events.full()) batch_->events.grow();
}

void BatchWriter::range_in_next(std::uint32_t edge, Offset offset, std::uint32_t cycles) {
    next(offset);
    range(edge, offset, cycles);
}

void CountWriter::before_event(const What& what) {
    if (const auto* context = std::get_if<Context>(&what)) {
        if (context->context_id != state_.context_id || context->vmid != state_.vmid) state_.from = 0;
        state_.context_id = context->context_id;
        state_.vmid = context->vmid;
    } else if (const auto* exception = std::get_if<Exception>(&what)) {
        if (exception->preferred_return) arrived(EdgeWay::no_block);
        state_.from = 0;
    } else if (breaks_flow(what)) {
        state_.from = 0;
    }
}

std::vector<std::unique_ptr<BatchWriter::Owned>> BatchWriter::take() {
    flush();
    return std::exchange(kept_, {});
}

void BatchWriter::recycle(std::vector<std::unique_ptr<Owned>>&& batches) {
    for (std::unique_ptr<Owned>& batch : batches) {
        batch->clear();
        spare_.push_back(std::move(batch));
    }
    batches.clear();
}

}  // namespace waymark::flow
