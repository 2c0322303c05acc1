#include "waymark/record/aux_rings.h"

#include <algorithm>
#include <array>

#include "waymark/capture/perf_cs_etm.h"
#include "waymark/coresight/formatter.h"
#include "waymark/record/perf_recorder.h"

namespace waymark::record {

namespace perf = capture::perf;

std::uint64_t AuxRings::lose(std::vector<std::uint8_t>& trace, std::uint64_t& lost) const {
    if (options_.loss != TraceLoss::late || trace.size() <= options_.aux_bytes) return 0;
    lost = trace.size() - options_.aux_bytes;
    if (options_.sink == TraceSink::trbe) {
        // A full TRBE drops trace until its interrupt is served.
        trace.resize(options_.aux_bytes);
        return perf::AuxRange::collision;
    }
    // The newest frames remain; the driver overwrites the first of them with a barrier: four full syncs.
    trace.erase(trace.begin(), trace.begin() + static_cast<std::ptrdiff_t>(lost));
    constexpr std::array<std::uint8_t, 4> full_sync{0xff, 0xff, 0xff, 0x7f};
    for (std::size_t i = 0; i < coresight::frame_bytes; ++i) trace[i] = full_sync[i % full_sync.size()];
    return perf::AuxRange::truncated;
}

AuxRings::Closed AuxRings::close_range(std::uint32_t key, std::vector<std::uint8_t> trace,
                                       const perf::PerfWriter::At& at) {
    Ring& ring = rings_[key];
    Closed closed;
    perf::AuxRange range;
    range.flags = lose(trace, closed.lost);
    range.offset = ring.position;
    range.bytes = closed.bytes = trace.size();
    if (options_.sink == TraceSink::trbe) range.flags |= perf::cs_etm_raw;
    const bool snapshot = options_.loss == TraceLoss::snapshot;
    if (snapshot) {
        // For an overwritten ring, the record states the end of its bytes.
        range.flags |= perf::AuxRange::overwrite;
        range.offset += range.bytes;
    }
    ring.ranges.emplace_back(range, at);
    ring.pending.insert(ring.pending.end(), trace.begin(), trace.end());
    ring.position += trace.size();
    pending_bytes_ += trace.size();
    if (snapshot && ring.pending.size() > options_.aux_bytes) {
        const std::uint64_t lost = ring.pending.size() - options_.aux_bytes;
        ring.pending.erase(ring.pending.begin(), ring.pending.begin() + static_cast<std::ptrdiff_t>(lost));
        closed.lost += lost;
    }
    return closed;
}

bool AuxRings::is_due() const {
    constexpr std::uint64_t most_pending = 1U << 20;
    // A ring that is overwritten is only read at the end.
    return options_.loss != TraceLoss::snapshot && pending_bytes_ >= most_pending;
}

void AuxRings::drain(perf::PerfWriter& writer) {
    std::uint32_t index = 0;
    for (auto& [key, ring] : rings_) {
        if (!ring.pending.empty()) {
            perf::Chunk chunk;
            chunk.ring = ring.position - ring.pending.size();
            chunk.reference = index + 1;
            chunk.index = options_.per_thread ? index : key;
            chunk.cpu = options_.per_thread ? perf::nobody : key;
            chunk.tid = options_.per_thread ? key : perf::nobody;
            writer.auxtrace(chunk, ring.pending);
            ring.pending.clear();
        }
        for (const auto& [range, when] : ring.ranges) writer.aux(range, when);
        ring.ranges.clear();
        ++index;
    }
    pending_bytes_ = 0;
    writer.finished_round();
}

}  // namespace waymark::record
