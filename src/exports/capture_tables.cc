/// Tables of answers: what the capture is, how far it can be trusted, and what others refer to.
#include "table_cells.h"

namespace waymark::exports {
namespace {

using namespace cells;
namespace schema = answers::schema;

constexpr std::array capture_columns{
    Column{"name", string, "of the capture"},
    Column{"unit", string, "that recorded it: PTM, SPE, DPU"},
    Column{"version", string, "of Waymark"},
    Column{"trace_bytes", integer, "size of the trace"},
    Column{"cut", integer, "1: it could not be read to its end; health says why"},
    Column{"time_unit", string, "of every time in slices, marks and points"},
    Column{"ticks_per_second", integer, "of that unit; null: not known, or it is no clock"},
    Column{"time_begin", integer, "where the timeline begins"},
    Column{"time_end", integer, "where it ends"},
    Column{"time_uncertainty", integer, "places of 95 % of what ran are off by so much at most"},
    Column{"time_resolution", integer, "slices shorter than this were merged; 0: none were"},
    Column{"time_note", string, "how the timeline was made"},
};
void capture_rows(const Answers& a, const RowSink& sink) {
    const answers::TimeAxis& axis = a.timeline.axis;
    put_row(sink, {words(a.capture), words(a.unit), words(a.version), number(a.trace_bytes), flag(a.cut),
                   words(axis.unit), known(axis.ticks_per_second), number(axis.begin), number(axis.end),
                   number(axis.uncertainty), number(a.timeline.resolution), words(axis.note)});
}

constexpr std::array account_columns{
    Column{"state", string, "observed, not traced, lost, not decoded or uncertain"},
    Column{"reason", string, "why: docs/account.md"},
    Column{"of", string, "a protocol or an image"},
    Column{"times", integer, "stretches"},
    Column{"bytes", integer, "of trace, where that is known"},
    Column{"instructions", integer, "that ran, where that is known"},
    Column{"ranges", integer, "executions of blocks, waypoints or P0 elements, where that is known"},
    Column{"records", integer, "samples of SPE, readings of a DPU, where that is known"},
};
void account_rows(const Answers& a, const RowSink& sink) {
    const auto size = [](const std::optional<std::uint64_t>& n) { return n ? number(*n) : nothing(); };
    for (const answers::AccountRow& r : a.account)
        put_row(sink, {words(answers::name(answers::account_rule(r.reason).state)),
                       word(answers::account_reason_words, r.reason), words(r.of), number(r.times), size(r.bytes),
                       size(r.instructions), size(r.ranges), size(r.records)});
}

constexpr std::array health_columns{
    Column{"severity", string, "bad, warning, note or good"},
    Column{"what", string, "a sentence"},
    Column{"todo", string, "what to do about it"},
    Column{"byte_offset", integer, "in the capture's buffer"},
};
void health_rows(const Answers& a, const RowSink& sink) {
    for (const auto& f : a.health)
        put_row(sink, {word(schema::severities, f.severity), words(f.what), words(f.todo),
                       f.offset ? number(*f.offset) : nothing()});
}

constexpr std::array summary_columns{
    Column{"name", string, "of a figure"},
    Column{"value", string, "as it is printed"},
    Column{"note", string, "to be read with it"},
};
void summary_rows(const Answers& a, const RowSink& sink) {
    for (const auto& f : a.summary) put_row(sink, {words(f.name), words(f.value), words(f.note)});
}

constexpr std::array trust_columns{
    Column{"view", string, "whose figures: functions, timeline, coverage, tasks, …"},
    Column{"exact", string, "which are exact; empty: none"},
    Column{"estimated", string, "which are estimates"},
    Column{"not_known", string, "what the capture does not contain, and how it would be recorded"},
};
void trust_rows(const Answers& a, const RowSink& sink) {
    for (const auto& t : a.trust)
        put_row(sink, {words(t.view), words(t.exact), words(t.estimated), words(t.not_known)});
}

constexpr std::array metrics_columns{
    Column{"id", integer, "0: the one that columns called cost, self and inclusive count"},
    Column{"name", string, "instructions, cycles, samples, or a counter's event"},
    Column{"unit", string, "of its values"},
    Column{"exact", integer, "1; or 0 for an estimate from samples or stretches of the run"},
    Column{"note", string, "what it leaves out"},
};
void metrics_rows(const Answers& a, const RowSink& sink) {
    std::uint64_t id = 0;
    for (const auto& m : a.metrics)
        put_row(sink, {number(id++), words(m.name), words(m.unit), flag(m.exact), words(m.note)});
}

constexpr std::array images_columns{
    Column{"id", integer, "of the program, library or memory dump"},
    Column{"name", string, "short"},
    Column{"path", string, "what was opened"},
    Column{"build_id", string, "hexadecimal"},
};
void images_rows(const Answers& a, const RowSink& sink) {
    std::uint64_t id = 0;
    for (const auto& i : a.images) put_row(sink, {number(id++), words(i.name), words(i.path), words(i.build_id)});
}

constexpr std::array sources_columns{
    Column{"id", integer, "of the source file"},
    Column{"path", string, "as debug information has it"},
};
void sources_rows(const Answers& a, const RowSink& sink) {
    std::uint64_t id = 0;
    for (const auto& s : a.sources) put_row(sink, {number(id++), words(s.path)});
}

constexpr std::array capture_table_list{
    TableInfo{"capture", "the one capture all the rest is about", capture_columns, false, capture_rows},
    TableInfo{"account", "how much of the run this is", account_columns, false, account_rows},
    TableInfo{"health", "what to know before trusting the rest, the worst first", health_columns, false, health_rows},
    TableInfo{"summary", "figures, as they are printed", summary_columns, false, summary_rows},
    TableInfo{"trust", "how far figures can be believed", trust_columns, false, trust_rows},
    TableInfo{"metrics", "what the numbers count", metrics_columns, true, metrics_rows},
    TableInfo{"images", "programs, libraries, memory dumps", images_columns, true, images_rows},
    TableInfo{"sources", "source files", sources_columns, true, sources_rows},
};

}  // namespace

std::span<const TableInfo> capture_tables() { return capture_table_list; }

}  // namespace waymark::exports
