/// `waymark query`: runs SQL on a database that `waymark export --to sqlite` wrote.
#include <algorithm>
#include <memory>

#include "commands.h"
#include "options.h"
#include "table.h"
#include "waymark/core/utf8.h"
#include "waymark/exports/database.h"
#include "waymark/exports/sqlite.h"

namespace waymark::cli {

namespace {

using exports::DatabaseRows;
using exports::KnownTable;

struct QueryOptions {
    std::string file, sql, format = "text", output;
};

/// Prints rows in columns; the first thousand rows determine the widths.
class TextRows {
public:
    TextRows(Output& out, const DatabaseRows& s) : out_(out) {
        for (std::size_t c = 0; c < s.columns(); ++c) heads_.push_back(one_line(s.name(c)));
    }
    void row(const DatabaseRows& s) {
        std::vector<Cell> cells;
        for (std::size_t c = 0; c < s.columns(); ++c) cells.push_back({one_line(s.text(c)), s.is_number(c)});
        if (wide_) return print(cells);
        rows_.push_back(std::move(cells));
        if (rows_.size() == 1000) settle();
    }
    void end() { settle(); }

private:
    struct Cell {
        std::string text;
        bool right;
    };
    void settle() {
        if (wide_) return;
        wide_ = true;
        widths_.resize(heads_.size());
        std::vector<Cell> head;
        for (std::size_t c = 0; c < heads_.size(); ++c) {
            widths_[c] = shown_width(heads_[c]);
            bool numbers = !rows_.empty();
            for (const auto& row : rows_) {
                widths_[c] = std::max(widths_[c], shown_width(row[c].text));
                numbers &= row[c].right || row[c].text.empty();
            }
            head.push_back({heads_[c], numbers});
        }
        print(head);
        for (const auto& row : rows_) print(row);
        rows_.clear();
    }
    void print(const std::vector<Cell>& cells) {
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
    Output& out_;
    std::vector<std::string> heads_;
    std::vector<std::size_t> widths_;
    std::vector<std::vector<Cell>> rows_;
    bool wide_ = false;
};

class TsvRows {
public:
    TsvRows(Output& out, const DatabaseRows& s) : out_(out) {
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
        out_.print("{}", text);
    }
    Output& out_;
};

/// Prints an object for each row.
class JsonRows {
public:
    JsonRows(Output& out, const DatabaseRows&) : out_(out) { out_.write("["); }
    void row(const DatabaseRows& s) {
        out_.write(first_ ? "\n{" : ",\n{");
        first_ = false;
        for (std::size_t c = 0; c < s.columns(); ++c) {
            out_.print("{}{}:", c == 0 ? "" : ",", json_string(s.name(c)));
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
    Output& out_;
    bool first_ = true;
};

void print_tables(Output& out, const std::vector<KnownTable>& tables) {
    if (std::all_of(tables.begin(), tables.end(), [](const KnownTable& t) { return t.what.empty(); })) {
        std::string names;
        for (const KnownTable& t : tables) names += (names.empty() ? "" : ", ") + t.name;
        return out.print("This file was not written by Waymark, so its tables are not explained: {}\n", names);
    }
    out.print("{:>12}  table\n", "rows");
    for (const KnownTable& t : tables)
        if (t.rows.value_or(0) != 0 && !t.what.empty())
            out.print("{:>12}  {:<17}  {}\n", grouped(*t.rows), t.name, t.what);
    out.write("\nQuestions:\n");
    for (const exports::ExampleQuery& e : exports::example_queries()) out.print("\n  {}\n    {}\n", e.question, e.sql);
    out.write("\nThe table schema explains each column.\n");
}

nlohmann::ordered_json tables_json(const std::vector<KnownTable>& tables) {
    using nlohmann::ordered_json;
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

/// Lists the contents of the file; in text format also example queries.
ExitStatus overview(const exports::Database& db, const QueryOptions& options, Output& out) {
    const auto tables = db.tables();
    if (!tables)
        return fail(
            {tables.error().code, fmt::format("{}: {}; was the file cut?", options.file, tables.error().message)});
    if (options.format == "json")
        out.write(json_text(tables_json(*tables)) + "\n");
    else if (options.format == "tsv")
        print_tsv(out, tables_table(*tables));
    else
        print_tables(out, *tables);
    return out.close();
}

template <class Rows>
ExitStatus print_rows(DatabaseRows& answer, Output& out) {
    Rows rows(out, answer);
    Result<bool> more = true;
    while ((more = answer.next()) && *more) rows.row(answer);
    rows.end();
    const ExitStatus closed = out.close();
    if (more) return closed;
    say("error", more.error().message);
    return unreadable;
}

ExitStatus run_query(const QueryOptions& options) {
    const auto db = exports::Database::open(options.file);
    if (!db) return fail(db.error());
    std::optional<DatabaseRows> answer;
    if (!options.sql.empty()) {
        auto rows = db->select(options.sql);
        if (!rows) return fail(rows.error());
        answer = std::move(*rows);
    }
    auto out = Output::open(options.output, {options.file});
    if (!out) return fail(out.error());
    if (!answer) return overview(*db, options, *out);
    if (options.format == "tsv") return print_rows<TsvRows>(*answer, *out);
    if (options.format == "json") return print_rows<JsonRows>(*answer, *out);
    return print_rows<TextRows>(*answer, *out);
}

}  // namespace

Run add_query(const Command& app) {
    const Command command = app.add("query");
    auto options = std::make_shared<QueryOptions>();
    command.option("FILE", options->file);
    command.option("SQL", options->sql);
    command.option("--format", options->format);
    command.option("--output", options->output);
    return [options] { return run_query(*options); };
}

}  // namespace waymark::cli
