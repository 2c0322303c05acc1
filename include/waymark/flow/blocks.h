/// The blocks of a run, and the writer that turns a decoder's elements into batches.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "waymark/flow/flow.h"

namespace waymark::flow {

/// All distinct blocks of a run; ids are indices, given at first sight. Ids depend on the order in which code was met:
/// never print them or sort by them. Not safe for several threads.
class BlockTable {
public:
    /// The id of this block; the same block always has the same id.
    std::uint32_t intern(const Block& block);
    /// Stays valid, and stays as it was, while the table grows.
    [[nodiscard]] std::span<const Block> blocks() const { return {current_.get(), size_}; }

private:
    struct Hash {
        std::size_t operator()(const Block& b) const;
    };
    std::unordered_map<Block, std::uint32_t, Hash> ids_;
    std::shared_ptr<Block[]> current_;
    std::size_t size_ = 0, capacity_ = 0;
    std::vector<std::shared_ptr<Block[]>> outgrown_;  // spans handed out may still point there
};

/// Collects elements and hands them to a sink, about a thousand at a time.
class BatchWriter {
public:
    static constexpr std::size_t batch_ranges = 1024;

    BatchWriter(BlockTable& table, Sink& sink) : table_(table), sink_(sink) {}
    BatchWriter(const BatchWriter&) = delete;
    BatchWriter& operator=(const BatchWriter&) = delete;

    [[nodiscard]] BlockTable& table() { return table_; }

    WM_INLINE void range(std::uint32_t edge, Offset offset, std::uint32_t cycles = no_cycles) {
        if (count_ == batch_ranges || offset.value - base_.value > 0xffffffff) [[unlikely]]
            rebase(offset);
        ranges_[count_++] = {edge, static_cast<std::uint32_t>(offset - base_), cycles, 1};
    }
    void event(Offset offset, What what) {
        if (events_.size() == batch_ranges) flush();
        events_.push_back({static_cast<std::uint32_t>(count_), offset, std::move(what)});
    }
    /// Delivers what is there. Called by decoders at the end and by whoever needs what was decoded so far.
    void flush();

private:
    void rebase(Offset offset) {
        flush();
        base_ = offset;
    }

    BlockTable& table_;
    Sink& sink_;
    Offset base_{};
    std::size_t count_ = 0;
    std::array<Range, batch_ranges> ranges_;
    std::vector<Event> events_;
};

}  // namespace waymark::flow
