#include "waymark/dpu/element.h"

namespace waymark::dpu {

std::string_view name(ElementKind kind) {
    constexpr std::array<std::string_view, element_kinds> names{
        "task switch", "flow",    "sample", "pair",         "pc",  "short loop", "long loop", "user data",
        "user data",   "context", "closed", "lost entries", "gap", "held",       "enabled"};
    return names.at(static_cast<std::size_t>(kind));
}

std::uint64_t Totals::lost_bytes() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t each : gap_bytes) sum += each;
    return sum - gap_bytes[static_cast<std::size_t>(GapReason::padding)];
}

}  // namespace waymark::dpu
