/// `waymark query`: SQL on what `waymark export --to sqlite` wrote.
#include <fmt/ranges.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "commands.h"
#include "options.h"
#include "table.h"
#include "waymark/core/regular_file.h"
#include "waymark/core/types.h"
#include "waymark/core/utf8.h"
#include "waymark/exports/sqlite.h"
#include "waymark/exports/tables.h"

namespace waymark::cli {

namespace {

struct QueryOptions {
    std::string file, sql, format = "text", output;
};

struct Close {
    void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Database = std::unique_ptr<sqlite3, Close>;
using Statement = std::unique_ptr<sqlite3_stmt, Close>;

/// Reading, and nothing else: no other files, no settings.
int allow(void*, int action, const char* name, const char*, const char*, const char*) {
    switch (action) {
        case SQLITE_SELECT:
        case SQLITE_READ:
        case SQLITE_FUNCTION:
        case SQLITE_RECURSIVE: return SQLITE_OK;
        case SQLITE_PRAGMA:
            return std::string_view(name) == "table_info" || std::string_view(name) == "table_list" ? SQLITE_OK
                                                                                                    : SQLITE_DENY;
        default: return SQLITE_DENY;
    }
}

/// What a file is that is no database, and what is one.
Error no_database(const std::string& path, std::string_view what) {
    return {Errc::bad_format, fmt::format("{} is no SQLite database: {}. 'waymark export CAPTURE --to sqlite -o FILE' "
                                          "writes one of a capture",
                                          path, what)};
}

Result<Database> open_database(const std::string& path) {
    std::error_code none;
    if (!std::filesystem::exists(path, none))
        return Error{Errc::not_found, fmt::format("{}: there is no such file", path)};
    if (std::filesystem::is_directory(path, none)) return no_database(path, "it is a folder");
    if (const auto error = no_regular_file(path)) return *error;
    constexpr std::string_view magic = "SQLite format 3";
    std::string head(magic.size(), '\0');
    std::ifstream file(path, std::ios::binary);
    if (!file) return Error{Errc::unreadable, fmt::format("cannot open {}: {}", path, std::strerror(errno))};
    file.read(head.data(), static_cast<std::streamsize>(head.size()));
    head.resize(static_cast<std::size_t>(file.gcount()));
    if (head.empty()) return no_database(path, "it is empty");
    if (head != magic) {
        std::string found;
        for (const char c : head.substr(0, 8)) found += fmt::format("{:02x} ", static_cast<unsigned char>(c));
        return no_database(path, fmt::format("it begins with the bytes {}where one has the text \"{}\"", found, magic));
    }
    sqlite3* raw = nullptr;
    const int code = sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READONLY, nullptr);
    Database db(raw);
    // Whether it is a whole one shows when it is first read.
    if (code != SQLITE_OK ||
        sqlite3_exec(raw, "SELECT count(*) FROM sqlite_schema", nullptr, nullptr, nullptr) != SQLITE_OK)
        return Error{
            Errc::bad_format,
            fmt::format("{}: {}; was the file cut? 'waymark export CAPTURE --to sqlite -o FILE' writes it anew", path,
                        raw == nullptr ? "no memory" : sqlite3_errmsg(raw))};
    sqlite3_set_authorizer(raw, allow, nullptr);
    return db;
}

/// Names of the tables and views, as text.
std::string known_tables(sqlite3* db) {
    std::string out;
    sqlite3_stmt* raw = nullptr;
    sqlite3_prepare_v2(db, "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') ORDER BY rowid", -1, &raw,
                       nullptr);
    for (const Statement s(raw); s && sqlite3_step(raw) == SQLITE_ROW;)
        out += (out.empty() ? "" : ", ") + std::string(reinterpret_cast<const char*>(sqlite3_column_text(raw, 0)));
    return out;
}

/// What SQLite says, with what helps: the tables, or the columns of those that the statement names.
std::string explained(sqlite3* db, const std::string& sql) {
    const std::string what = sqlite3_errmsg(db);
    if (what == "not authorized") return "only reading is allowed: one SELECT statement on the tables of the file";
    std::string out = what;
    if (what.find("no such column") != what.npos) {
        for (const exports::TableInfo& table : exports::tables()) {
            const auto at = std::search(sql.begin(), sql.end(), table.name.begin(), table.name.end());
            if (at == sql.end()) continue;
            const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
            const auto end = at + static_cast<std::ptrdiff_t>(table.name.size());
            if ((at != sql.begin() && is_word(*(at - 1))) || (end != sql.end() && is_word(*end))) continue;
            out += fmt::format("\n  {} has:", table.name);
            for (const exports::Column& c : table.columns) out += fmt::format(" {}", c.name);
        }
        return out + "\n  select * from schema says what they mean";
    }
    if (what.find("no such table") != what.npos) return out + "; there are: " + known_tables(db);
    return out;
}

/// A value as text; nothing for null. Bytes are hexadecimal, as SQL's hex() has them, but in small letters.
std::string text_of(sqlite3_stmt* s, int column) {
    if (sqlite3_column_type(s, column) == SQLITE_BLOB) {
        const auto* const bytes = static_cast<const std::uint8_t*>(sqlite3_column_blob(s, column));
        const Bytes blob(bytes, static_cast<std::size_t>(sqlite3_column_bytes(s, column)));
        return fmt::format("{:02x}", fmt::join(blob, ""));
    }
    const auto* const text = reinterpret_cast<const char*>(sqlite3_column_text(s, column));
    return text == nullptr ? std::string()
                           : std::string(text, static_cast<std::size_t>(sqlite3_column_bytes(s, column)));
}
bool is_number(sqlite3_stmt* s, int column) {
    const int type = sqlite3_column_type(s, column);
    return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}
/// Rows in columns as wide as the first thousand rows want them.
class TextRows {
public:
    TextRows(Output& out, sqlite3_stmt* s) : out_(out) {
        for (int c = 0; c < sqlite3_column_count(s); ++c) heads_.push_back(one_line(sqlite3_column_name(s, c)));
    }
    void row(sqlite3_stmt* s) {
        std::vector<Cell> cells;
        for (int c = 0; c < sqlite3_column_count(s); ++c) cells.push_back({one_line(text_of(s, c)), is_number(s, c)});
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
    TsvRows(Output& out, sqlite3_stmt* s) : out_(out) {
        for (int c = 0; c < sqlite3_column_count(s); ++c) field(c, sqlite3_column_name(s, c));
        out_.write("\n");
    }
    void row(sqlite3_stmt* s) {
        for (int c = 0; c < sqlite3_column_count(s); ++c) field(c, text_of(s, c));
        out_.write("\n");
    }
    void end() {}

private:
    void field(int column, std::string_view text) {
        if (column != 0) out_.write("\t");
        out_.print("{}", text);
    }
    Output& out_;
};

/// An object for each row.
class JsonRows {
public:
    JsonRows(Output& out, sqlite3_stmt*) : out_(out) { out_.write("["); }
    void row(sqlite3_stmt* s) {
        out_.write(first_ ? "\n{" : ",\n{");
        first_ = false;
        for (int c = 0; c < sqlite3_column_count(s); ++c) {
            out_.print("{}{}:", c == 0 ? "" : ",", json_string(sqlite3_column_name(s, c)));
            if (sqlite3_column_type(s, c) == SQLITE_NULL)
                out_.write("null");
            else if (const std::string text = text_of(s, c); is_number(s, c) && text.find("nf") == text.npos)
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

/// A table or view of the file, and its columns.
struct KnownTable {
    struct Column {
        std::string name, type, refers, what;
    };
    std::string name, what;  ///< what: empty in files that are none of Waymark's
    bool view = false;
    std::optional<std::uint64_t> rows{};  ///< none of a view that is not Waymark's: it might take for ever
    std::vector<Column> columns{};
};

/// Calls `row` for each row that `sql` gives, with `name` for its `?`. Errors: `bad_format`: what SQLite says.
template <class Row>
waymark::Status ask(sqlite3* db, const std::string& sql, const std::string& name, Row&& row) {
    sqlite3_stmt* raw = nullptr;
    int step = sqlite3_prepare_v2(db, sql.c_str(), -1, &raw, nullptr);
    const Statement s(raw);
    if (s && sqlite3_bind_parameter_count(raw) != 0)
        sqlite3_bind_text64(raw, 1, name.data(), name.size(), SQLITE_STATIC, SQLITE_UTF8);
    if (s)
        while ((step = sqlite3_step(raw)) == SQLITE_ROW) row(raw);
    if (step == SQLITE_DONE) return Nothing{};
    return Error{Errc::bad_format, sqlite3_errmsg(db)};
}

/// The columns that a SELECT gives, and their types as far as they are declared; none of a view that cannot be read.
void add_columns(sqlite3* db, const std::string& sql, KnownTable& table) {
    sqlite3_stmt* raw = nullptr;
    sqlite3_prepare_v2(db, sql.c_str(), -1, &raw, nullptr);
    const Statement s(raw);
    if (!s) return;
    for (int c = 0; c < sqlite3_column_count(raw); ++c) {
        const char* const type = sqlite3_column_decltype(raw, c);
        table.columns.push_back({sqlite3_column_name(raw, c), type == nullptr ? "" : type, {}, {}});
    }
}

/// Everything in the file, with what Waymark's table `schema` says of it, if there is one. Errors: `bad_format`.
Result<std::vector<KnownTable>> tables_of(sqlite3* db) {
    std::vector<KnownTable> out;
    WM_RETURN_IF_ERROR(ask(db, "SELECT name, type FROM sqlite_schema WHERE type IN ('table', 'view') ORDER BY rowid",
                           {}, [&](sqlite3_stmt* s) {
                               out.push_back({text_of(s, 0), {}, text_of(s, 1) == "view"});
                           }));
    for (KnownTable& table : out) {
        std::string quoted = table.name;
        for (std::size_t at = 0; (at = quoted.find('"', at)) != quoted.npos; at += 2) quoted.insert(at, "\"");
        add_columns(db, "SELECT * FROM \"" + quoted + "\"", table);
        // A file that is none of Waymark's has no such table, or another one.
        static_cast<void>(ask(db, "SELECT column_name, refers_to, what FROM schema WHERE table_name = ?", table.name,
                              [&](sqlite3_stmt* s) {
                                  if (sqlite3_column_type(s, 0) == SQLITE_NULL) table.what = text_of(s, 2);
                                  for (KnownTable::Column& c : table.columns)
                                      if (c.name == text_of(s, 0)) {
                                          c.refers = text_of(s, 1);
                                          c.what = text_of(s, 2);
                                      }
                              }));
        if (table.view && table.what.empty()) continue;
        WM_RETURN_IF_ERROR(ask(db, "SELECT count(*) FROM \"" + quoted + "\"", {}, [&](sqlite3_stmt* s) {
            table.rows = static_cast<std::uint64_t>(sqlite3_column_int64(s, 0));
        }));
    }
    return out;
}

void print_tables(Output& out, sqlite3* db, const std::vector<KnownTable>& tables) {
    if (std::all_of(tables.begin(), tables.end(), [](const KnownTable& t) { return t.what.empty(); }))
        return out.print("This file is none of Waymark's, so its tables are not explained: {}\n", known_tables(db));
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

/// A row for each table, and one for each of its columns.
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

/// What is in the file, and, for reading, what might be asked.
Status overview(sqlite3* db, const QueryOptions& options, Output& out) {
    const auto tables = tables_of(db);
    if (!tables)
        return fail(
            {tables.error().code, fmt::format("{}: {}; was the file cut?", options.file, tables.error().message)});
    if (options.format == "json")
        out.write(json_text(tables_json(*tables)) + "\n");
    else if (options.format == "tsv")
        print_tsv(out, tables_table(*tables));
    else
        print_tables(out, db, *tables);
    return out.close();
}

template <class Rows>
Status print_rows(sqlite3* db, sqlite3_stmt* s, const std::string& sql, Output& out) {
    Rows rows(out, s);
    int step = SQLITE_ROW;
    while ((step = sqlite3_step(s)) == SQLITE_ROW) rows.row(s);
    rows.end();
    const Status closed = out.close();
    if (step == SQLITE_DONE) return closed;
    say("error", explained(db, sql));
    return unreadable;
}

Status run_query(const QueryOptions& options) {
    const auto opened = open_database(options.file);
    if (!opened) return fail(opened.error());
    sqlite3* const db = opened->get();
    Statement statement;
    if (!options.sql.empty()) {
        sqlite3_stmt* raw = nullptr;
        const char* rest = nullptr;
        if (sqlite3_prepare_v2(db, options.sql.c_str(), -1, &raw, &rest) != SQLITE_OK) {
            say("error", explained(db, options.sql));
            return usage;
        }
        statement.reset(raw);
        if (!statement) {
            say("error", "that is no statement; try: waymark query " + options.file + " 'SELECT * FROM hot_functions'");
            return usage;
        }
        if (std::string_view(rest).find_first_not_of(" \t\r\n;") != std::string_view::npos) {
            say("error", fmt::format("one statement at a time; there is more: {}", rest));
            return usage;
        }
    }
    auto out = Output::open(options.output, {options.file});
    if (!out) return fail(out.error());
    if (!statement) return overview(db, options, *out);
    if (options.format == "tsv") return print_rows<TsvRows>(db, statement.get(), options.sql, *out);
    if (options.format == "json") return print_rows<JsonRows>(db, statement.get(), options.sql, *out);
    return print_rows<TextRows>(db, statement.get(), options.sql, *out);
}

}  // namespace

Run add_query(CLI::App& app) {
    CLI::App& command = *app.add_subcommand("query", "Ask a file that 'export --to sqlite' wrote, in SQL");
    auto options = std::make_shared<QueryOptions>();
    command.add_option("FILE", options->file, "A SQLite file; it is read only")->required();
    command.add_option("SQL", options->sql, "One SELECT; without it: the tables, and questions to begin with");
    command.add_option("--format", options->format, "text: for reading; tsv, json: for programs")
        ->type_name("FORMAT")
        ->transform(one_of({"text", "tsv", "json"}))
        ->capture_default_str();
    command.add_option("-o,--output", options->output, "Write there instead of to standard output")->type_name("FILE");
    command.footer(
        "Addresses are numbers: printf('%x', address) shows them in hexadecimal. The table schema explains each "
        "column;\nso does docs/sqlite-schema.md. Without SQL, tsv and json have the tables and columns.\n"
        "Every format is UTF-8: bytes (blobs) are shown in hexadecimal, and a byte of text that is no part of a "
        "character\nas U+FFFD; hex(column) shows what it is.\n"
        "\nExamples:\n"
        "  waymark query out.sqlite\n"
        "  waymark query out.sqlite 'SELECT * FROM hot_functions LIMIT 10'\n"
        "  waymark query out.sqlite 'SELECT * FROM uncovered_lines' --format tsv\n"
        "\nExit status: 0 answered; 2 usage, or what SQL does not allow; 3 the file cannot be read.\n");
    return [options] { return run_query(*options); };
}

}  // namespace waymark::cli
