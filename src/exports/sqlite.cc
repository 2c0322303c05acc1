#include "waymark/exports/sqlite.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <memory>

#include "waymark/exports/tables.h"
#include "writer.h"

namespace waymark::exports {

namespace {

using answers::Answers;

struct View {
    std::string_view name, what, sql;
};
constexpr std::array views{
    View{"hot_functions", "functions by their own cost, with names instead of numbers",
         "SELECT f.name, i.name AS image, f.calls, f.self, f.inclusive,\n"
         "       round(100.0 * f.self / nullif((SELECT sum(self) FROM functions), 0), 1) AS percent\n"
         "FROM functions f LEFT JOIN images i ON i.id = f.image\n"
         "WHERE f.self > 0 ORDER BY f.self DESC"},
    View{"hot_lines", "source lines by cost, with names instead of numbers",
         "SELECT s.path, l.line, f.name AS function, l.seen, l.times, l.cost\n"
         "FROM lines l JOIN sources s ON s.id = l.source LEFT JOIN functions f ON f.id = l.function\n"
         "WHERE l.cost > 0 ORDER BY l.cost DESC"},
    View{"uncovered_lines", "source lines that did not run, or were not observed",
         "SELECT s.path, l.line, f.name AS function, l.seen\n"
         "FROM lines l JOIN sources s ON s.id = l.source LEFT JOIN functions f ON f.id = l.function\n"
         "WHERE l.seen <> 'executed' ORDER BY s.path, l.line"},
    View{"activity", "slices with names instead of numbers",
         "SELECT t.name AS track, s.begin_time, s.end_time, s.end_time - s.begin_time AS length, s.depth,\n"
         "       f.name AS function, s.merged\n"
         "FROM slices s LEFT JOIN tracks t ON t.id = s.track LEFT JOIN functions f ON f.id = s.function"},
    View{"readings", "values over time with names instead of numbers: watched variables, counters, rates",
         "SELECT p.time, t.name AS track, s.name, p.value, s.unit\n"
         "FROM points p JOIN series s ON s.id = p.series LEFT JOIN tracks t ON t.id = s.track"},
};

constexpr std::array examples{
    ExampleQuery{"which functions cost most", "SELECT * FROM hot_functions LIMIT 10"},
    ExampleQuery{"who calls a function, and how often",
                 "SELECT p.name, sum(c.calls) AS calls, sum(c.inclusive) AS inclusive FROM calls c "
                 "JOIN calls up ON up.id = c.parent JOIN functions p ON p.id = up.function "
                 "JOIN functions f ON f.id = c.function WHERE f.name = 'main' GROUP BY p.name"},
    ExampleQuery{"which branches always went one way",
                 "SELECT printf('%x', address) AS address, taken, not_taken FROM branches "
                 "WHERE kind = 'conditional' AND taken + not_taken > 100 AND (taken = 0 OR not_taken = 0)"},
    ExampleQuery{"which lines never ran", "SELECT * FROM uncovered_lines"},
    ExampleQuery{"what took longest without a break", "SELECT * FROM activity ORDER BY length DESC LIMIT 10"},
    ExampleQuery{"what software wrote, and when", "SELECT time, sender, what FROM messages WHERE kind = 'user data'"},
    ExampleQuery{"where trace was lost", "SELECT * FROM marks WHERE kind = 'gap' ORDER BY begin_time"},
    ExampleQuery{"what a column means", "SELECT * FROM schema WHERE table_name = 'branches'"},
};

std::string_view type_name(Column::Type type) {
    switch (type) {
        case Column::Type::integer:
        case Column::Type::address: return "INTEGER";
        case Column::Type::real: return "REAL";
        case Column::Type::text: return "TEXT";
    }
    return "";
}

std::string create(const TableInfo& table) {
    std::string out = fmt::format("CREATE TABLE {} (  -- {}\n", table.name, table.what);
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
        const Column& c = table.columns[i];
        const std::string definition =
            fmt::format("{} {}{}{}", c.name, type_name(c.type), i == 0 && table.has_id ? " PRIMARY KEY" : "",
                        i + 1 == table.columns.size() ? "" : ",");
        out += fmt::format("    {:<32}  -- {}{}{}\n", definition, c.what,
                           c.type == Column::Type::address ? "; an address" : "",
                           c.refers.empty() ? "" : fmt::format(" → {}", c.refers));
    }
    return out + ");\n";
}
std::string create(const View& view) {
    return fmt::format("CREATE VIEW {} AS  -- {}\n{};\n", view.name, view.what, view.sql);
}

constexpr std::string_view create_schema =
    "CREATE TABLE schema (  -- what each column of each table means\n"
    "    table_name TEXT,                  -- the table\n"
    "    column_name TEXT,                 -- the column; null: the row is about the table\n"
    "    type TEXT,                        -- INTEGER, REAL or TEXT\n"
    "    refers_to TEXT,                   -- TABLE.COLUMN that its numbers refer to\n"
    "    what TEXT                         -- the meaning\n"
    ");\n";

/// A database that is being written. After an error, all operations do nothing.
class NewDatabase {
public:
    explicit NewDatabase(const std::filesystem::path& path) : path_(path) {
        sqlite3* raw = nullptr;
        code_ = sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
        db_.reset(raw);
        if (code_ != SQLITE_OK) note();
    }
    void run(const std::string& sql) {
        if (failed()) return;
        if (sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) note();
    }
    void prepare(const std::string& sql) {
        if (failed()) return;
        sqlite3_stmt* raw = nullptr;
        if (sqlite3_prepare_v2(db_.get(), sql.c_str(), -1, &raw, nullptr) != SQLITE_OK) note();
        statement_.reset(raw);
    }
    void insert(std::span<const Cell> row) {
        if (failed()) return;
        sqlite3_stmt* s = statement_.get();
        for (std::size_t i = 0; i < row.size(); ++i) {
            const int at = static_cast<int>(i + 1);
            if (const auto* n = std::get_if<std::uint64_t>(&row[i]))
                sqlite3_bind_int64(s, at, static_cast<sqlite3_int64>(*n));
            else if (const auto* d = std::get_if<double>(&row[i]))
                sqlite3_bind_double(s, at, *d);
            else if (const auto* t = std::get_if<std::string_view>(&row[i]))
                bind_text(s, at, *t);
            else
                sqlite3_bind_null(s, at);
        }
        if (sqlite3_step(s) != SQLITE_DONE) note();
        sqlite3_reset(s);
        made_utf8_.clear();
    }
    void close() {
        statement_.reset();
        if (sqlite3* raw = db_.release(); sqlite3_close(raw) != SQLITE_OK && why_.empty()) why_ = "it cannot be closed";
    }
    [[nodiscard]] bool failed() const { return !why_.empty(); }
    [[nodiscard]] Error error() const {
        return {Errc::unreadable, fmt::format("cannot write {}: {}", path_.string(), why_)};
    }

private:
    /// Readers refuse a database with text that is not UTF-8.
    void bind_text(sqlite3_stmt* s, int at, std::string_view text) {
        if (std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; }))
            text = made_utf8_.emplace_back(utf8(text));
        sqlite3_bind_text64(s, at, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
    }
    void note() {
        if (why_.empty()) why_ = db_ ? sqlite3_errmsg(db_.get()) : "no memory";
    }
    struct Close {
        void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
        void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
    };
    std::filesystem::path path_;
    std::unique_ptr<sqlite3, Close> db_;
    std::unique_ptr<sqlite3_stmt, Close> statement_;
    std::deque<std::string> made_utf8_;  // texts bound to the row that is being inserted
    int code_ = SQLITE_OK;
    std::string why_;
};

void fill_schema(NewDatabase& db) {
    db.prepare("INSERT INTO schema VALUES (?, ?, ?, ?, ?)");
    const auto text = [](std::string_view t) { return t.empty() ? Cell() : Cell(t); };
    for (const TableInfo& table : tables()) {
        const std::array<Cell, 5> about{Cell(table.name), Cell(), Cell(), Cell(), Cell(table.what)};
        db.insert(about);
        for (const Column& c : table.columns) {
            const std::array<Cell, 5> row{Cell(table.name), Cell(c.name), Cell(type_name(c.type)), text(c.refers),
                                          Cell(c.what)};
            db.insert(row);
        }
    }
    for (const View& view : views) {
        const std::array<Cell, 5> about{Cell(view.name), Cell(), Cell(), Cell(), Cell(view.what)};
        db.insert(about);
    }
}

}  // namespace

std::span<const ExampleQuery> example_queries() { return examples; }

std::string sqlite_schema() {
    std::string out;
    for (const TableInfo& table : tables()) out += create(table) + "\n";
    out += create_schema;
    for (const View& view : views) out += "\n" + create(view);
    return out;
}

std::string sqlite_document() {
    std::string out =
        "# What is in a SQLite file\n\n"
        "`waymark export CAPTURE --to sqlite -o FILE` writes these tables; `waymark query FILE 'select …'`, `sqlite3` "
        "and\n"
        "every language read them. The table `schema` in the file says the same as the comments here. CSV and JSON "
        "lines\n"
        "have the same tables.\n\n"
        "Addresses are whole numbers of 64 bits, which SQLite takes as signed: `printf('%x', address)` shows them as "
        "they\n"
        "are, and those of the upper half, a kernel's, compare below the others. Where a table has rows by metric,\n"
        "`metrics` says what each number counts, and how certain it is.\n\n"
        "Made from the code that writes the file: `WM_UPDATE_APPROVED=1 ctest -R SchemaDocument` writes it anew.\n\n"
        "## Questions\n";
    for (const ExampleQuery& e : examples) out += fmt::format("\n{}:\n\n    {}\n", e.question, e.sql);
    return out + "\n## Tables\n\n```sql\n" + sqlite_schema() + "```\n";
}

Result<ExportReport> write_sqlite(const Answers& answers, const std::filesystem::path& path) {
    std::error_code error;
    if (std::filesystem::exists(path, error))
        return Error{Errc::usage, fmt::format("{} exists already", path.string())};
    NewDatabase db(path);
    // Every table has a page of its own, so small files consist mostly of such pages.
    const std::size_t rows = answers.instructions.size() + answers.timeline.slices.size() + answers.calls.size();
    db.run(fmt::format("PRAGMA page_size = {}", rows < 10'000 ? 1024 : 4096));
    // No other process reads the file until it is complete, so protection against crashes would only cost time.
    db.run("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN");
    db.run(sqlite_schema());
    for (const TableInfo& table : tables()) {
        std::string marks;
        for (std::size_t i = 0; i < table.columns.size(); ++i) marks += i == 0 ? "?" : ", ?";
        db.prepare(fmt::format("INSERT INTO {} VALUES ({})", table.name, marks));
        table.rows(answers, [&](std::span<const Cell> row) { db.insert(row); });
    }
    fill_schema(db);
    db.run("COMMIT");
    db.close();
    if (db.failed()) return db.error();
    ExportReport report;
    report.bytes = std::filesystem::file_size(path, error);
    return report;
}

}  // namespace waymark::exports
