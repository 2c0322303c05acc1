#include "waymark/dpu/vtb.h"

#include <fmt/format.h>

#include <algorithm>

namespace waymark::dpu {

namespace {

/// The last `bytes` bytes before `end` in a ring.
std::vector<Stretch> ring(std::uint64_t size, std::uint64_t end, std::uint64_t bytes) {
    std::vector<Stretch> out;
    const std::uint64_t newer = std::min(bytes, end), older = bytes - newer;
    if (older != 0) out.push_back({size - older, older});
    if (newer != 0) out.push_back({end - newer, newer});
    return out;
}

}  // namespace

std::uint64_t ReadingOrder::bytes() const {
    std::uint64_t sum = 0;
    for (const Stretch& stretch : stretches) sum += stretch.bytes;
    return sum;
}

Result<ReadingOrder> reading_order(const VtbState& state, std::uint64_t dump_bytes) {
    ReadingOrder out;
    if (state.single_address) {
        if (dump_bytes != 0) out.stretches.push_back({0, dump_bytes});
        return out;
    }
    const std::uint32_t tsa = line_of(state.tsa), tea = line_of(state.tea), tw = line_of(state.tw);
    if (tea < tsa)
        return Error{
            Errc::bad_format,
            fmt::format(
                "DP_TEA {:#010x} is lower than DP_TSA {:#010x}: the unit then writes nothing; check both registers",
                state.tea, state.tsa)};
    if (tw < tsa || tw > tea)
        return Error{
            Errc::bad_format,
            fmt::format("DP_TW {:#010x} lies outside the buffer from DP_TSA {:#010x} to DP_TEA {:#010x}; check "
                        "that all three were read from one unit after it had stopped",
                        state.tw, state.tsa, state.tea)};
    const std::uint64_t size = std::uint64_t{tea} - tsa + line_bytes, end = tw - tsa;
    std::uint64_t bytes = state.wrapped ? size : end;
    out.overwritten = state.wrapped;
    if (state.lines_written) {
        out.overwritten = *state.lines_written > size / line_bytes;
        bytes = std::min(*state.lines_written, size / line_bytes) * line_bytes;
    }
    bool missing = false;
    for (Stretch stretch : ring(size, end, bytes)) {
        const std::uint64_t there = dump_bytes > stretch.offset ? dump_bytes - stretch.offset : 0;
        const bool whole = there >= stretch.bytes;
        stretch.bytes = std::min(stretch.bytes, there);
        stretch.jump = missing;
        if (stretch.bytes != 0) out.stretches.push_back(stretch);
        missing = !whole;
        out.cut = missing;
    }
    return out;
}

Bytes without_unwritten(Bytes dump) {
    std::size_t end = dump.size();
    while (end != 0) {
        const std::size_t line = (end - 1) / line_bytes * line_bytes;
        if (std::any_of(dump.begin() + static_cast<std::ptrdiff_t>(line),
                        dump.begin() + static_cast<std::ptrdiff_t>(end), [](std::uint8_t byte) { return byte != 0; }))
            break;
        end = line;
    }
    return dump.first(end);
}

std::vector<std::optional<std::uint64_t>> period_starts(const VtbState& state, const ReadingOrder& order,
                                                        std::span<const PeriodStart> periods) {
    const std::uint64_t total = order.bytes();
    const std::uint64_t size = std::uint64_t{line_of(state.tea)} - line_of(state.tsa) + line_bytes;
    std::vector<std::optional<std::uint64_t>> out(periods.size());
    std::uint64_t since = 0;  // bytes written from the beginning of a period to the end
    std::uint32_t next = line_of(state.tw);
    for (std::size_t i = periods.size(); i-- > 0;) {
        const std::uint32_t tw = line_of(periods[i].tw);
        if (state.lines_written && periods[i].lines_written && *periods[i].lines_written <= *state.lines_written)
            since = (*state.lines_written - *periods[i].lines_written) * line_bytes;
        else
            since += (std::uint64_t{next} + size - tw) % size;
        next = tw;
        if (since <= total) out[i] = total - since;
    }
    return out;
}

Readout::Piece Readout::take(std::uint32_t tw, bool wrapped) {
    Piece out;
    const std::uint64_t from = line_of(at_) - line_of(tsa_), to = line_of(tw) - line_of(tsa_);
    // The ring wrapped and passed the place where reading stopped: the unread bytes from there on, and all earlier
    // ones, are lost.
    out.overrun = wrapped && to > from;
    const std::uint64_t bytes = out.overrun ? size_ : wrapped || to < from ? to + size_ - from : to - from;
    out.stretches = ring(size_, to, bytes);
    at_ = tw;
    return out;
}

}  // namespace waymark::dpu
