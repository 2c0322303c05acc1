#include "waymark/flow/way_counts.h"

#include <utility>

namespace waymark::flow {

void WayCounts::add_new(std::uint32_t edge, std::uint32_t block, std::uint64_t step) {
    if (size_ == most) {
        ++left_out_;
        return;
    }
    if (2 * ++size_ > rows_.size()) {
        const std::vector<EdgeWay> old = std::exchange(rows_, std::vector<EdgeWay>(2 * rows_.size()));
        --shift_;
        for (const EdgeWay& row : old)
            if (row.edge != 0) put(row);
    }
    put({edge, block, step});
}

void WayCounts::put(const EdgeWay& row) {
    std::size_t at = slot(row.edge, row.block);
    while (rows_[at].edge != 0) at = (at + 1) & (rows_.size() - 1);
    rows_[at] = row;
}

std::vector<EdgeWay> WayCounts::all() const {
    std::vector<EdgeWay> out;
    for (const EdgeWay& row : rows_)
        if (row.edge != 0 && row.times != 0) out.push_back(row);
    return out;
}

}  // namespace waymark::flow
