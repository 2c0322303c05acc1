/// Tables of answers: charts, and tables that only one unit has.
#include "table_cells.h"

namespace waymark::exports {
namespace {

using namespace cells;

constexpr std::array charts_columns{
    Column{"id", integer, "of the chart"},
    Column{"kind", string, "histogram or shares"},
    Column{"title", string, "of it"},
    Column{"x_unit", string, "of the bars' labels"},
    Column{"y_unit", string, "of the bars' values"},
    Column{"note", string, "to be read with it"},
};
void charts_rows(const Answers& a, const RowSink& sink) {
    std::uint64_t id = 0;
    for (const auto& c : a.charts)
        put_row(sink,
                {number(id++), std::string_view(c.kind == answers::Chart::Kind::histogram ? "histogram" : "shares"),
                 words(c.title), words(c.x_unit), words(c.y_unit), words(c.note)});
}

constexpr std::array bars_columns{
    Column{"chart", integer, "it is in", "charts.id"},
    Column{"position", integer, "from 0"},
    Column{"label", string, "of the bar"},
    Column{"value", integer, "of it"},
    Column{"note", string, "to be read with it"},
};
void bars_rows(const Answers& a, const RowSink& sink) {
    for (std::size_t c = 0; c < a.charts.size(); ++c)
        for (std::size_t i = 0; i < a.charts[c].bars.size(); ++i) {
            const auto& bar = a.charts[c].bars[i];
            put_row(sink, {number(c), number(i), words(bar.label), number(bar.value), words(bar.note)});
        }
}

constexpr std::array unit_tables_columns{
    Column{"id", integer, "of a table that only one unit has"},
    Column{"title", string, "of it"},
    Column{"note", string, "to be read with it"},
};
void unit_tables_rows(const Answers& a, const RowSink& sink) {
    std::uint64_t id = 0;
    for (const auto& t : a.tables) put_row(sink, {number(id++), words(t.title), words(t.note)});
}

constexpr std::array unit_cells_columns{
    Column{"unit_table", integer, "it is in", "unit_tables.id"},
    Column{"row_number", integer, "from 0"},
    Column{"column_number", integer, "from 0"},
    Column{"column_name", string, "what the column is called"},
    Column{"value", string, "numbers as decimal digits"},
};
void unit_cells_rows(const Answers& a, const RowSink& sink) {
    for (std::size_t t = 0; t < a.tables.size(); ++t)
        for (std::size_t r = 0; r < a.tables[t].rows.size(); ++r)
            for (std::size_t c = 0; c < a.tables[t].rows[r].size(); ++c)
                put_row(sink, {number(t), number(r), number(c),
                               c < a.tables[t].columns.size() ? words(a.tables[t].columns[c].name) : nothing(),
                               words(a.tables[t].rows[r][c].field())});
}

constexpr std::array unit_table_list{
    TableInfo{"charts", "histograms and shares", charts_columns, true, charts_rows},
    TableInfo{"bars", "values of charts", bars_columns, false, bars_rows},
    TableInfo{"unit_tables", "tables that only one unit has", unit_tables_columns, true, unit_tables_rows},
    TableInfo{"unit_cells", "their cells", unit_cells_columns, false, unit_cells_rows},
};

}  // namespace

std::span<const TableInfo> unit_tables() { return unit_table_list; }

}  // namespace waymark::exports
