/// Reads SQLite files: files of write_sqlite() (exports/sqlite.h), with the meanings of their tables, and others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace waymark::exports {

/// A table or view of a database.
struct KnownTable {
    struct Column {
        std::string name, type, refers, what;
    };
    std::string name, what;  ///< what: empty in files of other programs
    bool view = false;
    std::optional<std::uint64_t>
        rows{};  ///< nullopt for a view that is not Waymark's: counting its rows might take for ever
    std::vector<Column> columns{};
};

/// Iterates over the rows of one SELECT. Must be destroyed before its database.
class DatabaseRows {
public:
    /// Moves to the first row, then to the next; false at the end. `bad_format`: SQLite's message, with a hint.
    [[nodiscard]] Result<bool> next();
    [[nodiscard]] std::size_t columns() const;
    [[nodiscard]] std::string_view name(std::size_t column) const;
    // Whether a value of the current row is null.
    [[nodiscard]] bool is_null(std::size_t column) const;
    [[nodiscard]] bool is_number(std::size_t column) const;
    /// A value as text, which need not be UTF-8; empty for null. Blobs are hexadecimal, as from SQL's hex(), but in
    /// lower case.
    [[nodiscard]] std::string text(std::size_t column) const;

private:
    friend class Database;
    struct Close {
        void operator()(sqlite3_stmt* statement) const;
    };
    std::unique_ptr<sqlite3_stmt, Close> statement_;
};

/// A database, opened only for reading: no other files, no settings.
class Database {
public:
    /// Errors: `not_found`: there is no such file; `unreadable`; `bad_format`: not an SQLite database, or a truncated
    /// one.
    [[nodiscard]] static Result<Database> open(const std::string& path);

    /// Runs one SELECT. `usage`: the text is not a SELECT, has several statements, or SQLite refuses it; the message
    /// then lists the tables, or the columns of the tables that the text names.
    [[nodiscard]] Result<DatabaseRows> select(const std::string& sql) const;
    /// All tables of the file, with the descriptions from Waymark's table `schema`, if the file has it. Errors:
    /// `bad_format`.
    [[nodiscard]] Result<std::vector<KnownTable>> tables() const;

private:
    struct Close {
        void operator()(sqlite3* db) const;
    };
    /// Calls `row` for each row of `sql`, with `name` bound to its `?`. Errors: `bad_format`: SQLite's message.
    template <class Row>
    Status ask(const std::string& sql, const std::string& name, Row&& row) const;

    std::string path_;
    std::unique_ptr<sqlite3, Close> db_;
};

}  // namespace waymark::exports
