/// The block caches of the memory spaces that a follower has met.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "waymark/follow/block_cache.h"

namespace waymark::follow {

/// Spaces that see whole sections (isa::CodeReader::whole_sections), such as those of processes, share blocks and
/// links: each process has its own table only for targets of its indirect branches. Other spaces share nothing.
class BlockCaches {
public:
    /// `code` is borrowed. `logs`: shared by several followers of the same stream.
    BlockCaches(const Rules& rules, const isa::CodeReader& code, std::shared_ptr<BlockLogs> logs)
        : rules_(rules), code_(code), logs_(std::move(logs)) {}

    /// The cache of a space from CodeReader::view. Valid until the next call.
    [[nodiscard]] BlockCache& of(const isa::Space& space) {
        if (space.number != 0 && code_.whole_sections()) return of_number(space);
        for (const auto& cache : alone_)
            if (cache->space() == space) return *cache;
        // A stream with ever new contexts must not fill the memory.
        std::size_t rows = 0;
        for (const auto& cache : alone_) rows += cache->rows();
        if (alone_.size() == most_alone || rows > most_rows) {
            alone_.clear();
            if (logs_) logs_->clear();
        }
        return *alone_.emplace_back(
            std::make_unique<BlockCache>(rules_, code_, space, logs_ ? logs_->of(space) : nullptr));
    }
    /// The cache of the space with that number, if it shares blocks; null if there is none.
    [[nodiscard]] BlockCache* known(std::uint32_t number) const {
        const auto found = shared_.find(number);
        return found == shared_.end() ? nullptr : found->second.cache.get();
    }

private:
    static constexpr std::size_t most_alone = 64, most_shared = 4096, most_rows = std::size_t{1} << 21;
    struct Shared {
        std::unique_ptr<BlockCache> cache;
        std::uint64_t used{};
    };

    BlockCache& of_number(const isa::Space& space) {
        const auto found = shared_.find(space.number);
        if (found != shared_.end()) {
            found->second.used = ++uses_;
            return *found->second.cache;
        }
        if (store_ && store_->rows() > most_rows) {
            shared_.clear();
            store_.reset();
            if (logs_) logs_->clear();
        }
        if (!store_) store_ = std::make_shared<BlockStore>(rules_, logs_ ? logs_->of({}) : nullptr);
        if (shared_.size() == most_shared) forget_half();
        Shared& shared = shared_[space.number];
        shared.cache = std::make_unique<BlockCache>(rules_, code_, space, store_, true);
        shared.used = ++uses_;
        return *shared.cache;
    }
    /// Forgets the least recently used half.
    void forget_half() {
        std::vector<std::uint64_t> used;
        for (const auto& [number, shared] : shared_) used.push_back(shared.used);
        const auto middle = used.begin() + static_cast<std::ptrdiff_t>(used.size() / 2);
        std::nth_element(used.begin(), middle, used.end());
        std::erase_if(shared_, [&](const auto& shared) { return shared.second.used < *middle; });
    }

    const Rules rules_;
    const isa::CodeReader& code_;
    const std::shared_ptr<BlockLogs> logs_;
    std::vector<std::unique_ptr<BlockCache>> alone_;
    std::shared_ptr<BlockStore> store_;
    std::unordered_map<std::uint32_t, Shared> shared_;  // by number
    std::uint64_t uses_ = 0;
};

}  // namespace waymark::follow
