/// Tables of answers: the timeline, exceptions and levels.
#include "table_cells.h"
#include "timeline.h"
#include "waymark/answers/meanings.h"

namespace waymark::exports {
namespace {

using namespace cells;
namespace meaning = answers::meaning;

constexpr std::array tracks_columns{
    Column{"id", integer, "number of the row of the timeline"},
    Column{"name", string, meaning::track_name},
    Column{"parent", integer, "row below which it is drawn", "tracks.id"},
};
void tracks_rows(const Answers& a, const RowSink& sink) {
    std::uint64_t id = 0;
    for (const auto& t : a.timeline.tracks) put_row(sink, {number(id++), words(t.name), index(t.parent)});
}

constexpr std::array slices_columns{
    Column{"track", integer, "row of the timeline", "tracks.id"},
    Column{"begin_time", integer, "time at which it begins, in capture.time_unit"},
    Column{"end_time", integer, "time at which it was over; a mark that ends as it begins is a moment"},
    Column{"depth", integer, meaning::slice_depth},
    Column{"function", integer, "function that was active", "functions.id"},
    Column{"merged", integer,
           "number of slices that it represents; where there are several, `function` took most of the time"},
};
void slices_rows(const Answers& a, const RowSink& sink) {
    for (const auto& s : a.timeline.slices)
        put_row(sink, {number(s.track), number(s.begin), number(s.end), number(s.depth), index(s.function),
                       number(s.merged)});
}

constexpr std::array marks_columns{
    Column{"track", integer, "row of the timeline", "tracks.id"},
    Column{"begin_time", integer, "time at which it begins, in capture.time_unit"},
    Column{"end_time", integer, "time at which it was over; a mark that ends as it begins is a moment"},
    Column{"kind", string, "kind of event: gap, exception, context, user data, trigger or overflow"},
    Column{"what", string, "text of the event"},
};
void marks_rows(const Answers& a, const RowSink& sink) {
    for (const auto& m : a.timeline.marks)
        put_row(sink, {index(m.track), number(m.begin), number(m.end), Cell(name(m.kind)), words(m.text)});
}

constexpr std::array messages_columns{
    Column{"time", integer, "time of the message, in capture.time_unit"},
    Column{"source", string, "trace source that sent it"},
    Column{"sender", string,
           "stimulus port, or master and channel, to which software wrote; of a loss, where it is shown"},
    Column{"kind", string, "user data: software wrote it; overflow or gap: messages are missing before it"},
    Column{"what", string, "line of text, or value, or what is missing"},
};
void messages_rows(const Answers& a, const RowSink& sink) {
    using Kind = answers::TimelineMark::Kind;
    const auto& tracks = a.timeline.tracks;
    for (const auto& m : a.timeline.marks) {
        if (m.kind != Kind::user_data && m.kind != Kind::overflow && m.kind != Kind::gap) continue;
        const answers::Track* const track = m.track < tracks.size() ? &tracks[m.track] : nullptr;
        const bool below = track != nullptr && track->parent < tracks.size();
        put_row(sink, {number(m.begin),
                       track == nullptr ? nothing() : words(below ? tracks[track->parent].name : track->name),
                       below ? words(track->name) : nothing(), Cell(name(m.kind)), words(m.text)});
    }
}

constexpr std::array series_columns{
    Column{"id", integer, "number of the rate or value over time"},
    Column{"name", string, "name of the rate or value"},
    Column{"unit", string, meaning::unit_of_values},
    Column{"track", integer, "row of the timeline to which it belongs", "tracks.id"},
};
void series_rows(const Answers& a, const RowSink& sink) {
    std::uint64_t id = 0;
    for (const auto& s : a.timeline.series) put_row(sink, {number(id++), words(s.name), words(s.unit), index(s.track)});
}

constexpr std::array points_columns{
    Column{"series", integer, "rate or value that has this point", "series.id"},
    Column{"time", integer, "time of the point, in capture.time_unit"},
    Column{"value", real, "value from this time on"},
};
void points_rows(const Answers& a, const RowSink& sink) {
    for (std::size_t i = 0; i < a.timeline.series.size(); ++i)
        for (const auto& p : a.timeline.series[i].points) put_row(sink, {number(i), number(p.time), Cell(p.value)});
}

constexpr std::array exceptions_columns{
    Column{"name", string, meaning::exception_name},    Column{"number", integer, meaning::exception_number},
    Column{"times", integer, meaning::exception_times}, Column{"nested", integer, meaning::nested},
    Column{"returned", integer, meaning::returned},     Column{"least", integer, meaning::least_time},
    Column{"most", integer, meaning::most_time},        Column{"total", integer, meaning::sum_of_times},
    Column{"unit", string, meaning::unit_of_times},
};
void exceptions_rows(const Answers& a, const RowSink& sink) {
    for (const auto& e : a.exceptions)
        put_row(sink, {words(e.name), number(e.number), number(e.times), number(e.nested), number(e.returned),
                       e.has_times() ? number(e.least) : nothing(), e.has_times() ? number(e.most) : nothing(),
                       e.has_times() ? number(e.sum) : nothing(), words(e.unit)});
}

constexpr std::array levels_columns{
    Column{"id", integer, "number of the level"},       Column{"level", string, meaning::level},
    Column{"security", string, meaning::security},      Column{"state", string, meaning::state},
    Column{"entered", integer, meaning::level_entered},
};
void levels_rows(const Answers& a, const RowSink& sink) {
    std::uint64_t id = 0;
    for (const auto& l : a.levels)
        put_row(sink, {number(id++), l.level.empty() ? nothing() : words(l.level), words(l.security), words(l.state),
                       number(l.entered)});
}

constexpr std::array level_costs_columns{
    Column{"level", integer, "level at which the code ran", "levels.id"},
    Column{"metric", integer, "metric that is counted", "metrics.id"},
    Column{"cost", integer, "cost of the code that ran at the level"},
};
void level_costs_rows(const Answers& a, const RowSink& sink) {
    for (std::size_t l = 0; l < a.levels.size(); ++l)
        for (std::size_t m = 0; m < a.levels[l].costs.size(); ++m)
            put_row(sink, {number(l), number(m), number(a.levels[l].costs[m])});
}

constexpr std::array time_table_list{
    TableInfo{"tracks", "rows of the timeline: cores, threads, tasks", tracks_columns, true, tracks_rows},
    TableInfo{"slices", "what was active when, nested", slices_columns, false, slices_rows},
    TableInfo{"marks", "gaps, exceptions and other moments of the timeline", marks_columns, false, marks_rows},
    TableInfo{"messages", "what software wrote to the unit, and where that is missing: marks, with names",
              messages_columns, false, messages_rows},
    TableInfo{"series", "rates and values over time", series_columns, true, series_rows},
    TableInfo{"points", "values of series", points_columns, false, points_rows},
    TableInfo{"exceptions", "exceptions and interrupts, and how long they took", exceptions_columns, false,
              exceptions_rows},
    TableInfo{"levels", "exception levels and security states at which something ran", levels_columns, true,
              levels_rows},
    TableInfo{"level_costs", "cost of levels, by metric", level_costs_columns, false, level_costs_rows},
};

}  // namespace

std::span<const TableInfo> time_tables() { return time_table_list; }

}  // namespace waymark::exports
