#include <algorithm>
#include <map>
#include <utility>

#include "section_parts.h"
#include "sections.h"
#include "waymark/answers/sampled.h"
#include "waymark/answers/views.h"
#include "waymark/core/numbers.h"

namespace waymark::report {

using namespace answers;

namespace {

/// Slices of at least `shortest`; adjacent shorter slices at one depth are represented by one.
std::vector<Slice> merged(const std::vector<Slice>& slices, std::uint64_t shortest) {
    struct Open {
        Slice slice;
        std::uint64_t longest{};
    };
    std::map<std::pair<Index, std::uint32_t>, Open> open;
    std::vector<Slice> out;
    const auto close = [&](Open& o) {
        if (o.slice.merged != 0 && o.slice.end - o.slice.begin >= shortest) out.push_back(o.slice);
        o = {};
        o.slice.merged = 0;
    };
    for (const Slice& slice : slices) {
        Open& o = open.try_emplace({slice.track, slice.depth}, Open{Slice{0, 0, 0, 0, 0, 0}, 0}).first->second;
        const std::uint64_t length = slice.end - slice.begin;
        if (length >= shortest) {
            close(o);
            out.push_back(slice);
            continue;
        }
        if (o.slice.merged != 0 && slice.begin > o.slice.end && slice.begin - o.slice.end >= shortest) close(o);
        if (o.slice.merged == 0) {
            o.slice = slice;
            o.longest = length;
            continue;
        }
        o.slice.end = std::max(o.slice.end, slice.end);
        o.slice.merged += slice.merged;
        if (length > o.longest) {
            o.longest = length;
            o.slice.function = slice.function;
        }
        if (o.slice.end - o.slice.begin >= shortest) close(o);
    }
    for (auto& [place, o] : open) close(o);
    std::sort(out.begin(), out.end(), [](const Slice& a, const Slice& b) {
        return std::tie(a.track, a.begin, a.depth) < std::tie(b.track, b.begin, b.depth);
    });
    return out;
}

/// Keeps the minimum and maximum of each of `most / 2` stretches.
std::vector<Series::Point> thinned(const std::vector<Series::Point>& points, std::size_t most) {
    if (points.size() <= most) return points;
    std::vector<Series::Point> out;
    const std::size_t stretches = std::max<std::size_t>(1, most / 2);
    for (std::size_t i = 0; i < stretches; ++i) {
        const auto begin = points.begin() + static_cast<std::ptrdiff_t>(points.size() * i / stretches);
        const auto end = points.begin() + static_cast<std::ptrdiff_t>(points.size() * (i + 1) / stretches);
        if (begin == end) continue;
        const auto by_value = [](const Series::Point& a, const Series::Point& b) { return a.value < b.value; };
        auto [least, most_] = std::minmax_element(begin, end, by_value);
        if (most_ < least) std::swap(least, most_);
        out.push_back(*least);
        if (most_ != least) out.push_back(*most_);
    }
    return out;
}

// Marks and points of a series are bounded by the number of slices too.
constexpr Limit slices_a_mark = 4, slices_a_point = 20;

}  // namespace

Limit whole_timeline(const Timeline& timeline) {
    Limit most = std::max<Limit>(timeline.slices.size(), slices_a_mark * timeline.marks.size());
    for (const Series& series : timeline.series) most = std::max<Limit>(most, slices_a_point * series.points.size());
    return std::max<Limit>(most, 1);
}

PageSection timeline_section(const Answers& answers, Limit most_slices, bool is_window) {
    const Timeline& timeline = answers.timeline;
    const std::uint64_t zero = timeline.axis.begin;
    const auto since = [zero](std::uint64_t time) { return time > zero ? time - zero : 0; };

    std::vector<Slice> fewer;
    const std::vector<Slice>* kept = &timeline.slices;
    std::uint64_t shortest = timeline.resolution;
    while (kept->size() > most_slices) {
        std::vector<std::uint64_t> lengths;
        lengths.reserve(kept->size());
        for (const Slice& slice : *kept) lengths.push_back(slice.end - slice.begin);
        const auto middle = lengths.end() - static_cast<std::ptrdiff_t>(std::max<Limit>(1, most_slices * 3 / 4));
        std::nth_element(lengths.begin(), middle, lengths.end());
        shortest = std::max(*middle, shortest + std::max<std::uint64_t>(1, shortest / 2));
        fewer = merged(*kept, shortest);
        kept = &fewer;
    }
    const std::vector<Slice>& slices = *kept;
    const std::size_t most_marks = std::max<Limit>(100, most_slices / slices_a_mark);
    const auto marks = greatest(timeline.marks.size(), most_marks, [&](std::size_t a, std::size_t b) {
        // Lost flow comes first, since it limits the trust in the rest. Text written by software is shown nowhere else.
        const TimelineMark &one = timeline.marks[a], &other = timeline.marks[b];
        const auto rank = [](const TimelineMark& m) {
            return m.kind == TimelineMark::Kind::gap ? 2 : m.kind == TimelineMark::Kind::user_data ? 1 : 0;
        };
        if (rank(one) != rank(other)) return rank(one) > rank(other);
        return one.end - one.begin > other.end - other.begin;
    });

    Json json;
    json.begin_object();
    json.key("axis").begin_object();
    json.key("unit").string(timeline.axis.unit);
    json.key("ticksPerSecond").number(timeline.axis.ticks_per_second);
    json.key("begin").string(std::to_string(zero));
    json.key("length").number(since(timeline.axis.end));
    json.key("uncertainty").number(timeline.axis.uncertainty);
    json.key("note").string(timeline.axis.note);
    json.end_object();
    json.key("resolution").number(shortest);
    // Calls that are active at the beginning of the window are cut there.
    json.key("window").boolean(is_window);
    // Functions that stand for exceptions, or whose caller was not seen: the view of single calls needs them.
    std::vector<bool> handlers(answers.functions.size()), resumed(answers.functions.size());
    for (const CallNode& node : answers.calls) {
        if (node.function >= handlers.size()) continue;
        if (node.kind == CallNode::Kind::interrupt) handlers[node.function] = true;
        if (node.kind == CallNode::Kind::unsynchronised) resumed[node.function] = true;
    }
    const auto which = [&](std::string_view name, const std::vector<bool>& is) {
        json.key(name).begin_array();
        for (std::size_t f = 0; f < is.size(); ++f)
            if (is[f]) json.number(f);
        json.end_array();
    };
    which("handlers", handlers);
    which("resumed", resumed);
    // The timeline of a sum shows only some of the captures, so its calls are incomplete.
    const bool of_flow = !of_samples(answers) && answers.unit != "DPU";
    json.key("bound").string(of_flow && timeline.samples.size() <= 1 ? call_bound(answers, shortest) : "");
    json.key("tracks").begin_object();
    json.strings("name", timeline.tracks, [](const Track& t) -> const std::string& { return t.name; });
    json.column("parent", timeline.tracks, [](const Track& t) { return index(t.parent); });
    json.end_object();
    json.key("slices").begin_object();
    json.differences("begin", slices, [&](const Slice& s) { return since(s.begin); });
    json.column("length", slices, [](const Slice& s) { return s.end - s.begin; });
    json.differences("track", slices, [](const Slice& s) { return s.track; });
    json.column("function", slices, [](const Slice& s) { return index(s.function); });
    json.column("depth", slices, [](const Slice& s) { return s.depth; });
    json.column("merged", slices, [](const Slice& s) { return s.merged; });
    json.end_object();
    SharedTexts texts;
    json.key("marks").begin_object();
    const auto mark = [&](std::size_t i) -> const TimelineMark& { return timeline.marks[i]; };
    json.differences("begin", marks, [&](std::size_t i) { return since(mark(i).begin); });
    json.column("length", marks, [&](std::size_t i) { return mark(i).end - mark(i).begin; });
    json.column("track", marks, [&](std::size_t i) { return index(mark(i).track); });
    json.column("kind", marks, [&](std::size_t i) { return static_cast<int>(mark(i).kind); });
    json.column("text", marks, [&](std::size_t i) { return texts.add(mark(i).text); });
    json.end_object();
    texts.write(json, "texts");
    bool thin = false;
    json.key("series").begin_array();
    const std::size_t most_points = std::max<Limit>(200, most_slices / slices_a_point);
    for (const Series& series : timeline.series) {
        const auto points = thinned(series.points, most_points);
        thin = thin || points.size() < series.points.size();
        json.begin_object();
        json.key("name").string(series.name);
        json.key("unit").string(series.unit);
        json.key("track").number(index(series.track));
        json.differences("time", points, [&](const Series::Point& p) { return since(p.time); });
        // Six digits are enough for a picture. JSON has no infinity.
        json.key("value").begin_array();
        for (const Series::Point& p : points) json.string(fmt::format("{:.6g}", p.value));
        json.end_array();
        json.end_object();
    }
    json.end_array();
    json.end_object();

    std::string left_out;
    if (shortest != timeline.resolution)
        left_out = fmt::format("On the timeline, what is shorter than {} {} is merged or left out.", grouped(shortest),
                               timeline.axis.unit);
    if (marks.size() < timeline.marks.size())
        left_out += fmt::format("{}It has the {} longest of {} marks.", left_out.empty() ? "" : " ",
                                grouped(marks.size()), grouped(timeline.marks.size()));
    if (thin) left_out += fmt::format("{}Its series show extremes only.", left_out.empty() ? "" : " ");
    return {json.str(), left_out};
}

}  // namespace waymark::report
