/// Reads SQLite files: those that write_sqlite() wrote (exports/sqlite.h), with what their tables mean, and others.
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
    std::string name, what;  ///< what: empty in files that are none of Waymark's
    bool view = false;
    std::optional<std::uint64_t> rows{};  ///< none of a view that is not Waymark's: it might take for ever
    std::vector<Column> columns{};
};

/// The rows that one SELECT gives, one after another. It ends before its database.
class DatabaseRows {
public:
    /// Goes to the first row, then to the next; false: there is none. `bad_format`: what SQLite says, and what helps.
    [[nodiscard]] Result<bool> next();
    [[nodiscard]] std::size_t columns() const;
    [[nodiscard]] std::string_view name(std::size_t column) const;
    // Of the row that next() went to.
    [[nodiscard]] bool is_null(std::size_t column) const;
    [[nodiscard]] bool is_number(std::size_t column) const;
    /// As text, which need not be UTF-8; empty for null. Bytes are hexadecimal, as SQL's hex() has them, but in small
    /// letters.
    [[nodiscard]] std::string text(std::size_t column) const;

private:
    friend class Database;
    struct Close {
        void operator()(sqlite3_stmt* statement) const;
    };
    std::unique_ptr<sqlite3_stmt, Close> statement_;
};

/// A database, open for reading and for nothing else: no other files, no settings.
class Database {
public:
    /// Errors: `not_found`: there is no such file; `unreadable`; `bad_format`: it is no SQLite database, or a cut one.
    [[nodiscard]] static Result<Database> open(const std::string& path);

    /// Runs one SELECT. `usage`: the text is no SELECT, has several statements, or SQLite refuses it; the message then
    /// lists the tables, or the columns of the tables that the text names.
    [[nodiscard]] Result<DatabaseRows> select(const std::string& sql) const;
    /// All tables of the file, with the descriptions from Waymark's table `schema`, if the file has it. Errors:
    /// `bad_format`.
    [[nodiscard]] Result<std::vector<KnownTable>> tables() const;

private:
    struct Close {
        void operator()(sqlite3* db) const;
    };
    /// Calls `row` for each row that `sql` gives, with `name` for its `?`. Errors: `bad_format`: what SQLite says.
    template <class Row>
    Status ask(const std::string& sql, const std::string& name, Row&& row) const;

    std::string path_;
    std::unique_ptr<sqlite3, Close> db_;
};

}  // namespace waymark::exports
