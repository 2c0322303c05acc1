/// Tables of answers: the timeline, exceptions and levels.
#include "table_cells.h"
#include "timeline.h"

namespace waymark::exports {
namespace {

using namespace cells;

constexpr std::array tracks_columns{
    Column{"id", integer, "of the row of the timeline"},
    Column{"name", string, "of the core, thread or task"},
    Column{"parent", integer, "row it is drawn below", "tracks.id"},
};
void tracks_rows(const Answers& a, const RowSink& sink) {
    std::uint64_t id = 0;
    for (const auto& t : a.timeline.tracks) put_row(sink, {number(id++), words(t.name), index(t.parent)});
}

constexpr std::array slices_columns{
    Column{"track", integer, "row of the timeline", "tracks.id"},
    Column{"begin_time", integer, "in capture.time_unit"},
    Column{"end_time", integer, "the first moment it was over"},
    Column{"depth", integer, "slices around it"},
    Column{"function", integer, "that was active", "functions.id"},
    Column{"merged", integer, "number of slices it represents; of several, `function` took most"},
};
void slices_rows(const Answers& a, const RowSink& sink) {
    for (const auto& s : a.timeline.slices)
        put_row(sink, {number(s.track), number(s.begin), number(s.end), number(s.depth), index(s.function),
                       number(s.merged)});
}

constexpr std::array marks_columns{
    Column{"track", integer, "row of the timeline", "tracks.id"},
    Column{"begin_time", integer, "in capture.time_unit"},
    Column{"end_time", integer, "equal: a moment"},
    Column{"kind", string, "gap, exception, context, user data, trigger or overflow"},
    Column{"what", string, "in words"},
};
void marks_rows(const Answers& a, const RowSink& sink) {
    for (const auto& m : a.timeline.marks)
        put_row(sink, {index(m.track), number(m.begin), number(m.end), Cell(name(m.kind)), words(m.text)});
}

constexpr std::array series_columns{
    Column{"id", integer, "of the rate or value over time"},
    Column{"name", string, "of it"},
    Column{"unit", string, "of its values"},
    Column{"track", integer, "it belongs to", "tracks.id"},
};
void series_rows(const Answers& a, const RowSink& sink) {
    std::uint64_t id = 0;
    for (const auto& s : a.timeline.series) put_row(sink, {number(id++), words(s.name), words(s.unit), index(s.track)});
}

constexpr std::array points_columns{
    Column{"series", integer, "it is of", "series.id"},
    Column{"time", integer, "in capture.time_unit"},
    Column{"value", real, "from then on"},
};
void points_rows(const Answers& a, const RowSink& sink) {
    for (std::size_t i = 0; i < a.timeline.series.size(); ++i)
        for (const auto& p : a.timeline.series[i].points) put_row(sink, {number(i), number(p.time), Cell(p.value)});
}

constexpr std::array exceptions_columns{
    Column{"name", string, "IRQ, supervisor call, …"},
    Column{"number", integer, "as the architecture counts them"},
    Column{"times", integer, "taken"},
    Column{"nested", integer, "of these while another was handled"},
    Column{"returned", integer, "whose return is in the trace; the following are of these"},
    Column{"least", integer,
           "time from entry to return, in unit; null: not known, as of handlers that were not traced"},
    Column{"most", integer, "the longest; null: as least"},
    Column{"total", integer, "of all; null: as least"},
    Column{"unit", string, "of these times: instructions or cycles"},
};
void exceptions_rows(const Answers& a, const RowSink& sink) {
    for (const auto& e : a.exceptions)
        put_row(sink, {words(e.name), number(e.number), number(e.times), number(e.nested), number(e.returned),
                       e.has_times() ? number(e.least) : nothing(), e.has_times() ? number(e.most) : nothing(),
                       e.has_times() ? number(e.sum) : nothing(), words(e.unit)});
}

constexpr std::array levels_columns{
    Column{"id", integer, "of the level"},
    Column{"level", string, "EL0 to EL3, or Hyp; null: the trace does not carry it"},
    Column{"security", string, "Secure, Non-secure, Root or Realm"},
    Column{"state", string, "AArch64 or AArch32"},
    Column{"entered", integer, "times it was changed to"},
};
void levels_rows(const Answers& a, const RowSink& sink) {
    std::uint64_t id = 0;
    for (const auto& l : a.levels)
        put_row(sink, {number(id++), l.level.empty() ? nothing() : words(l.level), words(l.security), words(l.state),
                       number(l.entered)});
}

constexpr std::array level_costs_columns{
    Column{"level", integer, "it is of", "levels.id"},
    Column{"metric", integer, "what is counted", "metrics.id"},
    Column{"cost", integer, "of the code that ran there"},
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
