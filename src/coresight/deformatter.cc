#include "waymark/coresight/deformatter.h"

#include <numeric>

namespace waymark::coresight {

std::uint64_t Totals::data_bytes(TraceIdClass kind) const {
    std::uint64_t sum = 0;
    for (unsigned id = 0; id < trace_ids; ++id) {
        if (classify({static_cast<std::uint8_t>(id)}) == kind) sum += data[id];
    }
    return sum;
}

std::uint64_t Totals::lost_bytes() const { return std::accumulate(lost.begin(), lost.end(), std::uint64_t{0}); }

std::uint64_t Totals::accounted() const {
    return std::accumulate(data.begin(), data.end(), overhead_bytes() + footer_bytes + unassociated + lost_bytes());
}

}  // namespace waymark::coresight
