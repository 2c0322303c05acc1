#include "waymark/coresight/guess.h"

#include <algorithm>

#include "waymark/coresight/deformatter.h"
#include "waymark/coresight/dstream.h"

namespace waymark::coresight {

namespace {

struct Discard {
    void data(TraceId, Bytes, Offset) {}
    void trigger(TraceId, Offset, std::uint8_t) {}
    void gap(const Gap&) {}
    void reset(Offset) {}
};

Totals totals_as(Framing framing, Bytes head) {
    Discard discard;
    Deformatter deformatter({.framing = framing});
    deformatter.feed(head, discard);
    deformatter.finish(discard);
    return deformatter.totals();
}

std::uint64_t reserved_bytes(const Totals& totals) { return totals.data_bytes(TraceIdClass::reserved); }

std::uint64_t distinct_ids(const Totals& totals) {
    return static_cast<std::uint64_t>(
        std::count_if(totals.data.begin(), totals.data.end(), [](auto n) { return n > 0; }));
}

/// Whether the full syncs at frame positions come mostly in runs of several frames. A barrier in memory is one frame,
/// at a place where the buffer was drained or overflowed; a port repeats syncs while there is nothing to send.
bool idle_runs(Bytes head) {
    std::size_t long_runs = 0, short_runs = 0, run = 0;
    const auto end_run = [&] {
        if (run != 0) ++(run == 1 ? short_runs : long_runs);
        run = 0;
    };
    for (std::size_t at = 0; at + frame_bytes <= head.size(); at += frame_bytes)
        if (std::equal(barrier_frame.begin(), barrier_frame.end(), head.begin() + static_cast<std::ptrdiff_t>(at)))
            ++run;
        else
            end_run();
    end_run();
    return long_runs > short_runs;
}

FramingGuess raw(Confidence confidence, FramingEvidence evidence) { return {BufferKind::raw, confidence, evidence}; }

FramingGuess guess_without_footers(Bytes head) {
    if (head.size() < frame_bytes) return raw(Confidence::low, FramingEvidence::too_short);

    // Three full syncs at consistent distances are not an accident. Barriers in aligned memory are full syncs too, but
    // then all full syncs are barriers.
    const Totals aligned = totals_as(Framing::aligned, head);
    const Totals tpiu = totals_as(Framing::tpiu, head);
    // A port that is idle between frames sends syncs there. If they were read as barriers, the following bytes would
    // have no ID.
    const bool idle_between =
        tpiu.fsyncs == aligned.fsyncs && (tpiu.unassociated < aligned.unassociated || idle_runs(head));
    if ((tpiu.fsyncs > aligned.fsyncs || idle_between) && tpiu.frames > 0 && reserved_bytes(tpiu) == 0 &&
        tpiu.sync_losses * 16 <= tpiu.fsyncs) {
        return {BufferKind::tpiu, tpiu.fsyncs >= 3 ? Confidence::high : Confidence::low, FramingEvidence::full_syncs};
    }

    // Bytes that are not frames have an "ID" in every second even place, evenly distributed: all 127 values appear
    // soon, and of 32 frames one is rejected for the forbidden value. A formatter announces the same few IDs again and
    // again.
    const auto distinct = distinct_ids(aligned);
    constexpr std::uint64_t few_sources = 8;
    const bool sparse = aligned.id_bytes <= 2 * aligned.frames;
    const bool few = reserved_bytes(aligned) == 0 && distinct > 0 && distinct * 4 <= aligned.id_bytes &&
                     (distinct <= few_sources || sparse);
    if (aligned.damaged_frames * 64 > aligned.frames) return raw(Confidence::high, FramingEvidence::forbidden_ids);
    if (aligned.id_bytes == 0) return raw(Confidence::low, FramingEvidence::no_ids);
    if (few) {
        if (aligned.damaged_frames > 0) return {BufferKind::aligned, Confidence::low, FramingEvidence::few_damaged};
        if (aligned.id_bytes >= 16) return {BufferKind::aligned, Confidence::high, FramingEvidence::steady_ids};
    }
    // In a short dump a source may be announced only once or twice; then only the number of sources can be judged.
    constexpr std::uint64_t id_bytes_to_judge = 64;
    if (aligned.damaged_frames == 0 && reserved_bytes(aligned) == 0 && distinct > 0 && distinct <= few_sources &&
        aligned.id_bytes < id_bytes_to_judge && sparse) {
        return {BufferKind::aligned, Confidence::low, FramingEvidence::plausible_ids};
    }
    return raw(aligned.id_bytes >= id_bytes_to_judge ? Confidence::high : Confidence::low,
               FramingEvidence::scattered_ids);
}

}  // namespace

std::size_t idle_bytes(Bytes bytes) {
    const auto is_sync = [&](std::size_t at) {
        return at + full_sync.size() <= bytes.size() &&
               std::equal(full_sync.begin(), full_sync.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
    };
    std::size_t at = 0;
    while (at < full_sync.size() && !is_sync(at)) ++at;  // the dump may begin inside a sync
    if (!is_sync(at)) return 0;
    while (is_sync(at)) at += full_sync.size();
    return (at - full_sync.size()) / dstream_block_bytes * dstream_block_bytes;
}

FramingGuess guess_framing(Bytes head) {
    FramingGuess guess = guess_without_footers(head);
    // With a footer every 512 bytes, frames soon show the forbidden ID, lost syncs or IDs without a source.
    if (!dstream_layout(head).footers) return guess;
    FramingGuess within = guess_without_footers(without_dstream_footers(head));
    if (within.kind == BufferKind::raw) return guess;
    within.footers = true;
    return within;
}

}  // namespace waymark::coresight
