#include "waymark/follow/recover.h"

#include <algorithm>
#include <array>

namespace waymark::follow {

std::string_view name(HeadOutcome outcome) {
    constexpr std::array<std::string_view, 11> names{
        "recovered",
        "the stream begins with its A-sync",
        "no A-sync after which decoding can begin",
        "no chain of packets leads to the A-sync",
        "no program image",
        "no path through the program explains the packets",
        "several paths through the program explain the packets",
        "there is too little evidence for the one path that is left",
        "the limits of the search are reached",
        "the unit is programmed to trace more than branches",
        "no depth of speculation fits the commits",
    };
    return names[static_cast<unsigned>(outcome)];
}

std::string text(const Obstacles& obstacles) {
    std::string out;
    const auto add = [&](std::uint64_t count, const char* one, const char* many) {
        if (count == 0) return;
        if (!out.empty()) out += ", ";
        out += std::to_string(count) + " " + (count == 1 ? one : many);
    };
    add(obstacles.untraced, "Q element", "Q elements");
    add(obstacles.repeated, "address that repeats one from before the beginning",
        "addresses that repeat one from before the beginning");
    add(obstacles.lost, "loss of trace", "losses of trace");
    return out;
}

std::uint64_t HeadRecovery::bytes() const {
    std::uint64_t sum = 0;
    for (const HeadStretch& stretch : stretches) sum += stretch.end - stretch.first;
    return sum;
}
std::uint64_t HeadRecovery::bytes_before_async() const {
    std::uint64_t sum = 0;
    for (const HeadStretch& stretch : stretches) sum += std::min(stretch.end, async) - std::min(stretch.first, async);
    return sum;
}

}  // namespace waymark::follow
