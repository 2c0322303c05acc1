/// Tables of answers: the capture, the trust in its figures, and tables that others refer to.
#include "table_cells.h"
#include "waymark/answers/account_effects.h"
#include "waymark/answers/meanings.h"

namespace waymark::exports {
namespace {

using namespace cells;
namespace meaning = answers::meaning;
namespace schema = answers::schema;

constexpr std::array capture_columns{
    Column{"name", string, "name of the capture"},
    Column{"unit", string, "trace unit that recorded it, such as PTM, SPE or DPU"},
    Column{"version", string, meaning::version},
    Column{"run", string, "how much of the run this is, in one sentence; the table account has its parts"},
    Column{"trace_bytes", integer, meaning::trace_bytes},
    Column{"cut", integer, meaning::cut},
    Column{"time_unit", string, "unit of all times in slices, marks and points"},
    Column{"ticks_per_second", integer, "frequency of that unit; null: not known, or the unit is no clock"},
    Column{"time_begin", integer, "time at which the timeline begins"},
    Column{"time_end", integer, "time at which the timeline ends"},
    Column{"time_uncertainty", integer, "largest error of the times of 95 % of what ran"},
    Column{"time_resolution", integer, meaning::finest},
    Column{"time_note", string, "how the timeline was made"},
};
void capture_rows(const Answers& a, const RowSink& sink) {
    const answers::TimeAxis& axis = a.timeline.axis;
    const std::string run = answers::account_sentence(a.account);
    put_row(sink, {words(a.capture), words(a.unit), words(a.version), words(run), number(a.trace_bytes), flag(a.cut),
                   words(axis.unit), known(axis.ticks_per_second), number(axis.begin), number(axis.end),
                   number(axis.uncertainty), number(a.timeline.resolution), words(axis.note)});
}

constexpr std::array account_columns{
    Column{"state", string, "what became of a part of the run: observed, not traced, lost, not decoded or uncertain"},
    Column{"reason", string, "reason for that (docs/account.md)"},
    Column{"of", string, meaning::account_of},
    Column{"times", integer, meaning::account_times},
    Column{"bytes", integer, meaning::account_bytes},
    Column{"instructions", integer, meaning::account_instructions},
    Column{"ranges", integer, meaning::account_ranges},
    Column{"records", integer, meaning::account_records},
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
    Column{"what", string, meaning::finding},
    Column{"todo", string, meaning::remedy},
    Column{"byte_offset", integer, "offset in the capture's buffer, in bytes"},
};
void health_rows(const Answers& a, const RowSink& sink) {
    for (const auto& f : a.health)
        put_row(sink, {word(schema::severities, f.severity), words(f.what), words(f.todo),
                       f.offset ? number(*f.offset) : nothing()});
}

constexpr std::array summary_columns{
    Column{"name", string, meaning::figure_name},
    Column{"value", string, meaning::figure_value},
    Column{"note", string, meaning::remark},
};
void summary_rows(const Answers& a, const RowSink& sink) {
    for (const auto& f : a.summary) put_row(sink, {words(f.name), words(f.value), words(f.note)});
}

constexpr std::array trust_columns{
    Column{"view", string, meaning::trust_view},
    Column{"exact", string, meaning::trust_exact},
    Column{"estimated", string, meaning::trust_estimated},
    Column{"not_known", string, meaning::trust_not_known},
};
void trust_rows(const Answers& a, const RowSink& sink) {
    for (const auto& t : a.trust)
        put_row(sink, {words(t.view), words(t.exact), words(t.estimated), words(t.not_known)});
}

constexpr std::array metrics_columns{
    Column{"id", integer, "number of the metric; the columns cost, self and inclusive count metric 0"},
    Column{"name", string, meaning::metric_name},
    Column{"unit", string, meaning::unit_of_values},
    Column{"figures", string, "certainty of its sums as figures of the whole run: exact, lower bound or estimate"},
    Column{"note", string, "what the metric leaves out"},
};
void metrics_rows(const Answers& a, const RowSink& sink) {
    std::uint64_t id = 0;
    for (const auto& m : a.metrics)
        put_row(sink,
                {number(id++), words(m.name), words(m.unit), answers::word_of(a.account, m.exact), words(m.note)});
}

constexpr std::array images_columns{
    Column{"id", integer, "number of the program, library or memory dump"},
    Column{"name", string, meaning::image_name},
    Column{"path", string, meaning::opened_path},
    Column{"build_id", string, meaning::build_id},
};
void images_rows(const Answers& a, const RowSink& sink) {
    std::uint64_t id = 0;
    for (const auto& i : a.images) put_row(sink, {number(id++), words(i.name), words(i.path), words(i.build_id)});
}

constexpr std::array sources_columns{
    Column{"id", integer, "number of the source file"},
    Column{"path", string, meaning::debug_path},
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
