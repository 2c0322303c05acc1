#include "waymark/coresight/bypass.h"

#include "waymark/core/result.h"

namespace waymark::coresight {

namespace {
constexpr std::uint8_t end_mark = 0x01;
}

Bytes strip_bypass_padding(Bytes capture, unsigned memory_width_bytes) {
    std::size_t mark = capture.size();
    for (unsigned zeros = 0; mark > 0 && zeros < memory_width_bytes; ++zeros) {
        --mark;
        if (capture[mark] == end_mark) return capture.first(mark);
        if (capture[mark] != 0) break;
    }
    return capture;
}

void append_bypass_padding(std::vector<std::uint8_t>& trace, unsigned memory_width_bytes) {
    WM_CHECK(memory_width_bytes > 0);
    trace.push_back(end_mark);
    while (trace.size() % memory_width_bytes != 0) trace.push_back(0);
}

}  // namespace waymark::coresight
