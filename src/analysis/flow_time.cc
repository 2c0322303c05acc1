#include "flow_fill.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "waymark/core/numbers.h"

namespace waymark::analysis {

using namespace answers;

namespace {

/// Puts the timelines of all streams on one axis.
class TimelineFiller {
public:
    explicit TimelineFiller(FlowFunctions& functions)
        : functions_(functions),
          a_(functions.answers()),
          streams_(functions.streams()),
          options_(functions.options()) {}

    void run() {
        std::vector<const FlowStream*> parts;
        for (const FlowStream& s : streams_)
            if (s.timeline != nullptr && s.timeline->end() > s.timeline->begin()) parts.push_back(&s);
        if (parts.empty()) return;
        Timeline& out = a_.timeline;
        const auto all = [&](auto&& test) {
            return std::all_of(parts.begin(), parts.end(), [&](const FlowStream* s) { return test(*s->timeline); });
        };
        // Timestamps that never advance are ignored.
        const bool ticks = options_.timestamps && all([](const FlowTimeline& t) {
                               return t.anchors().size() > 1 && t.anchors().back().ticks > t.anchors().front().ticks;
                           });
        const bool cycles = all([](const FlowTimeline& t) { return t.cycles(); });
        const bool clock = ticks && options_.ticks_per_second != 0;
        out.axis.unit = clock ? "ns" : ticks ? "ticks" : cycles ? "cycles" : "instructions";
        out.axis.note = ticks
                            ? fmt::format("Timestamps of the trace{}. Between two of them, positions follow the {}.",
                                          clock ? fmt::format(", {} ticks a second", grouped(options_.ticks_per_second))
                                                : ", in ticks whose frequency is not known",
                                          cycles ? "cycles" : "instructions")
                        : cycles ? "Cycles of each source since its trace began."
                                 : "Instructions that each source executed since its trace began, not time.";
        if (!ticks && parts.size() > 1)
            out.axis.note +=
                " Sources have no common clock: the same position in two of them is not the same moment. Timestamps in "
                "the trace, as waymark record --timestamps writes them, align the sources.";
        if (!options_.window.is_all())
            out.axis.note +=
                fmt::format(" The timeline begins at instruction {} of each source.", grouped(options_.window.begin));
        out.axis.begin = ~std::uint64_t{0};
        std::uint64_t left_out = 0;
        std::vector<TickMap::Interval> intervals;
        const std::size_t most = slices_of_a_part(parts);
        for (const FlowStream* s : parts) {
            const FlowTimeline& t = *s->timeline;
            std::vector<FlowTimeline::Anchor> anchors;
            if (ticks) anchors = t.anchors();
            if (clock)
                for (FlowTimeline::Anchor& a : anchors) a.ticks = nanoseconds(a.ticks, options_.ticks_per_second);
            const TickMap map(std::move(anchors));
            out.axis.begin = std::min(out.axis.begin, map.ticks(t.begin()));
            out.axis.end = std::max(out.axis.end, map.ticks(t.end()));
            map.add_intervals(intervals);
            std::vector<FlowTimeline::Piece> fewer;
            const std::vector<FlowTimeline::Piece>* pieces = &t.pieces();
            std::uint64_t resolution = t.resolution();
            while (pieces->size() > most && resolution < t.end()) {
                if (pieces != &fewer) fewer = *pieces;
                pieces = &fewer;
                resolution = std::max<std::uint64_t>(2 * resolution, 2);
                merge_pieces(fewer, resolution);
            }
            // If streams were merged by another clock, use that clock's average rate.
            const double pace = static_cast<double>(map.ticks(t.end()) - map.ticks(t.begin())) /
                                static_cast<double>(t.end() - t.begin());
            out.resolution =
                std::max(out.resolution, static_cast<std::uint64_t>(static_cast<double>(resolution) * pace));
            std::vector<Index> track_of;
            for (const auto& context : t.tracks()) track_of.push_back(track(s->source, context, t.tracks().size()));
            const std::vector<CodeFunction> known = s->sink->code().functions();
            for (const FlowTimeline::Piece& p : *pieces)
                out.slices.push_back({map.ticks(p.begin), map.ticks(p.end), track_of[p.track],
                                      functions_.index_of(known[p.function]), p.depth, p.merged});
            for (const FlowTimeline::Note& n : t.notes()) {
                TimelineMark mark{map.ticks(n.at), map.ticks(n.end), track_of[n.track], n.kind, mark_text(n)};
                if (n.kind == TimelineMark::Kind::overflow && ticks && n.bounded) {
                    const auto time = [&](std::uint64_t at) {
                        return clock ? nanoseconds(at, options_.ticks_per_second) : at;
                    };
                    mark.begin = time(n.ticks_before);
                    mark.end = time(n.ticks_after);
                    mark.text += fmt::format(": at most {} {} of execution are missing", grouped(mark.end - mark.begin),
                                             clock ? "ns" : "ticks");
                } else if (n.kind == TimelineMark::Kind::overflow) {
                    mark.text += ": how much execution is missing is not known";
                }
                out.marks.push_back(std::move(mark));
            }
            left_out += t.notes_left_out();
            if (s->steps != nullptr && options_.steps != nullptr) add_steps(*s, map, known);
        }
        const TickMap::Uncertainty off = TickMap::uncertainty(std::move(intervals));
        out.axis.uncertainty = off.usual;
        if (off.most > off.usual)
            out.axis.note +=
                fmt::format(" The longest interval between two is {} {}.", grouped(off.most), out.axis.unit);
        if (left_out != 0) out.axis.note += fmt::format(" {} marks more than can be shown are left out.", left_out);
        const auto in_order = [](const Slice& x, const Slice& y) {
            return std::tuple(x.track, x.begin, x.depth) < std::tuple(y.track, y.begin, y.depth);
        };
        // A sort takes memory for a second list.
        if (!std::is_sorted(out.slices.begin(), out.slices.end(), in_order))
            std::stable_sort(out.slices.begin(), out.slices.end(), in_order);
        std::stable_sort(out.marks.begin(), out.marks.end(), [](const TimelineMark& x, const TimelineMark& y) {
            return std::pair(x.track, x.begin) < std::pair(y.track, y.begin);
        });
    }

private:
    /// The maximum for each part, such that the sum stays within the limit: parts with fewer leave their rest to
    /// others.
    [[nodiscard]] std::size_t slices_of_a_part(const std::vector<const FlowStream*>& parts) const {
        std::vector<std::size_t> sizes;
        for (const FlowStream* s : parts) sizes.push_back(s->timeline->pieces().size());
        std::sort(sizes.begin(), sizes.end());
        std::size_t left = options_.most_slices;
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            const std::size_t share = left / (sizes.size() - i);
            if (sizes[i] > share) return std::max<std::size_t>(1, share);
            left -= sizes[i];
        }
        return std::max<std::size_t>(1, options_.most_slices);
    }
    void add_steps(const FlowStream& s, const TickMap& map, const std::vector<CodeFunction>& known) {
        using What = Steps::Frame::What;
        Steps::Stream out = s.steps->stream();
        out.source = s.source;
        for (const FlowSteps::Frame& f : s.steps->frames())
            out.frames.push_back({f.now.instructions - out.first,
                                  map.ticks(s.timeline->cycles() ? f.now.cycles : f.now.instructions), f.what, f.depth,
                                  f.what == What::enter ? functions_.index_of(known[f.function]) : Index{f.function}});
        if (!out.order.empty()) options_.steps->streams.push_back(std::move(out));
    }
    /// Times beyond 584 years become the largest number.
    static std::uint64_t nanoseconds(std::uint64_t ticks, std::uint64_t ticks_per_second) {
        constexpr std::uint64_t second = 1'000'000'000, top = ~std::uint64_t{0};
        const std::uint64_t seconds = ticks / ticks_per_second;
        if (seconds >= top / second) return top;
        __extension__ using Wide = unsigned __int128;
        return seconds * second +
               static_cast<std::uint64_t>(Wide{ticks % ticks_per_second} * second / ticks_per_second);
    }
    /// `of`: number of contexts that ran in the source. A named thread is placed below its process. Each source has its
    /// own track, since timestamps align sources only approximately.
    Index track(const std::string& source, std::optional<std::uint32_t> context, std::size_t of) {
        if (context && options_.context_name) {
            const ContextName name = options_.context_name(*context);
            const Index process = row("process " + name.process, none);
            return row(fmt::format("thread {} on {}", name.thread, source), process);
        }
        const Index parent = row(source, none);
        return of == 1 || !context ? parent : row(fmt::format("context {:#x}", *context), parent);
    }
    Index row(const std::string& name, Index parent) {
        std::vector<Track>& all = a_.timeline.tracks;
        const auto [at, fresh] = rows_.try_emplace({parent, name}, static_cast<Index>(all.size()));
        if (fresh) all.push_back({name, parent});
        return at->second;
    }
    [[nodiscard]] std::string mark_text(const FlowTimeline::Note& n) {
        switch (n.kind) {
            case TimelineMark::Kind::gap:
                return n.number == FlowTimeline::no_image
                           ? std::string("gap: no image of the code")
                           : fmt::format("gap: {}", waymark::name(static_cast<GapReason>(n.number)));
            case TimelineMark::Kind::exception: return exception_text(*n.exception);
            case TimelineMark::Kind::context:
                return options_.context_name ? "thread " + options_.context_name(n.number).thread
                                             : fmt::format("context {:#x}", n.number);
            case TimelineMark::Kind::overflow: return "the unit's FIFO overflowed";
            case TimelineMark::Kind::trigger: return "trigger";
            case TimelineMark::Kind::user_data: break;
        }
        return {};
    }

    FlowFunctions& functions_;
    Answers& a_;
    const std::vector<FlowStream>& streams_;
    const FlowAnswersOptions& options_;
    std::map<std::pair<Index, std::string>, Index> rows_;
};

}  // namespace

void fill_timeline(FlowFunctions& functions) { TimelineFiller(functions).run(); }

}  // namespace waymark::analysis
