#include "waymark/listing/database.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "print.h"
#include "table_json.h"
#include "waymark/core/numbers.h"
#include "waymark/exports/sqlite.h"

namespace waymark::listing {

namespace {

using answers::Cell;
using answers::Column;
using answers::Table;
using exports::DatabaseRows;
using exports::KnownTable;
using nlohmann::ordered_json;

/// Prints rows in columns; the first thousand rows determine the widths.
class TextRows {
public:
    TextRows(TextSink& out, const DatabaseRows& s) : out_(out) {
        for (std::size_t c = 0; c < s.columns(); ++c) heads_.push_back(one_line(s.name(c)));
    }
    void row(const DatabaseRows& s) {
        std::vector<Field> cells;
        for (std::size_t c = 0; c < s.columns(); ++c) cells.push_back({one_line(s.text(c)), s.is_number(c)});
        if (wide_) return put(cells);
        rows_.push_back(std::move(cells));
        if (rows_.size() == 1000) settle();
    }
    void end() { settle(); }

private:
    struct Field {
        std::string text;
        bool right;
    };
    void settle() {
        if (wide_) return;
        wide_ = true;
        widths_.resize(heads_.size());
        std::vector<Field> head;
        for (std::size_t c = 0; c < heads_.size(); ++c) {
            widths_[c] = shown_width(heads_[c]);
            bool numbers = !rows_.empty();
            for (const auto& row : rows_) {
                widths_[c] = std::max(widths_[c], shown_width(row[c].text));
                numbers &= row[c].right || row[c].text.empty();
            }
            head.push_back({heads_[c], numbers});
        }
        put(head);
        for (const auto& row : rows_) put(row);
        rows_.clear();
    }
    void put(const std::vector<Field>& cells) {
        for (std::size_t c = 0; c < cells.size(); ++c) {
            const std::size_t width = shown_width(cells[c].text);
            const std::string pad(width < widths_[c] ? widths_[c] - width : 0, ' ');
            if (c != 0) out_.write("  ");
            if (cells[c].right) out_.write(pad);
            out_.write(cells[c].text);
            if (!cells[c].right && c + 1 != cells.size()) out_.write(pad);
        }
        out_.write("\n");
    }
    TextSink& out_;
    std::vector<std::string> heads_;
    std::vector<std::size_t> widths_;
    std::vector<std::vector<Field>> rows_;
    bool wide_ = false;
};

class TsvRows {
public:
    TsvRows(TextSink& out, const DatabaseRows& s) : out_(out) {
        for (std::size_t c = 0; c < s.columns(); ++c) field(c, s.name(c));
        out_.write("\n");
    }
    void row(const DatabaseRows& s) {
        for (std::size_t c = 0; c < s.columns(); ++c) field(c, s.text(c));
        out_.write("\n");
    }
    void end() {}

private:
    void field(std::size_t column, std::string_view text) {
        if (column != 0) out_.write("\t");
        print(out_, "{}", text);
    }
    TextSink& out_;
};

/// Prints an object for each row.
class JsonRows {
public:
    JsonRows(TextSink& out, const DatabaseRows&) : out_(out) { out_.write("["); }
    void row(const DatabaseRows& s) {
        out_.write(first_ ? "\n{" : ",\n{");
        first_ = false;
        for (std::size_t c = 0; c < s.columns(); ++c) {
            print(out_, "{}{}:", c == 0 ? "" : ",", json_string(s.name(c)));
            if (s.is_null(c))
                out_.write("null");
            else if (const std::string text = s.text(c); s.is_number(c) && text.find("nf") == text.npos)
                out_.write(text);
            else
                out_.write(json_string(text));
        }
        out_.write("}");
    }
    void end() { out_.write("\n]\n"); }

private:
    TextSink& out_;
    bool first_ = true;
};

void print_table_list(TextSink& out, const std::vector<KnownTable>& tables) {
    if (std::all_of(tables.begin(), tables.end(), [](const KnownTable& t) { return t.what.empty(); })) {
        std::string names;
        for (const KnownTable& t : tables) names += (names.empty() ? "" : ", ") + t.name;
        return print(out, "This file was not written by Waymark, so its tables are not explained: {}\n", names);
    }
    print(out, "{:>12}  table\n", "rows");
    for (const KnownTable& t : tables)
        if (t.rows.value_or(0) != 0 && !t.what.empty())
            print(out, "{:>12}  {:<17}  {}\n", grouped(*t.rows), t.name, t.what);
    out.write("\nQuestions:\n");
    for (const exports::ExampleQuery& e : exports::example_queries()) print(out, "\n  {}\n    {}\n", e.question, e.sql);
    out.write("\nThe table schema explains each column.\n");
}

ordered_json tables_json(const std::vector<KnownTable>& tables) {
    const auto known = [](const std::string& text) { return text.empty() ? ordered_json() : ordered_json(text); };
    ordered_json all = ordered_json::array(), questions = ordered_json::array();
    bool explained = false;
    for (const KnownTable& t : tables) {
        ordered_json columns = ordered_json::array();
        for (const KnownTable::Column& c : t.columns)
            columns.push_back(
                {{"column", c.name}, {"type", known(c.type)}, {"refers_to", known(c.refers)}, {"what", known(c.what)}});
        all.push_back({{"table", t.name},
                       {"rows", t.rows ? ordered_json(*t.rows) : ordered_json()},
                       {"what", known(t.what)},
                       {"columns", columns}});
        explained |= !t.what.empty();
    }
    for (const exports::ExampleQuery& e : exports::example_queries())
        if (explained) questions.push_back({{"question", e.question}, {"sql", e.sql}});
    return {{"tables", all}, {"questions", questions}};
}

/// Lists each table in a row, followed by a row for each of its columns.
Table tables_table(const std::vector<KnownTable>& tables) {
    Table out{.columns = {Column::text("table", ""), Column::count("rows", ""), Column::text("column", ""),
                          Column::text("type", ""), Column::text("refers_to", ""), Column::text("what", "")}};
    for (const KnownTable& t : tables) {
        out.add({Cell(t.name), t.rows ? Cell(*t.rows) : Cell(), Cell(), Cell(), Cell(), Cell(t.what)});
        for (const KnownTable::Column& c : t.columns)
            out.add({Cell(t.name), Cell(), Cell(c.name), Cell(c.type), Cell(c.refers), Cell(c.what)});
    }
    return out;
}

template <class Rows>
Status print_as(TextSink& out, DatabaseRows& answer) {
    Rows rows(out, answer);
    Result<bool> more = true;
    while ((more = answer.next()) && *more) rows.row(answer);
    rows.end();
    if (!more) return std::move(more.error());
    return Nothing{};
}

}  // namespace

Status print_rows(TextSink& out, DatabaseRows& rows, LineFormat format) {
    if (format == LineFormat::tsv) return print_as<TsvRows>(out, rows);
    if (format == LineFormat::json) return print_as<JsonRows>(out, rows);
    return print_as<TextRows>(out, rows);
}

void print_tables(TextSink& out, const std::vector<KnownTable>& tables, LineFormat format) {
    if (format == LineFormat::tsv) return print_tsv(out, tables_table(tables));
    if (format == LineFormat::json) return out.write(json_text(tables_json(tables)) + "\n");
    print_table_list(out, tables);
}

}  // namespace waymark::listing
