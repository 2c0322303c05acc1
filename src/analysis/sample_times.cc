#include "waymark/analysis/spe_answers.h"

#include <algorithm>

namespace waymark::analysis {

namespace perf = capture::perf;

void SampleTimes::make_room(std::uint64_t first, std::uint64_t last) {
    if (!empty_) {
        first = std::min(first, first_ticks_);
        last = std::max(last, last_ticks_);
    }
    unsigned shift = shift_;
    while ((last >> shift) - (first >> shift) >= most_bins) ++shift;
    if (shift != shift_ && !empty_) {
        const auto coarser = [&](Bins& bins) {
            Bins sums{};
            for (std::uint64_t bin = first_ticks_ >> shift_; bin <= last_ticks_ >> shift_; ++bin)
                sums[(bin >> (shift - shift_)) % most_bins] += bins[bin % most_bins];
            bins = sums;
        };
        for (auto& [cpu, bins] : cpus_) coarser(bins);
        for (auto& [thread, bins] : threads_) coarser(bins);
    }
    shift_ = shift;
    first_ticks_ = first;
    last_ticks_ = last;
    empty_ = false;
}

SampleTimes::Bins& SampleTimes::of(const Profile::Thread& thread) {
    const auto found = threads_.find(thread);
    if (found != threads_.end()) return found->second;
    return threads_[threads_.size() < most_threads ? thread : Profile::Thread{perf::nobody, perf::nobody}];
}

void SampleTimes::consume(const SampleBatch& batch) {
    const spe::RecordColumns& c = batch.records;
    constexpr unsigned time_bit = static_cast<unsigned>(spe::RecordColumn::timestamp);
    Bins* cpu = nullptr;
    Bins* bins = nullptr;
    Profile::Thread thread;
    for (const std::uint16_t i : batch.rows) {
        if ((c.present[i] >> time_bit & 1U) == 0 || c.defects[i] != 0) continue;
        const std::uint64_t ticks = c.timestamp[i];
        if (empty_ || ticks < first_ticks_ || ticks > last_ticks_) make_room(ticks, ticks);
        if (cpu == nullptr) cpu = &cpus_[batch.stream.cpu];
        const Profile::Thread whose{batch.pid[i], batch.tid[i]};
        if (bins == nullptr || whose != thread) bins = &of(thread = whose);
        const std::size_t bin = (ticks >> shift_) % most_bins;
        ++(*cpu)[bin];
        ++(*bins)[bin];
    }
}

void SampleTimes::join(SampleSink& fork) {
    auto& other = static_cast<SampleTimes&>(fork);
    if (other.empty_) return;
    make_room(other.first_ticks_, other.last_ticks_);
    other.make_room(first_ticks_, last_ticks_);
    const auto add = [](Bins& to, const Bins& bins) {
        for (unsigned i = 0; i < most_bins; ++i) to[i] += bins[i];
    };
    for (const auto& [cpu, bins] : other.cpus_) add(cpus_[cpu], bins);
    for (const auto& [thread, bins] : other.threads_) add(of(thread), bins);
}

GatheredSamples::GatheredSamples(Wanted wanted) : wanted_(wanted) {
    if (wanted.times) times.emplace();
    if (wanted.line_bytes != 0) candidates.emplace(wanted.line_bytes);
}
void GatheredSamples::consume(const SampleBatch& batch) {
    profile.consume(batch);
    branches.consume(batch);
    if (times) times->consume(batch);
    if (candidates) candidates->consume(batch);
}
void GatheredSamples::join(SampleSink& fork) {
    auto& other = static_cast<GatheredSamples&>(fork);
    profile.join(other.profile);
    branches.join(other.branches);
    if (times) times->join(*other.times);
    if (candidates) candidates->join(*other.candidates);
}

}  // namespace waymark::analysis
