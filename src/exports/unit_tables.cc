/// Tables of answers: charts, and tables that only one unit has.
#include "table_cells.h"
#include "waymark/answers/meanings.h"

namespace waymark::exports {
namespace {

using namespace cells;
namespace meaning = answers::meaning;

constexpr std::array charts_columns{
    Column{"id", integer, "number of the chart"},
    Column{"kind", string, "how the chart is drawn: histogram or shares"},
    Column{"title", string, "title of the chart or table"},
    Column{"x_unit", string, "unit of the bars' labels"},
    Column{"y_unit", string, "unit of the bars' values"},
    Column{"note", string, meaning::remark},
};
void charts_rows(const Answers& a, const RowSink& sink) {
    std::uint64_t id = 0;
    for (const auto& c : a.charts)
        put_row(sink,
                {number(id++), std::string_view(c.kind == answers::Chart::Kind::histogram ? "histogram" : "shares"),
                 words(c.title), words(c.x_unit), words(c.y_unit), words(c.note)});
}

constexpr std::array bars_columns{
    Column{"chart", integer, "chart that contains the bar", "charts.id"},
    Column{"position", integer, "place of the bar in the chart, from 0"},
    Column{"label", string, "label of the bar"},
    Column{"value", integer, "value of the bar"},
    Column{"note", string, meaning::remark},
};
void bars_rows(const Answers& a, const RowSink& sink) {
    for (std::size_t c = 0; c < a.charts.size(); ++c)
        for (std::size_t i = 0; i < a.charts[c].bars.size(); ++i) {
            const auto& bar = a.charts[c].bars[i];
            put_row(sink, {number(c), number(i), words(bar.label), number(bar.value), words(bar.note)});
        }
}

constexpr std::array unit_tables_columns{
    Column{"id", integer, "number of the table, which only one kind of trace unit has"},
    Column{"title", string, "title of the chart or table"},
    Column{"note", string, meaning::remark},
};
void unit_tables_rows(const Answers& a, const RowSink& sink) {
    std::uint64_t id = 0;
    for (const auto& t : a.tables) put_row(sink, {number(id++), words(t.title), words(t.note)});
}

constexpr std::array unit_cells_columns{
    Column{"unit_table", integer, "table that contains the cell", "unit_tables.id"},
    Column{"row_number", integer, "row of the cell, from 0"},
    Column{"column_number", integer, "column of the cell, from 0"},
    Column{"column_name", string, "name of the column"},
    Column{"value", string, "value of the cell; numbers as decimal digits"},
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
