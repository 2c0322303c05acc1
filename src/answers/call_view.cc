/// `waymark calls`: the single calls of a function.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "columns.h"
#include "waymark/answers/account_effects.h"
#include "waymark/answers/costs.h"
#include "waymark/answers/only.h"
#include "waymark/answers/sampled.h"
#include "waymark/core/numbers.h"

namespace waymark::answers {

namespace {

/// A part of a call: the total length of the calls to one function that it made directly.
using Parts = std::map<Index, std::uint64_t>;
/// Parts that are not a callee.
constexpr Index own_code = none, all_exceptions = none - 1;

struct Call {
    std::size_t slice{};     // index in the timeline's slices
    Index caller = none;     // function; `none` if not known
    std::uint64_t length{};  // in the unit of the view
    bool whole{};
    std::string why{};
};

/// Reconstructs calls from the slices of a timeline.
class Walk {
public:
    Walk(const Answers& answers, const std::vector<bool>& wanted, const CallOptions& options)
        : answers_(answers), wanted_(wanted), options_(options), exceptions_(answers.functions.size()) {
        for (const CallNode& node : answers.calls)
            if (node.kind == CallNode::Kind::interrupt && node.function < exceptions_.size())
                exceptions_[node.function] = true;
    }

    /// Calls `each(slice, caller, length, parts)` for each wanted slice.
    template <class Each>
    void run(const Each& each) {
        open_.clear();
        const std::vector<Slice>& slices = answers_.timeline.slices;
        for (std::size_t i = 0; i < slices.size(); ++i) {
            const bool other = !open_.empty() && slices[open_.back().slice].track != slices[i].track;
            close(other ? 0 : slices[i].depth, each);
            open_.push_back({.slice = i});
        }
        close(0, each);
    }

private:
    struct Open {
        std::size_t slice{};
        std::uint64_t callees{}, exceptions{};  // callees: without exceptions
        Parts parts{};
    };

    template <class Each>
    void close(std::uint32_t depth, const Each& each) {
        while (!open_.empty() && answers_.timeline.slices[open_.back().slice].depth >= depth) {
            Open done = std::move(open_.back());
            open_.pop_back();
            const Slice& slice = answers_.timeline.slices[done.slice];
            const bool known = slice.function < exceptions_.size();
            const std::uint64_t all = slice.end - slice.begin;
            const bool exception = known && exceptions_[slice.function];
            const std::uint64_t exceptions = exception ? all : std::min(done.exceptions, all);
            Index caller = none;
            if (!open_.empty()) {
                Open& parent = open_.back();
                const Index above = answers_.timeline.slices[parent.slice].function;
                if (answers_.timeline.slices[parent.slice].depth + 1 == slice.depth) caller = above;
                parent.exceptions += exceptions;
                parent.callees += all - exceptions;
                if (above < wanted_.size() && wanted_[above] && all != exceptions)
                    parent.parts[slice.function] += all - exceptions;
            }
            if (!known || !wanted_[slice.function]) continue;
            const std::uint64_t own = all - std::min(all, done.callees + done.exceptions);
            std::uint64_t length = own;
            if (options_.callees) length += std::min(all - own, done.callees);
            if (options_.interrupts && options_.callees) length = all;
            if (options_.interrupts && !options_.callees) length += std::min(all - own, done.exceptions);
            if (!options_.callees) done.parts.clear();
            done.parts[own_code] += own;
            if (options_.interrupts && done.exceptions != 0) done.parts[all_exceptions] += done.exceptions;
            each(done.slice, caller, length, done.parts);
        }
    }

    const Answers& answers_;
    const std::vector<bool>& wanted_;
    const CallOptions& options_;
    std::vector<bool> exceptions_;  // by function: whether it stands for an exception
    std::vector<Open> open_;
};

/// Finds calls that were cut: calls that touch lost trace, the run of another context, or an end of the trace.
class Cuts {
public:
    explicit Cuts(const Answers& answers) : answers_(answers), tracks_(answers.timeline.tracks.size()) {
        for (const CallNode& node : answers.calls)
            if (node.kind == CallNode::Kind::unsynchronised) unknown_.insert(node.function);
        for (const Slice& s : answers.timeline.slices) {
            if (s.track >= tracks_.size()) continue;
            Track& track = tracks_[s.track];
            track.begin = std::min(track.begin, s.begin);
            track.end = std::max(track.end, s.end);
        }
        for (const TimelineMark& m : answers.timeline.marks) {
            if (m.kind == TimelineMark::Kind::context) switches_.insert(m.begin);
            if (m.track >= tracks_.size()) continue;
            if (m.kind == TimelineMark::Kind::gap || m.kind == TimelineMark::Kind::overflow)
                tracks_[m.track].lost.emplace_back(m.begin, m.end);
        }
        for (Track& track : tracks_) {
            std::ranges::sort(track.lost);
            // The latest end of all intervals that have begun so far.
            for (std::size_t i = 1; i < track.lost.size(); ++i)
                track.lost[i].second = std::max(track.lost[i].second, track.lost[i - 1].second);
        }
    }
    [[nodiscard]] bool whole(const Slice& s) const {
        if (s.track >= tracks_.size()) return false;
        const Track& track = tracks_[s.track];
        if (s.end == track.end || (s.begin == track.begin && unknown_.contains(s.function))) return false;
        if (switches_.contains(s.begin) || switches_.contains(s.end)) return false;
        const auto after =
            std::ranges::upper_bound(track.lost, s.end, {}, &std::pair<std::uint64_t, std::uint64_t>::first);
        return after == track.lost.begin() || std::prev(after)->second < s.begin;
    }

private:
    struct Track {
        std::uint64_t begin = ~std::uint64_t{0}, end{};
        std::vector<std::pair<std::uint64_t, std::uint64_t>> lost{};
    };
    const Answers& answers_;
    std::vector<Track> tracks_;
    std::set<std::uint64_t> switches_;
    std::set<Index> unknown_;  // functions with an unknown caller
};

/// The smallest length that is not exceeded by at least this part of the calls.
std::uint64_t percentile(const std::vector<std::uint64_t>& sorted, std::uint64_t per_cent) {
    return sorted[(sorted.size() * per_cent + 99) / 100 - 1];
}

struct Bucket {
    std::uint64_t first{}, last{}, calls{};
};
/// Buckets have equal widths. If lengths differ by more than a factor of 16, widths double from bucket to bucket.
std::vector<Bucket> histogram(const std::vector<std::uint64_t>& sorted) {
    const std::uint64_t least = sorted.front(), most = sorted.back();
    std::vector<Bucket> out;
    if (most / 16 > least) {
        for (unsigned bits = static_cast<unsigned>(std::bit_width(least)); bits <= std::bit_width(most); ++bits)
            out.push_back({bits == 0 ? 0 : std::uint64_t{1} << (bits - 1),
                           bits == 0 ? 0 : (std::uint64_t{1} << (bits - 1)) - 1 + (std::uint64_t{1} << (bits - 1)), 0});
        for (const std::uint64_t length : sorted)
            ++out[static_cast<std::size_t>(std::bit_width(length) - std::bit_width(least))].calls;
        return out;
    }
    const std::uint64_t width = (most - least) / 10 + 1;
    for (std::uint64_t i = 0; i <= (most - least) / width; ++i)
        out.push_back({least + i * width, least + i * width + (width - 1), 0});
    for (const std::uint64_t length : sorted) ++out[static_cast<std::size_t>((length - least) / width)].calls;
    return out;
}

std::string part_name(const Answers& answers, Index part) {
    if (part == own_code) return "own code";
    if (part == all_exceptions) return "exceptions";
    return std::string(function_name(answers, part));
}

/// Whether lengths are in cycles whose counts do not begin and end where calls do.
bool has_spread_counts(const Answers& answers) {
    return std::ranges::any_of(answers.metrics, [&](const Metric& m) {
        return m.name == answers.timeline.axis.unit && (!m.exact || !m.note.empty());
    });
}

}  // namespace

std::string_view call_bound(const Answers& answers, std::uint64_t resolution) {
    const std::string& unit = answers.timeline.axis.unit;
    if (has_spread_counts(answers)) return "estimate";
    if (unit == "ns" || unit == "ticks" || completeness(answers.account).estimates) return "estimate";
    const bool lower = resolution != 0 || std::ranges::any_of(answers.account, [](const AccountRow& row) {
                           return hides_within_calls(row.reason);
                       });
    return lower ? "at least" : "exact";
}

Result<View> call_view(const Answers& answers, const CallOptions& options) {
    const Timeline& timeline = answers.timeline;
    if (const std::string_view subject = subject_without_flow(answers); !subject.empty())
        return Error{Errc::not_found,
                     fmt::format("{}: {} do not show calls; single calls need program flow", answers.capture, subject)};
    if (timeline.slices.empty())
        return Error{Errc::not_found, fmt::format("{}: the capture has no timeline of calls", answers.capture)};
    if (timeline.samples.size() > 1)
        return Error{Errc::not_found,
                     fmt::format("{}: a sum of captures contains no single calls; give one capture", answers.capture)};
    const std::string& unit = timeline.axis.unit;
    const bool time = unit == "ns" || unit == "ticks";
    if (!options.metric.empty() && options.metric != (time ? "time" : unit))
        return Error{Errc::usage,
                     fmt::format("--by {}: {} has no {}; its calls are measured in {}", options.metric, answers.capture,
                                 options.metric == "time" ? "timestamps" : options.metric, unit)};
    std::vector<bool> wanted(answers.functions.size());
    Only only({options.function});
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        only.add(Only::Kind::function, answers.functions[i].name);
        wanted[i] = names_function(options.function, answers.functions[i].name);
    }
    if (std::ranges::find(wanted, true) == wanted.end())
        return Error{Errc::not_found, fmt::format("--function: {}: {}", answers.capture, only.unknown("function"))};

    const Cuts cuts(answers);
    Walk walk(answers, wanted, options);
    // Some functions have more calls on the timeline than calls whose beginning was seen: the others were running when
    // tracing was turned on.
    std::uint64_t all_calls = 0, on_timeline = 0;
    for (const CallNode& node : answers.calls)
        if (node.function < wanted.size() && wanted[node.function]) all_calls = saturating(all_calls, node.calls);
    for (const Slice& slice : timeline.slices)
        if (slice.function < wanted.size() && wanted[slice.function])
            on_timeline = saturating(on_timeline, slice.merged);
    const bool some_began_before = on_timeline > all_calls;
    std::vector<Call> calls;
    std::uint64_t merged = 0, total = 0;
    Parts sums;
    std::vector<std::uint64_t> lengths;
    walk.run([&](std::size_t i, Index caller, std::uint64_t length, const Parts& parts) {
        const Slice& slice = timeline.slices[i];
        if (slice.merged != 1) {
            merged += slice.merged;
            return;
        }
        calls.push_back({i, caller, length, cuts.whole(slice) && !(some_began_before && caller == none)});
        total = saturating(total, length);
        if (!calls.back().whole) return;
        lengths.push_back(length);
        for (const auto& [part, took] : parts) add_saturating(sums[part], took);
    });
    if (calls.empty())
        return Error{Errc::not_found, fmt::format("--function: {}: no single call of '{}' is on the timeline{}",
                                                  answers.capture, options.function,
                                                  merged != 0 ? fmt::format("; calls shorter than {} {} are merged",
                                                                            grouped(timeline.resolution), unit)
                                                              : std::string())};
    std::ranges::stable_sort(calls, [&](const Call& a, const Call& b) {
        const Slice &x = timeline.slices[a.slice], &y = timeline.slices[b.slice];
        return std::tuple(b.length, x.track, x.begin) < std::tuple(a.length, y.track, y.begin);
    });
    std::ranges::sort(lengths);

    // Only the slowest calls are explained.
    constexpr std::size_t most_explained = 100;
    std::unordered_map<std::size_t, std::size_t> explained;
    for (std::size_t i = 0; i < std::min(calls.size(), most_explained); ++i) explained[calls[i].slice] = i;
    if (!lengths.empty())
        walk.run([&](std::size_t i, Index, std::uint64_t, const Parts& parts) {
            const auto found = explained.find(i);
            if (found == explained.end()) return;
            std::uint64_t most = 0;
            Index which = own_code;
            for (const auto& [part, took] : parts) {
                const auto sum = sums.find(part);
                const std::uint64_t mean = sum == sums.end() ? 0 : sum->second / lengths.size();
                if (took <= mean || took - mean <= most) continue;
                most = took - mean;
                which = part;
            }
            if (most != 0) calls[found->second].why = fmt::format("{} +{}", part_name(answers, which), grouped(most));
        });

    View view;
    const std::string_view word = call_bound(answers, timeline.resolution);
    // Such a count may include cycles from before the call.
    const std::string_view part = has_spread_counts(answers) ? "estimate" : "at least";
    View::Sums figures{{"calls", all_calls}, {"timed", calls.size()}, {"whole", lengths.size()}, {"merged", merged}};
    const std::string more = !some_began_before
                                 ? ""
                                 : fmt::format("; {} more had begun before trace did, or where flow was lost",
                                               grouped(on_timeline - all_calls));
    view.above.push_back(fmt::format("{} of {}, {} whole{}{}", counted(all_calls, "call"), options.function,
                                     grouped(lengths.size()), word == "exact" ? "" : " as far as is known", more));
    if (!lengths.empty()) {
        const auto figure = [&](const char* name, std::uint64_t value) { figures.emplace_back(name, value); };
        figure("least", lengths.front());
        figure("median", percentile(lengths, 50));
        figure("p95", percentile(lengths, 95));
        figure("p99", percentile(lengths, 99));
        figure("most", lengths.back());
        std::string line = unit + ":";
        for (std::size_t i = 4; i < figures.size(); ++i)
            line += fmt::format("{} {} {}", i == 4 ? "" : ",", figures[i].first, grouped(figures[i].second));
        view.above.push_back(line + fmt::format(" ({})", word));
        View::Sums bars;
        const std::vector<Bucket> buckets = histogram(lengths);
        const std::size_t width = grouped(buckets.back().last).size();
        for (const Bucket& b : buckets) {
            bars.emplace_back(fmt::format("{}", b.first), b.calls);
            view.above.push_back(fmt::format("  {:>{}} to {:>{}}  {}  {}", grouped(b.first), width, grouped(b.last),
                                             width, bar_text(b.calls, lengths.size()), grouped(b.calls)));
        }
        view.sums.emplace_back("durations", std::move(figures));
        view.sums.emplace_back("histogram", std::move(bars));
    } else {
        view.sums.emplace_back("durations", std::move(figures));
    }

    Columns<Call> columns;
    const auto slice_of = [&](const Call& c) -> const Slice& { return timeline.slices[c.slice]; };
    columns.add(Column::real("share", "share", "part of the length of all calls in this table and of those left out"),
                [&](const Call& c) { return Cell::share(c.length, total); });
    columns.add(Column::count("length", unit, "how long the call lasted, without what the options leave out", unit),
                [](const Call& c) { return Cell(c.length).in(Colour::bold); });
    columns.add(Column::text("bound", "", "exact; at least: trace began, ended or was lost in it; or estimate"),
                [&](const Call& c) { return c.whole ? word : part; });
    columns.add(Column::text("", "bound"), [&](const Call& c) { return c.whole ? word : part; });
    columns.add(Column::count("begin", "begins at", "time at which the call begins", unit),
                [&](const Call& c) { return slice_of(c).begin; });
    columns.add(Column::count("end", "", "time at which the call ends", unit),
                [&](const Call& c) { return slice_of(c).end; });
    columns.add(Column::text("longer_in", "longer in",
                             "for the 100 slowest calls: the part of the call whose length exceeds its average most"),
                [](const Call& c) { return Cell(c.why); });
    columns.add(Column::text("caller", "caller", "function that called it; unknown where the call is not in the trace"),
                [&](const Call& c) { return c.caller == none ? Cell() : Cell(function_name(answers, c.caller)); });
    const bool several = std::ranges::count(wanted, true) > 1;
    columns.add(Column::text("function", several ? "function" : "", "function that was called"),
                [&](const Call& c) { return Cell(function_name(answers, slice_of(c).function)); });
    columns.add(Column::text("track", timeline.tracks.size() > 1 ? "source" : "", "source or thread that ran the call"),
                [&](const Call& c) {
                    const Index track = slice_of(c).track;
                    return track < timeline.tracks.size() ? Cell(timeline.tracks[track].name) : Cell();
                });
    if (options.slowest != 0 && calls.size() > options.slowest) calls.resize(options.slowest);
    view.table = columns.table(calls);
    view.table.title =
        fmt::format("the slowest calls of {}{}{}, in {}", options.function, options.callees ? "" : ", without callees",
                    options.interrupts ? "" : ", without exceptions", unit);
    if (time && timeline.axis.uncertainty != 0)
        view.below.push_back(
            fmt::format("Positions between timestamps are interpolated: for 95 % of the code that ran, they are off by "
                        "at most {} {}.",
                        grouped(timeline.axis.uncertainty), unit));
    if (const std::string note = metric_note(answers, unit); !note.empty()) view.below.push_back(note);
    if (has_reason(answers.account, AccountReason::strobing))
        view.below.emplace_back(
            "Where trace paused in the function and went on in it, two calls or more may be counted as one.");
    if (timeline.resolution != 0)
        view.remark(
            Finding::Severity::warning,
            fmt::format("calls shorter than {} {} are merged, {} of this function; the figures are about the others",
                        grouped(timeline.resolution), unit, grouped(merged)));
    // The tracks of the timeline keep a limited number of marks.
    constexpr std::size_t most_marks = 10000;
    if (timeline.marks.size() >= most_marks)
        view.remark(Finding::Severity::warning,
                    "the timeline has no room for all gaps, so some of these calls may have lost trace");
    return view;
}

}  // namespace waymark::answers
