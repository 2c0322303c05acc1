/// Puts samples on a timeline, by CPU and thread.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "spe_fill.h"

namespace waymark::analysis {

using namespace answers;

namespace perf = capture::perf;

std::string SpeFill::thread_text(const Profile::Thread& t) const {
    if (t.tid == perf::nobody) return "unknown thread";
    const std::string_view name = tasks.thread(t.tid, ~std::uint64_t{0}).name;
    return fmt::format("{}{}{}", name, name.empty() ? "" : " ", t.tid);
}

namespace {

void add_series(SpeFill& fill, const SampleTimes& times, const SampleTimes::Bins& bins, Index track,
                const auto& time_of) {
    Series s;
    s.name = "samples of " + fill.out.timeline.tracks[track].name;
    s.unit = fmt::format("samples in {} {}",
                         time_of(std::uint64_t{2} << times.shift()) - time_of(std::uint64_t{1} << times.shift()),
                         fill.out.timeline.axis.unit);
    s.track = track;
    for (std::uint64_t bin = times.first_ticks() >> times.shift(); bin <= times.last_ticks() >> times.shift(); ++bin)
        s.points.push_back({std::max(time_of(bin << times.shift()), fill.out.timeline.axis.begin),
                            static_cast<double>(SampleTimes::count(bins, bin))});
    fill.out.timeline.series.push_back(std::move(s));
}

}  // namespace

void fill_sample_timeline(SpeFill& fill) {
    if (!fill.gathered.times) return;
    const SampleTimes& times = *fill.gathered.times;
    Timeline& t = fill.out.timeline;
    const auto& conversion = fill.capture.data->time_conversion;
    const bool clock = conversion && conversion->valid();
    const auto time_of = [&](std::uint64_t ticks) { return clock ? conversion->to_ns(ticks) : ticks; };
    t.axis.unit = clock ? "ns" : "ticks";
    if (!times.empty()) {
        t.axis.begin = time_of(times.first_ticks());
        t.axis.end = time_of(times.last_ticks());
    }
    std::string note = times.empty() ? "no sample has a timestamp" : "by the samples' timestamps";
    note += clock ? ", in nanoseconds of perf's clock" : "; the file does not say how ticks become nanoseconds";
    if (times.empty() && !fill.capture.bare) note += "; perf record -e arm_spe/ts_enable=1/ records them";
    t.axis.note = note;
    // Switches are in nanoseconds: without a clock they cannot be put beside samples.
    std::vector<perf::Switch> switches;
    if (clock || times.empty()) switches = fill.capture.data->switches;
    if (times.empty() && switches.empty()) return;
    if (times.empty()) t.axis.unit = "ns";
    std::stable_sort(switches.begin(), switches.end(), [](const perf::Switch& a, const perf::Switch& b) {
        return std::pair(a.cpu, a.time) < std::pair(b.cpu, b.time);
    });
    for (const perf::Switch& s : switches) {
        if (s.time == 0) continue;
        t.axis.begin = t.axis.begin == 0 ? s.time : std::min(t.axis.begin, s.time);
        t.axis.end = std::max(t.axis.end, s.time);
    }

    std::set<std::uint32_t> cpus;
    for (const auto& [cpu, bins] : times.cpus()) cpus.insert(cpu);
    for (const perf::Switch& s : switches) cpus.insert(s.cpu);
    const auto on_cpu = [](std::uint32_t cpu) {
        return cpu == perf::nobody ? std::string("samples without CPU") : fmt::format("CPU {}", cpu);
    };
    std::map<std::uint32_t, Index> cpu_track;
    for (const std::uint32_t cpu : cpus) {
        cpu_track[cpu] = static_cast<Index>(t.tracks.size());
        t.tracks.push_back({on_cpu(cpu), none});
        if (const auto bins = times.cpus().find(cpu); bins != times.cpus().end())
            add_series(fill, times, bins->second, cpu_track[cpu], time_of);
    }
    // Threads with the most samples, then by ID.
    std::vector<std::pair<std::uint64_t, Profile::Thread>> order;
    for (const auto& [thread, bins] : times.threads()) {
        std::uint64_t sum = 0;
        for (const std::uint64_t n : bins) sum += n;
        order.emplace_back(~sum, thread);
    }
    std::sort(order.begin(), order.end());
    if (order.size() > fill.options.most_thread_rows) order.resize(fill.options.most_thread_rows);
    std::map<std::uint32_t, Index> thread_track;
    for (const auto& [less, thread] : order) {
        const auto track = static_cast<Index>(t.tracks.size());
        if (thread.tid != perf::nobody) thread_track[thread.tid] = track;
        t.tracks.push_back({fill.thread_text(thread), none});
        add_series(fill, times, times.threads().at(thread), track, time_of);
    }
    for (std::size_t i = 0; i < switches.size(); ++i) {
        const perf::Switch& s = switches[i];
        const bool last = i + 1 == switches.size() || switches[i + 1].cpu != s.cpu;
        const std::uint64_t begin = std::max(s.time, t.axis.begin), end = last ? t.axis.end : switches[i + 1].time;
        // 0 is the idle task.
        if (s.tid == perf::nobody || s.tid == 0 || end <= begin) continue;
        t.slices.push_back({begin, end, cpu_track[s.cpu], fill.synthetic.of(fill.thread_text({s.pid, s.tid})), 0, 1});
        if (const auto track = thread_track.find(s.tid); track != thread_track.end())
            t.slices.push_back({begin, end, track->second, fill.synthetic.of(on_cpu(s.cpu)), 0, 1});
    }
    std::stable_sort(t.slices.begin(), t.slices.end(), [](const Slice& a, const Slice& b) {
        return std::tie(a.track, a.begin) < std::tie(b.track, b.begin);
    });
    bound_slices(t, fill.options.most_slices);
}

}  // namespace waymark::analysis
