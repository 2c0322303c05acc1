#include "waymark/analysis/dpu_doubts.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "waymark/dpu/state.h"

namespace waymark::analysis {

namespace {

constexpr std::size_t readings_before = 4, readings_behind = 8;  // readings that are examined around a step
constexpr std::uint32_t large_delta = 1U << 27;  // if most intervals are larger, no single one is suspicious
constexpr std::uint32_t least_joined = 1U << 12, most_joined = 1U << 27;
constexpr unsigned cost_of_doubt = 2, cost_of_step = 9;

}  // namespace

DpuDoubts::DpuDoubts(const DpuSetup& setup)
    : final_(setup.final), cycles_(setup.cycles), within_cycles_(setup.within_cycles), rewritten_(setup.rewritten) {
    window_.push_back({0, setup.initial});
}

void DpuDoubts::consume(const dpu::Batch& batch) {
    for (const dpu::Element& e : batch.elements)
        if (e.has_reading()) take({readings_++, batch.readings[e.value].values});
}

void DpuDoubts::finish() {
    if (final_) take({readings_, final_});
    while (step_) judge(true);
}

void DpuDoubts::take(const Seen& seen) {
    const Seen& before = window_.back();
    if (before.values) {
        bool wide = false;
        for (std::size_t c = 0; c < large_.size(); ++c) {
            if ((rewritten_ >> c & 1U) != 0) continue;
            const std::uint32_t delta = dpu::counted((*before.values)[c], (*seen.values)[c]);
            if (delta > large_delta)
                ++large_[c];
            else
                ++sizes_[c][static_cast<std::size_t>(std::bit_width(delta))];
            wide |= dpu::is_wide(delta);
        }
        ++differences_;
        wide |= beyond(*before.values, *seen.values);
        if (wide && !step_) step_ = window_.size() - 1;
    }
    window_.push_back(seen);
    if (!step_) {
        if (window_.size() > readings_before) window_.erase(window_.begin());
    } else if (window_.size() > *step_ + readings_behind) {
        judge(false);
    }
}

/// For each counter, the largest usual difference between two readings, in case the readings between them are left out.
/// The sum of long intervals is this small, modulo 2^31, only by rare chance.
dpu::Counters DpuDoubts::usual() const {
    dpu::Counters out{};
    for (std::size_t c = 0; c < out.size(); ++c) {
        if ((rewritten_ >> c & 1U) != 0) continue;  // its differences are not counted
        const std::uint64_t all = differences_ - large_[c];
        std::size_t bits = 0;
        for (std::uint64_t below = sizes_[c][0]; 8 * below < 7 * all; below += sizes_[c][bits]) ++bits;
        out[c] =
            static_cast<std::uint32_t>(std::clamp<std::uint64_t>(std::uint64_t{8} << bits, least_joined, most_joined));
    }
    return out;
}

bool DpuDoubts::fits(const Seen& before, const Seen& after, const dpu::Counters& most) const {
    for (std::size_t c = 0; c < large_.size(); ++c)
        if ((rewritten_ >> c & 1U) == 0 && 2 * large_[c] <= differences_ &&
            dpu::counted((*before.values)[c], (*after.values)[c]) > most[c])
            return false;
    return true;
}

/// Whether more cycles were waited or stalled than passed.
bool DpuDoubts::beyond(const dpu::Counters& before, const dpu::Counters& after) const {
    if (!cycles_) return false;
    for (std::size_t c = 0; c < large_.size(); ++c)
        if ((within_cycles_ >> c & 1U) != 0 &&
            dpu::counted(before[c], after[c]) > dpu::counted(before[*cycles_], after[*cycles_]))
            return true;
    return false;
}

bool DpuDoubts::is_step(std::size_t at) const {
    constexpr std::uint32_t most = dpu::wide_delta - 1;
    static constexpr dpu::Counters wide{most, most, most, most, most, most};
    return window_[at].values &&
           (!fits(window_[at], window_[at + 1], wide) || beyond(*window_[at].values, *window_[at + 1].values));
}

/// Decides about the readings around the first step; later readings stay in the window.
void DpuDoubts::judge(bool ended) {
    const std::size_t size = window_.size();
    // Up to the reading after the step and the next one: the others are judged when more readings are known.
    const std::size_t last = ended ? size - 1 : std::min(size - 1, *step_ + 2);
    // Find the path through the window, from its first reading on, with the fewest wrong readings.
    constexpr std::uint32_t far = std::numeric_limits<std::uint32_t>::max();
    const dpu::Counters joined = usual();
    std::vector<std::uint32_t> cost(size, far);
    std::vector<std::size_t> from(size, 0);
    cost[0] = 0;
    for (std::size_t to = 1; to < size; ++to)
        for (std::size_t at = 0; at < to; ++at) {
            const auto between = static_cast<std::uint32_t>(to - at - 1);
            if (between != 0 && (!window_[at].values || !fits(window_[at], window_[to], joined) ||
                                 beyond(*window_[at].values, *window_[to].values)))
                continue;
            const std::uint32_t sum = cost[at] + (between != 0  ? between * cost_of_doubt
                                                  : is_step(at) ? cost_of_step
                                                                : 0U);
            if (sum < cost[to]) {
                cost[to] = sum;
                from[to] = at;
            }
        }
    // The path need not end at the last reading if the readings that follow are not known.
    std::size_t end = size - 1;
    if (!ended)
        for (std::size_t at = size - 1; at-- > last;)
            if (cost[at] + (size - 1 - at) * cost_of_doubt < cost[end] + (size - 1 - end) * cost_of_doubt) end = at;
    std::vector<bool> believed(size, false);
    believed[0] = true;
    bool explained = true;
    for (std::size_t at = end; at != 0; at = from[at]) {
        believed[at] = true;
        explained &= from[at] + 1 != at || !is_step(from[at]);
    }
    // If one long interval is true, others may be true too.
    if (!explained) believed.assign(size, true);

    std::size_t anchor = 0;
    for (std::size_t at = 1; at <= last; ++at) {
        if (believed[at])
            anchor = at;
        else if (doubtful_.size() < most_readings)
            doubtful_.push_back(window_[at].number);
    }
    std::vector<Seen> rest{window_[anchor]};
    rest.insert(rest.end(), window_.begin() + static_cast<std::ptrdiff_t>(last) + 1, window_.end());
    window_ = std::move(rest);
    step_.reset();
    for (std::size_t at = 0; at + 1 < window_.size() && !step_; ++at)
        if (is_step(at)) step_ = at;
}

}  // namespace waymark::analysis
