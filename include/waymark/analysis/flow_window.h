/// The part of a stream for which timeline and steps are kept.
#pragma once

#include <cstdint>
#include <limits>

namespace waymark::analysis {

/// Instructions [begin, end) of the stream, counted from 0. The default is the whole stream.
struct FlowWindow {
    std::uint64_t begin = 0, end = std::numeric_limits<std::uint64_t>::max();
    [[nodiscard]] bool is_all() const { return begin == 0 && end == std::numeric_limits<std::uint64_t>::max(); }
    friend bool operator==(const FlowWindow&, const FlowWindow&) = default;
};

}  // namespace waymark::analysis
