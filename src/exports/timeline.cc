#include "timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "writer.h"

namespace waymark::exports {

using answers::Index;
using answers::Series;
using answers::Slice;
using answers::TimeAxis;
using answers::Timeline;
using answers::TimelineMark;

Nanoseconds::Nanoseconds(const TimeAxis& axis) {
    if (axis.unit == "ns") return;
    if (axis.ticks_per_second != 0) {
        // Beyond 18 GHz a remainder's nanoseconds would not fit in 64 bits.
        rate_ = std::min<std::uint64_t>(axis.ticks_per_second, 18'000'000'000);
        return;
    }
    const std::string one =
        axis.unit.size() > 1 && axis.unit.back() == 's' ? axis.unit.substr(0, axis.unit.size() - 1) : axis.unit;
    note_ = fmt::format("1 ns = 1 {}", one);
}

namespace {
/// The items of one track, from all items, which are sorted by track.
template <class Item>
std::span<const Item> of_track(const std::vector<Item>& all, Index track) {
    const auto first = std::lower_bound(all.begin(), all.end(), track,
                                        [](const Item& item, Index sought) { return item.track < sought; });
    const auto end =
        std::upper_bound(first, all.end(), track, [](Index sought, const Item& item) { return sought < item.track; });
    return {first, end};
}
}  // namespace

std::span<const Slice> slices_of(const Timeline& timeline, Index track) { return of_track(timeline.slices, track); }
std::span<const TimelineMark> marks_of(const Timeline& timeline, Index track) {
    return of_track(timeline.marks, track);
}

std::string_view name(TimelineMark::Kind kind) {
    switch (kind) {
        case TimelineMark::Kind::gap: return "gap";
        case TimelineMark::Kind::exception: return "exception";
        case TimelineMark::Kind::context: return "context";
        case TimelineMark::Kind::user_data: return "user data";
        case TimelineMark::Kind::trigger: return "trigger";
        case TimelineMark::Kind::overflow: return "overflow";
    }
    return "mark";
}

std::string Reduction::text(const TimeAxis& axis) const {
    std::string out;
    const auto add = [&](std::uint64_t n, std::string_view one, std::string_view many, std::string_view how) {
        if (n != 0) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", counted(n, one, many), how);
    };
    add(merged, "slice", "slices", "merged into longer ones");
    add(dropped, "slice", "slices", "left out");
    add(marks, "mark", "marks", "left out");
    add(points, "point of series", "points of series", "left out");
    if (out.empty()) return {};
    return fmt::format("to fit, items shorter than {} {} are not shown separately: {}", grouped(resolution), axis.unit,
                       out);
}

namespace {

/// Adjacent short slices below one parent.
struct Run {
    std::uint64_t begin{}, end{};
    Index track{};
    std::uint32_t depth{};
    std::uint64_t slices{}, stands_for{};
    std::unordered_map<Index, std::uint64_t> time;  // by function
};

class Reducer {
public:
    Reducer(std::uint64_t resolution, std::vector<Slice>& out, Reduction& what)
        : resolution_(resolution), out_(out), what_(what) {}

    void track(std::span<const Slice> slices) {
        open_.assign(1, {});  // the track itself
        const Slice* skipped = nullptr;
        for (const Slice& s : slices) {
            if (skipped != nullptr && s.depth > skipped->depth && s.begin <= skipped->end) {
                ++what_.dropped;
                continue;
            }
            skipped = nullptr;
            while (open_.size() > 1 && open_.back().depth >= s.depth) pop();
            const std::uint64_t length = s.end - std::min(s.begin, s.end);
            if (length < resolution_) {
                take(open_.back().run, s);
                skipped = &s;
                continue;
            }
            flush(open_.back().run);
            out_.push_back(s);
            open_.push_back({s.depth, {}});
        }
        while (!open_.empty()) pop();
    }

private:
    struct Level {
        std::uint32_t depth{};
        Run run;
    };

    void pop() {
        flush(open_.back().run);
        open_.pop_back();
    }
    void take(Run& run, const Slice& s) {
        if (run.slices != 0 && (s.begin > run.end && s.begin - run.end >= resolution_)) flush(run);
        if (run.slices++ == 0) {
            run.begin = s.begin;
            run.track = s.track;
            run.depth = s.depth;
        }
        run.end = std::max({run.end, s.begin, s.end});
        run.stands_for += s.merged;
        run.time[s.function] += s.end - std::min(s.begin, s.end);
    }
    void flush(Run& run) {
        if (run.slices == 0) return;
        if (run.end - run.begin >= resolution_) {
            const auto many = static_cast<std::uint32_t>(std::min<std::uint64_t>(run.stands_for, 0xffffffff));
            Slice s{run.begin, run.end, run.track, answers::none, run.depth, many};
            std::pair<std::uint64_t, Index> most{0, answers::none};
            for (const auto& [function, time] : run.time)
                if (time > most.first || (time == most.first && function < most.second)) most = {time, function};
            s.function = most.second;
            out_.push_back(s);
            what_.merged += run.slices;
        } else {
            what_.dropped += run.slices;
        }
        run = {};
    }

    std::uint64_t resolution_;
    std::vector<Slice>& out_;
    Reduction& what_;
    std::vector<Level> open_;
};

Series thinned(const Series& series, std::uint64_t resolution, Reduction& what) {
    Series out{series.name, series.unit, series.track, {}};
    for (const Series::Point& p : series.points) {
        if (out.points.empty() || p.time / resolution != out.points.back().time / resolution) {
            out.points.push_back(p);
            continue;
        }
        ++what.points;
        if (p.value > out.points.back().value) out.points.back() = p;
    }
    return out;
}

}  // namespace

Timeline reduce(const Timeline& timeline, std::uint64_t resolution, Reduction& what) {
    if (resolution == 0) return timeline;
    what.resolution = resolution;
    Timeline out;
    out.axis = timeline.axis;
    out.tracks = timeline.tracks;
    out.resolution = std::max(timeline.resolution, resolution);
    Reducer reducer(resolution, out.slices, what);
    for (std::size_t i = 0; i < timeline.slices.size();) {
        const std::span<const Slice> track = slices_of(timeline, timeline.slices[i].track);
        if (track.empty()) break;  // not sorted
        reducer.track(track);
        i += track.size();
    }
    std::map<std::pair<Index, TimelineMark::Kind>, std::uint64_t> last;
    for (const TimelineMark& m : timeline.marks) {
        const auto [at, first] = last.try_emplace({m.track, m.kind}, m.begin);
        const bool is_long = m.end >= m.begin && m.end - m.begin >= resolution;
        if (!first && !is_long && m.begin - std::min(m.begin, at->second) < resolution) {
            ++what.marks;
            continue;
        }
        at->second = m.begin;
        out.marks.push_back(m);
    }
    for (const Series& s : timeline.series) out.series.push_back(thinned(s, resolution, what));
    return out;
}

}  // namespace waymark::exports
