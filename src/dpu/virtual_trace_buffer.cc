#include <algorithm>

#include "waymark/dpu/encoder.h"
#include "waymark/dpu/model.h"
#include "waymark/dpu/vtb.h"

namespace waymark::dpu {

VirtualTraceBuffer::VirtualTraceBuffer(std::uint32_t first, std::uint32_t last, ByteOrder order)
    : first_(line_of(first)), order_(order), bytes_(std::size_t{line_of(last) - line_of(first)} + line_bytes) {}

bool VirtualTraceBuffer::store(const Burst& burst) {
    const std::uint64_t at = std::uint64_t{burst.address} - first_;
    const std::uint64_t bytes = std::uint64_t{burst.fixed ? 1U : burst.lines} * line_bytes;
    if (burst.address < first_ || at + bytes > bytes_.size()) return false;
    std::vector<std::uint8_t> line;
    for (const std::uint32_t word : burst.used()) append_word(line, word, order_);
    std::copy(line.end() - static_cast<std::ptrdiff_t>(bytes), line.end(),
              bytes_.begin() + static_cast<std::ptrdiff_t>(at));
    return true;
}

std::uint32_t VirtualTraceBuffer::word(std::uint32_t address) const {
    const std::size_t at = address - first_;
    std::uint32_t value = 0;
    for (unsigned i = 0; i < 4; ++i)
        value |= std::uint32_t{bytes_[at + i]} << 8 * (order_ == ByteOrder::big ? 3 - i : i);
    return value;
}

std::vector<std::uint32_t> VirtualTraceBuffer::in_order(std::uint32_t tw, bool wrapped) const {
    std::vector<std::uint32_t> out;
    const auto end = static_cast<std::uint32_t>(first_ + bytes_.size());
    if (wrapped)
        for (std::uint32_t at = tw; at != end; at += 4) out.push_back(word(at));
    for (std::uint32_t at = first_; at != tw; at += 4) out.push_back(word(at));
    return out;
}

}  // namespace waymark::dpu
