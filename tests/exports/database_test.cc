/// SQLite files as `waymark query` reads them: tables with their meanings, values as text, and each refusal.
#include "waymark/exports/database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "exports/tools.h"
#include "support/detailed_answers.h"
#include "waymark/exports/sqlite.h"

namespace waymark::exports {
namespace {

using namespace std::string_literals;

class Databases : public testing::Test {
protected:
    /// A database with these statements.
    std::string made(const std::string& sql, const char* name = "made.sqlite") {
        const std::string path = (folder_.path() / name).string();
        sqlite3* db = nullptr;
        EXPECT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
        EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
        sqlite3_close(db);
        return path;
    }
    std::string ours() {
        const auto path = folder_.path() / "ours.sqlite";
        EXPECT_TRUE(write_sqlite(support::detailed_answers(), path));
        return path.string();
    }
    static Database opened(const std::string& path) {
        auto db = Database::open(path);
        EXPECT_TRUE(db) << (db ? "" : db.error().message);
        return db ? std::move(*db) : Database{};
    }
    static std::string refusal(const std::string& path) {
        const auto db = Database::open(path);
        return db ? "opened" : fmt::format("{} {}", static_cast<int>(db.error().code), db.error().message);
    }
    /// All rows: `name=value`, `~` for null, `#` before numbers; or the error.
    static std::string rows(const Database& db, const std::string& sql) {
        auto selected = db.select(sql);
        if (!selected) return selected.error().message;
        std::string out;
        for (;;) {
            const auto more = selected->next();
            if (!more) return out + more.error().message;
            if (!*more) return out;
            for (std::size_t c = 0; c < selected->columns(); ++c)
                out += fmt::format("{}={}{}{} ", selected->name(c), selected->is_null(c) ? "~" : "",
                                   selected->is_number(c) ? "#" : "", selected->text(c));
            out += "\n";
        }
    }
    TemporaryFolder folder_;
};

TEST_F(Databases, ValuesAreText) {
    const Database db =
        opened(made("CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 'x'), (2.5, NULL), "
                    "(X'00ff1a', X''), ('y' || char(0) || 'z', -3)"));
    EXPECT_EQ(rows(db, "SELECT a, b AS other FROM t;\n "),
              "a=#1 other=x \na=#2.5 other=~ \na=00ff1a other= \na=y\0z other=#-3 \n"s);
}

TEST_F(Databases, OnlyOneReadingStatement) {
    const std::string path = made("CREATE TABLE t (a); CREATE VIEW v AS SELECT a FROM t; CREATE TABLE edges (b)");
    const Database db = opened(path);
    constexpr auto reading = "only reading is allowed: one SELECT statement on the tables of the file";
    for (const char* sql : {"DELETE FROM t", "INSERT INTO t VALUES (1)", "CREATE TABLE u (a)", "ATTACH 'x' AS y",
                            "PRAGMA journal_mode = OFF", "DROP VIEW v"})
        EXPECT_EQ(rows(db, sql), reading) << sql;
    EXPECT_EQ(rows(db, "SELECT 1; SELECT 2"), "one statement at a time; there is more:  SELECT 2");
    EXPECT_EQ(rows(db, "SELECT 1 ;;\r\t"), "1=#1 \n");
    EXPECT_EQ(rows(db, ""),
              "that is not an SQL statement; try: waymark query " + path + " 'SELECT * FROM hot_functions'");
    EXPECT_EQ(rows(db, "PRAGMA table_info(t)"), "cid=#0 name=a type= notnull=#0 dflt_value=~ pk=#0 \n");
    EXPECT_TRUE(rows(db, "PRAGMA table_list").starts_with("schema=main name="));
    EXPECT_EQ(rows(db, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 2) SELECT i FROM n"),
              "i=#1 \ni=#2 \n");
    EXPECT_EQ(rows(db, "SELECT * FROM u"), "no such table: u; there are: t, v, edges");
    EXPECT_EQ(rows(db, "SELEC"), "near \"SELEC\": syntax error");
    EXPECT_EQ(rows(db, "SELECT nope FROM t"), "no such column: nope\n  select * from schema shows what they mean");
    EXPECT_EQ(rows(db, "SELECT nope FROM edges"),
              "no such column: nope\n"
              "  edges has: from_address to_address from_function to_function kind times\n"
              "  select * from schema shows what they mean");
    EXPECT_EQ(rows(db, "SELECT abs(-9223372036854775808)"), "integer overflow");
}

// A table's name inside a longer word is not its name.
TEST_F(Databases, TablesOfAStatementAreWholeWords) {
    const Database db = opened(made("CREATE TABLE edges_2 (a); CREATE TABLE my_edges (a); CREATE TABLE xedges (a)"));
    for (const char* table : {"edges_2", "my_edges", "xedges"})
        EXPECT_EQ(rows(db, fmt::format("SELECT nope FROM {}", table)),
                  "no such column: nope\n  select * from schema shows what they mean");
}

TEST_F(Databases, FilesThatAreNone) {
    const auto path = [&](const char* name) { return (folder_.path() / name).string(); };
    const std::string hint = ". 'waymark export CAPTURE --to sqlite -o FILE' creates one from a capture";
    const auto code = [](Errc c) { return std::to_string(static_cast<int>(c)) + " "; };
    EXPECT_EQ(refusal(path("none")), code(Errc::not_found) + path("none") + ": there is no such file");
    EXPECT_EQ(refusal(folder_.path().string()),
              code(Errc::bad_format) + folder_.path().string() + " is not an SQLite database: it is a folder" + hint);
    folder_.write("empty", std::string_view());
    EXPECT_EQ(refusal(path("empty")),
              code(Errc::bad_format) + path("empty") + " is not an SQLite database: it is empty" + hint);
    folder_.write("text", std::string_view("SQLite format"));
    EXPECT_EQ(refusal(path("text")),
              code(Errc::bad_format) + path("text") +
                  " is not an SQLite database: it begins with the bytes 53 51 4c 69 74 65 20 66 instead of the text "
                  "\"SQLite format 3\"" +
                  hint);
    folder_.write("high", std::string_view("\xff\x01"));
    EXPECT_NE(refusal(path("high")).find("the bytes ff 01 instead"), std::string::npos);
    EXPECT_EQ(refusal("/dev/null").find("opened"), std::string::npos);
    const std::string whole = made("CREATE TABLE t (a)");
    std::filesystem::resize_file(whole, 100);
    EXPECT_EQ(refusal(whole),
              code(Errc::bad_format) + whole +
                  ": database disk image is malformed; was the file cut? 'waymark export CAPTURE --to sqlite "
                  "-o FILE' writes it anew");
}

std::string described(const KnownTable& t) {
    std::string out = fmt::format("{}{} rows {}: {}\n", t.view ? "view " : "", t.name,
                                  t.rows ? std::to_string(*t.rows) : "?", t.what);
    for (const KnownTable::Column& c : t.columns)
        out += fmt::format("  {} {} [{}] {}\n", c.name, c.type, c.refers, c.what);
    return out;
}

TEST_F(Databases, OurTablesHaveMeanings) {
    const auto tables = opened(ours()).tables();
    ASSERT_TRUE(tables);
    std::string found;
    for (const KnownTable& t : *tables)
        if (t.name == "blocks" || t.name == "schema" || t.name == "readings") found += described(t);
    EXPECT_EQ(
        found,
        "blocks rows 5: code that ran from end to end without a taken branch; blocks overlap\n"
        "  address INTEGER [] address of the block's first instruction\n"
        "  bytes INTEGER [] length in bytes\n"
        "  instructions INTEGER [] number of instructions in the block\n"
        "  function INTEGER [functions.id] function that contains it\n"
        "  times INTEGER [] times it ran\n"
        "schema rows " +
            std::to_string(
                *std::find_if(tables->begin(), tables->end(), [](const KnownTable& t) { return t.name == "schema"; })
                     ->rows) +
            ": \n"
            "  table_name TEXT [] \n  column_name TEXT [] \n  type TEXT [] \n  refers_to TEXT [] \n  what TEXT [] \n"
            "view readings rows 3: values over time with names instead of numbers: watched variables, counters, "
            "rates\n"
            "  time INTEGER [] \n  track TEXT [] \n  name TEXT [] \n  value REAL [] \n  unit TEXT [] \n");
}

TEST_F(Databases, TablesOfOtherPrograms) {
    const auto tables =
        opened(made("CREATE TABLE \"a b\" (\"c \"\"d\" INT, e); INSERT INTO \"a b\" VALUES (1, 2), (3, 4); "
                    "CREATE VIEW v AS SELECT e FROM \"a b\"; CREATE VIEW broken AS SELECT * FROM gone"))
            .tables();
    ASSERT_TRUE(tables);
    std::string found;
    for (const KnownTable& t : *tables) found += described(t);
    EXPECT_EQ(found, "a b rows 2: \n  c \"d INT [] \n  e  [] \nview v rows ?: \n  e  [] \nview broken rows ?: \n");
}

// ---- writing

TEST_F(Databases, WhatIsWrittenIsWhole) {
    const std::string path = ours();
    const Database db = opened(path);
    EXPECT_EQ(rows(db, "SELECT * FROM hot_functions LIMIT 2"),
              "name=work(int) image=prog calls=#5 self=#25 inclusive=#44 percent=#39.1 \n"
              "name=main image=prog calls=#1 self=#11 inclusive=#59 percent=#17.2 \n");
    EXPECT_EQ(rows(db, "SELECT * FROM readings"),
              "time=#100 track=thread a[12] on cpu0 name=load value=#1.25 unit=% \n"
              "time=#200 track=thread a[12] on cpu0 name=load value=#-3.0 unit=% \n"
              "time=#100 track=~ name=all value=#9.00719925474099e+15 unit=1/s \n");
    EXPECT_EQ(
        rows(db, "SELECT * FROM schema WHERE table_name = 'tracks' OR table_name = 'activity'"),
        "table_name=tracks column_name=~ type=~ refers_to=~ what=rows of the timeline: cores, threads, tasks \n"
        "table_name=tracks column_name=id type=INTEGER refers_to=~ what=number of the row of the timeline \n"
        "table_name=tracks column_name=name type=TEXT refers_to=~ what=name of the core, thread or task \n"
        "table_name=tracks column_name=parent type=INTEGER refers_to=tracks.id what=row below which it is drawn \n"
        "table_name=activity column_name=~ type=~ refers_to=~ what=slices with names instead of numbers \n");
    std::ifstream file(path, std::ios::binary);
    std::string head(18, '\0');
    file.read(head.data(), static_cast<std::streamsize>(head.size()));
    EXPECT_EQ(static_cast<unsigned char>(head[16]), 1024 >> 8) << "pages of a small file";
}

TEST_F(Databases, PagesGrowWithTheNumberOfRows) {
    for (const auto& [rows, page] : {std::pair(9'999U, 1024), std::pair(10'000U, 4096)}) {
        answers::Answers a;
        a.timeline.slices.resize(rows);
        const auto path = folder_.path() / std::to_string(rows);
        ASSERT_TRUE(write_sqlite(a, path));
        std::ifstream file(path, std::ios::binary);
        std::string head(18, '\0');
        file.read(head.data(), static_cast<std::streamsize>(head.size()));
        EXPECT_EQ(static_cast<unsigned char>(head[16]) << 8 | static_cast<unsigned char>(head[17]), page) << rows;
    }
}

TEST_F(Databases, TextThatIsNoUtf8IsMadeOne) {
    answers::Answers a;
    a.sources = {{"a\xff", {}}, {"caf\xc3\xa9", {}}};
    const auto path = folder_.path() / "texts.sqlite";
    ASSERT_TRUE(write_sqlite(a, path));
    EXPECT_EQ(rows(opened(path.string()), "SELECT path FROM sources"), "path=a\xef\xbf\xbd \npath=caf\xc3\xa9 \n");
}

TEST_F(Databases, WhatCannotBeWrittenIsNamed) {
    const auto there = folder_.write("there", std::string_view("x"));
    const auto message = [](const std::filesystem::path& path) {
        const auto report = write_sqlite({}, path);
        return report ? std::string("written") : report.error().message;
    };
    EXPECT_EQ(message(there), std::string(there) + " exists already");
    const std::string nowhere = (folder_.path() / "no" / "file").string();
    EXPECT_EQ(message(nowhere), "cannot write " + nowhere + ": unable to open database file");
}

}  // namespace
}  // namespace waymark::exports
