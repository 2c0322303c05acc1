/// AUX rings of CoreSight trace: which bytes of the file belong to which AUX range (docs/spec/perf-cs-etm.md, section
/// 1.4), when they were traced, and by which thread.
#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <utility>

#include "waymark/capture/perf_cs_etm.h"
#include "waymark/capture/perf_cs_etm_writer.h"

namespace waymark::capture::perf {

namespace {

constexpr std::uint64_t frame_bytes = 16;
constexpr std::uint64_t smallest_ring = 4096;  // a page

/// Positions of a ring that were already assigned; ranges never overlap.
class Covered {
public:
    /// Adds [first, end) and returns its new parts.
    std::vector<std::pair<std::uint64_t, std::uint64_t>> add(std::uint64_t first, std::uint64_t end) {
        std::vector<std::pair<std::uint64_t, std::uint64_t>> fresh;
        auto at = ranges_.upper_bound(first);
        if (at != ranges_.begin() && std::prev(at)->second >= first) --at;
        std::uint64_t new_first = first, new_end = end, from = first;
        while (at != ranges_.end() && at->first <= end) {
            if (from < at->first) fresh.emplace_back(from, at->first);
            from = std::max(from, at->second);
            new_first = std::min(new_first, at->first);
            new_end = std::max(new_end, at->second);
            at = ranges_.erase(at);
        }
        if (from < end) fresh.emplace_back(from, end);
        if (new_first < new_end) ranges_[new_first] = new_end;
        return fresh;
    }

private:
    std::map<std::uint64_t, std::uint64_t> ranges_;  // first → end
};

/// The bytes of a ring that the file contains, by position.
struct Held {
    std::uint64_t first{}, end{};  // in the ring
    std::size_t chunk{};
};

struct Ring {
    std::vector<Held> held;
    Covered covered;
    std::uint64_t covered_bytes = 0;
    std::optional<std::uint64_t> before{};  // time of the previous AUX record
    std::optional<std::uint64_t> end{};     // end of the ranges so far
    bool lossy = false;                     // trace is missing in that range, or after its last byte
    bool snapshot = false;                  // a range is marked OVERWRITE
};

std::uint64_t end_of(std::uint64_t first, std::uint64_t bytes) { return first + std::min(bytes, ~first); }

/// Whether the units traced threads instead of CPUs. Then they stopped whenever the thread stopped, so the thread that
/// ends an AUX range is the only one in it. perf inherits only events of threads.
bool traced_threads(const PerfData& data) {
    if (!data.auxtrace_info || data.auxtrace_info->words.size() < 2) return false;
    const auto pmu = static_cast<std::uint32_t>(data.auxtrace_info->words[1] >> 32);
    constexpr std::uint64_t inherit = 1U << 1;
    bool any = false;
    for (const Attr& attr : data.attrs) {
        if (attr.type != pmu) continue;
        if ((attr.flags & inherit) == 0) return false;
        any = true;
    }
    return any;
}

/// Threads that ran on a CPU, by SWITCH and ITRACE_START records.
class RanOn {
public:
    explicit RanOn(const PerfData& data) {
        for (const Switch& s : data.switches) cpus_[s.cpu].push_back(&s);
        for (auto& [cpu, switches] : cpus_)
            std::stable_sort(switches.begin(), switches.end(),
                             [](const Switch* a, const Switch* b) { return a->time < b->time; });
    }
    /// The only thread in that time; nullopt if there were others or it is not known.
    [[nodiscard]] std::optional<std::uint32_t> only_thread(std::uint32_t cpu, std::uint64_t from,
                                                           std::uint64_t to) const {
        const auto found = cpus_.find(cpu);
        if (found == cpus_.end()) return std::nullopt;
        const auto& switches = found->second;
        auto at = std::upper_bound(switches.begin(), switches.end(), from,
                                   [](std::uint64_t time, const Switch* s) { return time < s->time; });
        if (at == switches.begin()) return std::nullopt;
        std::optional<std::uint32_t> out;
        for (--at; at != switches.end() && ((*at)->time <= from || (*at)->time <= to); ++at) {
            if ((*at)->tid == nobody) continue;
            if (out && out != (*at)->tid) return std::nullopt;
            out = (*at)->tid;
        }
        return out;
    }

private:
    std::map<std::uint32_t, std::vector<const Switch*>> cpus_;  // by time
};

/// Notes which thread ran in each part of CPUs' rings, if only one did: then the trace need not contain it.
void find_threads(const PerfData& data, CsRings& rings) {
    const bool by_trailer = traced_threads(data);
    const RanOn ran(data);
    for (CsRing& ring : rings.rings) {
        if (ring.cpu == nobody) continue;
        for (CsRange& range : ring.ranges) {
            if (range.aux == CsRange::no_aux) continue;
            const AuxRange& aux = data.aux[range.aux];
            // A snapshot contains everything that ran before it, up to its size.
            const bool snapshot = (aux.flags & AuxRange::overwrite) != 0;
            const bool named = by_trailer && !snapshot && aux.id.tid && *aux.id.tid != nobody;
            for (BufferPart& part : range.parts)
                part.thread = named ? aux.id.tid : ran.only_thread(ring.cpu, part.from, part.to);
        }
    }
}

}  // namespace

CsRings cs_rings(const PerfData& data) {
    CsRings out;
    std::vector<Ring> rings;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> by_owner;
    for (std::size_t i = 0; i < data.chunks.size(); ++i) {
        const Chunk& c = data.chunks[i];
        const std::uint32_t tid = c.cpu == nobody ? c.tid : nobody;
        const auto [at, fresh] = by_owner.try_emplace({c.cpu, tid}, rings.size());
        if (fresh) {
            rings.emplace_back();
            out.rings.push_back({c.cpu, tid, {}, 0, 0});
        }
        out.rings[at->second].chunk_bytes += c.bytes;
        if (c.bytes != 0) rings[at->second].held.push_back({c.ring, end_of(c.ring, c.bytes), i});
    }
    // If chunks overlap, as snapshots do, bytes are taken from the first one.
    for (Ring& ring : rings) {
        Covered known;
        std::vector<Held> apart;
        for (const Held& h : ring.held)
            for (const auto& [first, end] : known.add(h.first, h.end)) apart.push_back({first, end, h.chunk});
        std::sort(apart.begin(), apart.end(), [](const Held& a, const Held& b) { return a.first < b.first; });
        ring.held = std::move(apart);
    }
    const auto part_of = [&](const Held& h, std::uint64_t first, std::uint64_t end) {
        const Chunk& c = data.chunks[h.chunk];
        BufferPart part;
        part.bytes = end - first;
        if (c.packed) {
            part.offset = c.payload;
            part.packed = c.packed_bytes;
            part.skip = first - c.ring;
        } else {
            part.offset = c.payload + (first - c.ring);
        }
        return part;
    };

    out.without_aux = data.aux.empty();
    if (out.without_aux) {
        for (std::size_t r = 0; r < rings.size(); ++r)
            for (const Held& h : rings[r].held) {
                std::vector<CsRange>& ranges = out.rings[r].ranges;
                const bool follows = !ranges.empty() && &h != rings[r].held.data() && (&h - 1)->end == h.first;
                if (!follows) ranges.push_back({CsRange::no_aux, {}, false, 0, 0, {}});
                BufferPart part = part_of(h, h.first, h.end);
                part.follows = follows;
                part.lost = !follows && ranges.size() > 1;
                part.to = ~std::uint64_t{0};
                if (out.rings[r].cpu == nobody) part.thread = out.rings[r].tid;
                ranges.back().parts.push_back(part);
            }
        return out;
    }

    const auto ring_of = [&](const AuxRange& aux) -> std::optional<std::size_t> {
        if (aux.id.cpu)
            if (const auto found = by_owner.find({*aux.id.cpu, nobody}); found != by_owner.end()) return found->second;
        if (aux.id.tid)
            if (const auto found = by_owner.find({nobody, *aux.id.tid}); found != by_owner.end()) return found->second;
        // Records without a trailer belong to the only ring.
        if (!aux.id.cpu && !aux.id.tid && rings.size() == 1) return 0;
        return std::nullopt;
    };
    std::set<std::uint32_t> unplaced_cpus;
    for (std::size_t i = 0; i < data.aux.size(); ++i) {
        const AuxRange& aux = data.aux[i];
        const auto r = ring_of(aux);
        if (!r) {
            if (aux.bytes == 0) continue;
            ++out.unplaced_ranges;
            out.unplaced_bytes = end_of(out.unplaced_bytes, aux.bytes);
            if (aux.id.cpu && *aux.id.cpu != nobody) unplaced_cpus.insert(*aux.id.cpu);
            continue;
        }
        Ring& ring = rings[*r];
        CsRing& to = out.rings[*r];
        CsRange range;
        range.aux = i;
        range.raw = (aux.flags & cs_etm_format_mask) == cs_etm_raw;
        if (aux.id.cpu != nobody) range.cpu = aux.id.cpu;
        const bool overwrite = (aux.flags & AuxRange::overwrite) != 0;
        const std::uint64_t first = overwrite ? aux.offset - std::min(aux.offset, aux.bytes) : aux.offset;
        const std::uint64_t end = overwrite ? aux.offset : end_of(aux.offset, aux.bytes);
        const std::uint64_t time = aux.id.time.value_or(0);
        const std::uint64_t from = std::min(ring.before.value_or(0), time);
        ring.before = time;
        // The place of missing bytes in a marked range is not known: they may be before, in or after it.
        const bool marked = (aux.flags & (AuxRange::truncated | AuxRange::collision)) != 0;
        bool gone = marked || ring.lossy || (ring.end && *ring.end < first);
        std::uint64_t there = 0, last = 0, next = first;
        auto at = std::upper_bound(ring.held.begin(), ring.held.end(), first,
                                   [](std::uint64_t position, const Held& h) { return position < h.end; });
        for (; at != ring.held.end() && at->first < end; ++at) {
            std::uint64_t begin = std::max(first, at->first);
            const std::uint64_t stop = std::min(end, at->end);
            // A snapshot can begin anywhere, but frames are aligned to multiples of their size.
            if (overwrite && !range.raw && begin == at->first && begin % frame_bytes != 0)
                begin = std::min(stop, end_of(begin, frame_bytes - begin % frame_bytes));
            gone |= begin > next;
            next = stop;
            if (begin == stop) continue;
            for (const auto& [a, b] : ring.covered.add(begin, stop)) {
                BufferPart part = part_of(*at, a, b);
                part.follows = !range.parts.empty() && a == last;
                part.from = from;
                // An event at the end of the range, at that very moment, belongs after the range.
                part.to = std::max(from, time == 0 ? 0 : time - 1);
                part.lost = std::exchange(gone, false);
                if (to.cpu == nobody) part.thread = to.tid;
                ring.covered_bytes += b - a;
                range.parts.push_back(part);
                last = b;
                range.again -= b - a;
            }
            range.again += stop - begin;
            there += stop - begin;
        }
        if (!overwrite) range.missing = end - first - there;
        // Nothing marks a snapshot of an ETR that wrapped, but it then fills the ring, whose size is a power of two.
        ring.snapshot |= overwrite && aux.bytes != 0;
        to.wrapped |= overwrite && !range.raw && aux.bytes >= smallest_ring && std::has_single_bit(aux.bytes);
        ring.lossy = marked || next < end || gone;
        ring.end = std::max(ring.end.value_or(0), end);
        to.ranges.push_back(std::move(range));
    }
    for (std::size_t r = 0; r < rings.size(); ++r) {
        std::uint64_t held = 0;
        for (const Held& h : rings[r].held) held += h.end - h.first;
        // perf pads each chunk to a multiple of 8.
        const std::uint64_t padding = 7 * rings[r].held.size();
        const std::uint64_t rest = held - rings[r].covered_bytes;
        out.rings[r].uncovered_bytes = rest > padding ? rest : 0;
        const std::uint64_t end = rings[r].end.value_or(0);
        if (rings[r].snapshot && end > rings[r].covered_bytes) out.rings[r].overwritten = end - rings[r].covered_bytes;
        out.rings[r].wrapped |= out.rings[r].overwritten != 0;
    }
    out.unplaced_cpus.assign(unplaced_cpus.begin(), unplaced_cpus.end());
    find_threads(data, out);
    return out;
}

}  // namespace waymark::capture::perf
