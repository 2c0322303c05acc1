/// Counts how often each indirect branch led to each place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "waymark/core/types.h"
#include "waymark/flow/flow.h"

namespace waymark::flow {

/// Sums by edge and block. Only odd edges occur, which are edges of taken branches.
class WayCounts {
public:
    /// Maximum number of distinct ways; further ones are counted as dropped.
    static constexpr std::size_t most = std::size_t{1} << 22;

    /// `step` may be negative, modulo 2^64.
    WM_INLINE void add(std::uint32_t edge, std::uint32_t block, std::uint64_t step) {
        for (std::size_t at = slot(edge, block);; at = (at + 1) & (rows_.size() - 1)) {
            EdgeWay& row = rows_[at];
            if (row.edge == edge && row.block == block) [[likely]] {
                row.times += step;
                return;
            }
            if (row.edge == 0) [[unlikely]]
                return add_new(edge, block, step);
        }
    }
    /// The ways with a nonzero count, unordered.
    [[nodiscard]] std::vector<EdgeWay> all() const;
    [[nodiscard]] std::uint64_t left_out() const { return left_out_; }

private:
    [[nodiscard]] WM_INLINE std::size_t slot(std::uint32_t edge, std::uint32_t block) const {
        const std::uint64_t key = std::uint64_t{edge} << 32 | block;
        return static_cast<std::size_t>(key * 0x9e3779b97f4a7c15U >> shift_);
    }
    [[gnu::noinline]] void add_new(std::uint32_t edge, std::uint32_t block, std::uint64_t step);

    void put(const EdgeWay& row);

    std::vector<EdgeWay> rows_ = std::vector<EdgeWay>(1024);  // open addressing, at most half full; edge 0: free
    unsigned shift_ = 64 - 10;
    std::size_t size_ = 0;
    std::uint64_t left_out_ = 0;
};

}  // namespace waymark::flow
