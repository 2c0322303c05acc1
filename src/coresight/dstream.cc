#include "waymark/coresight/dstream.h"

namespace waymark::coresight {

namespace {

struct Unheard {
    void data(TraceId, Bytes, Offset) {}
    void trigger(TraceId, Offset, std::uint8_t) {}
    void gap(const Gap&) {}
    void reset(Offset) {}
};

/// The result of reading some bytes in a layout.
struct Reading {
    std::uint64_t bad = 0;      ///< bytes in impossible frames, or with reserved IDs
    std::uint64_t sources = 0;  ///< trace IDs met
};

Reading reading(DstreamLayout layout, Bytes head) {
    Unheard unheard;
    DstreamDeformatter deformatter(layout);
    deformatter.feed(head, unheard);
    deformatter.finish(unheard);
    const Totals t = deformatter.totals();
    Reading out;
    for (unsigned id = 1; id < trace_ids; ++id) out.sources += t.data[id] != 0 ? 1 : 0;
    out.bad = t.lost[static_cast<unsigned>(GapReason::framing)] + t.data_bytes(TraceIdClass::reserved);
    // Bytes before the first sync are usually not decoded; without any sync, there is no evidence for the layout.
    if (layout.framing == Framing::tpiu && t.fsyncs == 0) out.bad += t.lost_bytes();
    return out;
}

/// A footer that is read as trace breaks frames in each block; a few other damaged frames are possible.
bool much_better(const Reading& a, const Reading& b) { return a.sources != 0 && 4 * a.bad < b.bad; }

/// Whether the last eight bytes of all blocks are equal, and those before them are not.
bool same_footers(Bytes head) {
    constexpr std::size_t least_blocks = 4;
    const std::size_t count = head.size() / dstream_block_bytes;
    const auto same = [&](std::size_t at) {
        for (std::size_t i = 1; i < count; ++i)
            for (std::size_t k = at; k < at + dstream_footer_bytes; ++k)
                if (head[i * dstream_block_bytes + k] != head[k]) return false;
        return true;
    };
    return count >= least_blocks && same(dstream_frame_bytes) && !same(dstream_frame_bytes - dstream_footer_bytes);
}

}  // namespace

std::vector<std::uint8_t> without_dstream_footers(Bytes bytes, Offset first) {
    std::vector<std::uint8_t> out;
    out.reserve(bytes.size());
    for (std::size_t i = 0; i < bytes.size(); ++i)
        if ((first.value + i) % dstream_block_bytes < dstream_frame_bytes) out.push_back(bytes[i]);
    return out;
}

DstreamLayout dstream_layout(Bytes head) {
    const DstreamLayout syncs{Framing::tpiu, false}, syncs_in_blocks{Framing::tpiu, true},
        blocks{Framing::aligned, true};
    if (head.size() < 2 * dstream_block_bytes) return syncs;
    const Reading plain = reading(syncs, head);
    if (much_better(reading(syncs_in_blocks, head), plain)) return syncs_in_blocks;
    // Without syncs, frames that are off by eight bytes are rarely invalid, since ID bytes stay in even places. But the
    // contents of footers would show many sources, or are the same in each block.
    constexpr std::uint64_t plausible_sources = 8, implausible_more = 4;
    const Reading within = reading(blocks, head), memory = reading({Framing::aligned, false}, head);
    return within.sources <= plausible_sources && much_better(within, plain) &&
                   (within.sources + implausible_more <= memory.sources || same_footers(head))
               ? blocks
               : syncs;
}

}  // namespace waymark::coresight
