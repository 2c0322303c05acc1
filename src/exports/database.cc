#include "waymark/exports/database.h"

#include <fmt/ranges.h>
#include <sqlite3.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "waymark/core/quote.h"
#include "waymark/core/regular_file.h"
#include "waymark/core/types.h"
#include "waymark/exports/tables.h"

namespace waymark::exports {

namespace {

using Statement = std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)>;

/// Allows only reading: no other files, no settings.
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

/// The error for a file that is not a database: names the file's format and the expected one.
Error no_database(const std::string& path, std::string_view what) {
    return {Errc::bad_format,
            fmt::format("{} is not an SQLite database: {}. 'waymark export CAPTURE --to sqlite -o FILE' "
                        "creates one from a capture",
                        path, what)};
}

/// Names of the tables and views, as text.
std::string known_tables(sqlite3* db) {
    std::string out;
    sqlite3_stmt* raw = nullptr;
    sqlite3_prepare_v2(db, "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') ORDER BY rowid", -1, &raw,
                       nullptr);
    for (const Statement s(raw, sqlite3_finalize); s && sqlite3_step(raw) == SQLITE_ROW;)
        out += (out.empty() ? "" : ", ") + std::string(reinterpret_cast<const char*>(sqlite3_column_text(raw, 0)));
    return out;
}

/// SQLite's message, with a hint: the tables, or the columns of the tables that the statement names.
std::string explained(sqlite3* db, const std::string& sql) {
    const std::string what = sqlite3_errmsg(db);
    if (what == "not authorized") return "only reading is allowed: one SELECT statement on the tables of the file";
    std::string out = what;
    if (what.find("no such column") != what.npos) {
        for (const TableInfo& table : tables()) {
            const auto at = std::search(sql.begin(), sql.end(), table.name.begin(), table.name.end());
            if (at == sql.end()) continue;
            const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
            const auto end = at + static_cast<std::ptrdiff_t>(table.name.size());
            if ((at != sql.begin() && is_word(*(at - 1))) || (end != sql.end() && is_word(*end))) continue;
            out += fmt::format("\n  {} has:", table.name);
            for (const Column& c : table.columns) out += fmt::format(" {}", c.name);
        }
        return out + "\n  select * from schema shows what they mean";
    }
    if (what.find("no such table") != what.npos) return out + "; there are: " + known_tables(db);
    return out;
}

/// Adds the columns of a SELECT, and their declared types; none for a view that cannot be read.
void add_columns(sqlite3* db, const std::string& sql, KnownTable& table) {
    sqlite3_stmt* raw = nullptr;
    sqlite3_prepare_v2(db, sql.c_str(), -1, &raw, nullptr);
    const Statement s(raw, sqlite3_finalize);
    if (!s) return;
    for (int c = 0; c < sqlite3_column_count(raw); ++c) {
        const char* const type = sqlite3_column_decltype(raw, c);
        table.columns.push_back({sqlite3_column_name(raw, c), type == nullptr ? "" : type, {}, {}});
    }
}

}  // namespace

void Database::Close::operator()(sqlite3* db) const { sqlite3_close_v2(db); }
void DatabaseRows::Close::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

Result<bool> DatabaseRows::next() {
    const int step = sqlite3_step(statement_.get());
    if (step == SQLITE_ROW || step == SQLITE_DONE) return step == SQLITE_ROW;
    return Error{Errc::bad_format, explained(sqlite3_db_handle(statement_.get()), sqlite3_sql(statement_.get()))};
}
std::size_t DatabaseRows::columns() const { return static_cast<std::size_t>(sqlite3_column_count(statement_.get())); }
std::string_view DatabaseRows::name(std::size_t column) const {
    return sqlite3_column_name(statement_.get(), static_cast<int>(column));
}
bool DatabaseRows::is_null(std::size_t column) const {
    return sqlite3_column_type(statement_.get(), static_cast<int>(column)) == SQLITE_NULL;
}
bool DatabaseRows::is_number(std::size_t column) const {
    const int type = sqlite3_column_type(statement_.get(), static_cast<int>(column));
    return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}
std::string DatabaseRows::text(std::size_t column) const {
    sqlite3_stmt* const s = statement_.get();
    const int c = static_cast<int>(column);
    if (sqlite3_column_type(s, c) == SQLITE_BLOB) {
        const auto* const bytes = static_cast<const std::uint8_t*>(sqlite3_column_blob(s, c));
        return fmt::format("{:02x}", fmt::join(Bytes(bytes, static_cast<std::size_t>(sqlite3_column_bytes(s, c))), ""));
    }
    const auto* const text = reinterpret_cast<const char*>(sqlite3_column_text(s, c));
    return text == nullptr ? std::string() : std::string(text, static_cast<std::size_t>(sqlite3_column_bytes(s, c)));
}

Result<Database> Database::open(const std::string& path) {
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
        return no_database(path, fmt::format("it begins with the bytes {}instead of the text \"{}\"", found, magic));
    }
    sqlite3* raw = nullptr;
    const int code = sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READONLY, nullptr);
    Database out;
    out.path_ = path;
    out.db_.reset(raw);
    // SQLite detects a truncated file only on first read.
    if (code != SQLITE_OK ||
        sqlite3_exec(raw, "SELECT count(*) FROM sqlite_schema", nullptr, nullptr, nullptr) != SQLITE_OK)
        return Error{
            Errc::bad_format,
            fmt::format("{}: {}; was the file cut? 'waymark export CAPTURE --to sqlite -o FILE' writes it anew", path,
                        raw == nullptr ? "no memory" : sqlite3_errmsg(raw))};
    sqlite3_set_authorizer(raw, allow, nullptr);
    return out;
}

Result<DatabaseRows> Database::select(const std::string& sql) const {
    sqlite3_stmt* raw = nullptr;
    const char* rest = nullptr;
    if (sqlite3_prepare_v2(db_.get(), sql.c_str(), -1, &raw, &rest) != SQLITE_OK)
        return Error{Errc::usage, explained(db_.get(), sql)};
    DatabaseRows out;
    out.statement_.reset(raw);
    if (raw == nullptr)
        return Error{Errc::usage,
                     "that is not an SQL statement; try: waymark query " + path_ + " 'SELECT * FROM hot_functions'"};
    if (std::string_view(rest).find_first_not_of(" \t\r\n;") != std::string_view::npos)
        return Error{Errc::usage, fmt::format("one statement at a time; there is more: {}", rest)};
    return out;
}

template <class Row>
Status Database::ask(const std::string& sql, const std::string& name, Row&& row) const {
    sqlite3_stmt* raw = nullptr;
    int step = sqlite3_prepare_v2(db_.get(), sql.c_str(), -1, &raw, nullptr);
    DatabaseRows rows;
    rows.statement_.reset(raw);
    if (raw != nullptr && sqlite3_bind_parameter_count(raw) != 0)
        sqlite3_bind_text64(raw, 1, name.data(), name.size(), SQLITE_STATIC, SQLITE_UTF8);
    if (raw != nullptr)
        while ((step = sqlite3_step(raw)) == SQLITE_ROW) row(rows);
    if (step == SQLITE_DONE) return Nothing{};
    return Error{Errc::bad_format, sqlite3_errmsg(db_.get())};
}

Result<std::vector<KnownTable>> Database::tables() const {
    std::vector<KnownTable> out;
    WM_RETURN_IF_ERROR(ask("SELECT name, type FROM sqlite_schema WHERE type IN ('table', 'view') ORDER BY rowid", {},
                           [&](const DatabaseRows& s) {
                               out.push_back({s.text(0), {}, s.text(1) == "view"});
                           }));
    for (KnownTable& table : out) {
        add_columns(db_.get(), "SELECT * FROM " + sql_name(table.name), table);
        // A database from another program lacks this table, or has another one.
        static_cast<void>(ask("SELECT column_name, refers_to, what FROM schema WHERE table_name = ?", table.name,
                              [&](const DatabaseRows& s) {
                                  if (s.is_null(0)) table.what = s.text(2);
                                  for (KnownTable::Column& c : table.columns)
                                      if (c.name == s.text(0)) {
                                          c.refers = s.text(1);
                                          c.what = s.text(2);
                                      }
                              }));
        if (table.view && table.what.empty()) continue;
        WM_RETURN_IF_ERROR(ask("SELECT count(*) FROM " + sql_name(table.name), {},
                               [&](const DatabaseRows& s) { table.rows = std::stoull(s.text(0)); }));
    }
    return out;
}

}  // namespace waymark::exports
