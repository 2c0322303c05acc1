#include "merge_timeline.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <bit>
#include <concepts>
#include <utility>

#include "waymark/answers/parts.h"

namespace waymark::answers {

namespace {

// Limits of the timelines that a sum keeps. They do not grow with the number of captures.
constexpr std::size_t most_tracks = 64, most_slices = 2000, most_marks = 500, most_series = 8, most_points = 500;

/// The units in which timelines are most precise come first.
std::size_t rank_of_unit(std::string_view unit) {
    constexpr std::array<std::string_view, 5> order{"ns", "ticks", "cycles", "instructions", "readings"};
    return static_cast<std::size_t>(std::find(order.begin(), order.end(), unit) - order.begin());
}

/// Keeps at most `most` rows, evenly spread.
template <class Row>
void thin(std::vector<Row>& rows, std::size_t most) {
    const std::size_t size = rows.size();
    if (size <= most) return;
    for (std::size_t n = 0; n < most; ++n)
        if (n * size / most != n) rows[n] = std::move(rows[n * size / most]);
    rows.resize(most);
}

/// A hash of all fields of rows, so that rows of one hash can replace each other.
class TimelineHash {
public:
    explicit TimelineHash(const Answers& of) : of_(of) { XXH3_64bits_reset(&state_); }
    template <class Row>
    void add(std::vector<Row>& rows) {
        add(std::uint64_t{rows.size()});
        for (Row& row : rows) schema::fields(*this, row);
    }
    void number(std::string_view, std::integral auto& value, std::string_view) {
        add(static_cast<std::uint64_t>(value));
    }
    void address(std::string_view, std::integral auto& value, std::string_view) {
        add(static_cast<std::uint64_t>(value));
    }
    void text(std::string_view, std::string& value, std::string_view) { add(value); }
    void real(std::string_view, double& value, std::string_view) { add(std::bit_cast<std::uint64_t>(value)); }
    template <class T>
    void choice(std::string_view, T& value, const auto&, std::string_view) {
        add(static_cast<std::uint64_t>(value));
    }
    template <class T>
    void list(std::string_view, std::vector<T>& values, std::string_view) {
        add(values);
    }
    /// Hashes functions by their names and places, since indices differ from capture to capture.
    void index(std::string_view, Index& value, IndexedTable place, std::string_view) {
        if (place != IndexedTable::functions || value >= of_.functions.size()) return add(std::uint64_t{value});
        const Function& f = of_.functions[value];
        add(f.name);
        add(f.linkage_name);
        add(f.address);
        if (f.image >= of_.images.size()) return;
        add(of_.images[f.image].name);
        add(of_.images[f.image].build_id);
    }
    [[nodiscard]] std::uint64_t value() const { return XXH3_64bits_digest(&state_); }

private:
    void add(std::string_view text) {
        add(std::uint64_t{text.size()});
        XXH3_64bits_update(&state_, text.data(), text.size());
    }
    void add(std::uint64_t number) {
        std::array<std::uint8_t, 8> bytes{};
        for (unsigned i = 0; i < 8; ++i) bytes[i] = static_cast<std::uint8_t>(number >> (8 * i));
        XXH3_64bits_update(&state_, bytes.data(), bytes.size());
    }

    const Answers& of_;
    XXH3_state_t state_;
};

std::uint64_t contents_of(Timeline& timeline, const Answers& a) {
    TimelineHash hash(a);
    schema::fields(hash, timeline.axis);
    hash.number({}, timeline.resolution, {});
    hash.add(timeline.tracks);
    hash.add(timeline.slices);
    hash.add(timeline.marks);
    hash.add(timeline.series);
    return hash.value();
}

/// Reduces the timeline of one capture to less detail, beginning at 0.
void make_small(Timeline& timeline) {
    if (timeline.tracks.size() > most_tracks) {
        timeline.tracks.resize(most_tracks);
        const auto cut = [](const auto& row) { return row.track >= most_tracks && row.track != none; };
        std::erase_if(timeline.slices, cut);
        std::erase_if(timeline.marks, cut);
        std::erase_if(timeline.series, cut);
    }
    bound_slices(timeline, most_slices);
    thin(timeline.marks, most_marks);
    if (timeline.series.size() > most_series) timeline.series.resize(most_series);
    for (Series& s : timeline.series) thin(s.points, most_points);
    const std::uint64_t begin = timeline.axis.begin;
    const auto since = [&](std::uint64_t& time) { time = time < begin ? 0 : time - begin; };
    for (Slice& s : timeline.slices) {
        since(s.begin);
        since(s.end);
    }
    for (TimelineMark& m : timeline.marks) {
        since(m.begin);
        since(m.end);
    }
    for (Series& s : timeline.series)
        for (Series::Point& p : s.points) since(p.time);
    since(timeline.axis.end);
    timeline.axis.begin = 0;
}

/// Indices of the tracks of one capture in a sum: from its own track to the next capture's.
struct TrackSpan {
    Index first{}, end{};
    [[nodiscard]] bool has(Index track) const { return track >= first && track < end; }
    [[nodiscard]] Index within(Index track) const { return has(track) ? track - first : 0; }
};

}  // namespace

std::uint64_t sample_order(std::string_view capture) { return XXH3_64bits(capture.data(), capture.size()); }

bool has_timeline(const Answers& a) {
    // A sum may have kept only the tracks of a capture.
    return !a.timeline.slices.empty() || !a.timeline.marks.empty() || !a.timeline.series.empty() ||
           !a.timeline.samples.empty();
}

void MergedTimelines::add(Answers& a, const RowMover::Maps& maps) {
    if (!has_timeline(a)) return;
    Timeline& timeline = a.timeline;
    std::vector<TimelineSample>& samples = timeline.samples;
    if (samples.empty()) {
        make_small(timeline);
        samples.push_back({a.capture, 0, sample_order(a.capture), contents_of(timeline, a), timeline.resolution,
                           timeline.axis.uncertainty, timeline.axis.end});
        // The capture's own track becomes the parent of all others.
        for (Track& t : timeline.tracks) t.parent = t.parent == none ? 0 : t.parent + 1;
        timeline.tracks.insert(timeline.tracks.begin(), Track{a.capture});
        const auto below = [](auto& row) { row.track = row.track == none ? 0 : row.track + 1; };
        for (Slice& s : timeline.slices) below(s);
        for (TimelineMark& m : timeline.marks) below(m);
        for (Series& s : timeline.series) below(s);
    }
    RowMover mover(maps);
    for (std::size_t n = 0; n < samples.size(); ++n) {
        const TrackSpan span{samples[n].track, n + 1 < samples.size() ? samples[n + 1].track
                                                                      : static_cast<Index>(timeline.tracks.size())};
        // The input was not made by merging.
        if (span.first >= span.end || span.end > timeline.tracks.size()) continue;
        Sample sample{samples[n]};
        sample.tracks.assign(timeline.tracks.begin() + span.first, timeline.tracks.begin() + span.end);
        for (Index at = 0; at < sample.tracks.size(); ++at) {
            Index& parent = sample.tracks[at].parent;
            const Index above = span.within(parent);
            parent = at == 0 ? none : above < at ? above : 0;
        }
        const auto take = [&](auto& to, auto& from) {
            for (auto& row : from) {
                if (!span.has(row.track)) continue;
                const Index track = span.within(row.track);
                to.push_back(row);
                schema::fields(mover, to.back());
                to.back().track = track;
            }
        };
        take(sample.slices, timeline.slices);
        take(sample.marks, timeline.marks);
        take(sample.series, timeline.series);
        keep(timeline.axis, std::move(sample));
    }
}

void MergedTimelines::keep(const TimeAxis& axis, Sample sample) {
    const TimelineSample& row = sample.row;
    Key key{rank_of_unit(axis.unit), axis.unit, axis.ticks_per_second, row.order, row.capture, row.contents};
    kept_.try_emplace(std::move(key), std::move(sample));
    const auto unit = [](const Key& k) { return std::tie(std::get<0>(k), std::get<1>(k), std::get<2>(k)); };
    while (kept_.size() > most_samples || unit(kept_.rbegin()->first) != unit(kept_.begin()->first))
        kept_.erase(std::prev(kept_.end()));
}

void MergedTimelines::finish(Answers& out, const RowMover::Maps& maps) {
    if (kept_.empty()) return;
    Timeline& to = out.timeline;
    to.axis.unit = std::get<1>(kept_.begin()->first);
    to.axis.ticks_per_second = std::get<2>(kept_.begin()->first);
    to.axis.note = "Each capture begins at 0, whenever it was recorded.";
    RowMover mover(maps);
    for (auto& [key, sample] : kept_) {
        const auto first = static_cast<Index>(to.tracks.size());
        sample.row.track = first;
        to.axis.end = std::max(to.axis.end, sample.row.end);
        to.axis.uncertainty = std::max(to.axis.uncertainty, sample.row.uncertainty);
        to.resolution = std::max(to.resolution, sample.row.resolution);
        to.samples.push_back(std::move(sample.row));
        for (Track& t : sample.tracks) {
            if (t.parent != none) t.parent += first;
            to.tracks.push_back(std::move(t));
        }
        const auto put = [&](auto& rows, auto& from) {
            for (auto& row : from) {
                const Index track = row.track;
                schema::fields(mover, row);
                row.track = first + track;
                rows.push_back(std::move(row));
            }
        };
        put(to.slices, sample.slices);
        put(to.marks, sample.marks);
        put(to.series, sample.series);
    }
    kept_.clear();
}

}  // namespace waymark::answers
