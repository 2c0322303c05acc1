#include <fmt/format.h>

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "captured_answers.h"
#include "waymark/capture/placed_file.h"
#include "waymark/exports/tables.h"
#include "waymark/exports/write.h"
#include "waymark/pipeline/answers_file.h"

struct wm_answers {
    waymark::answers::Answers answers;
    std::vector<std::string> inputs;  ///< files that no output may replace
};

/// A table, column by column. Texts are copied: a table may outlive its answers.
struct wm_table {
    const waymark::exports::TableInfo* info{};
    struct Column {
        std::string name, meaning, refers;  ///< zero-terminated
        std::vector<std::uint64_t> integers{};
        std::vector<double> reals{};
        std::vector<std::string> kept{};   ///< texts, by row
        std::vector<const char*> texts{};  ///< pointers to texts in `kept`, or null
        std::vector<std::uint8_t> known{};
    };
    std::vector<Column> columns;
    std::size_t rows = 0;
};

namespace waymark::capi {

namespace {

using exports::Cell;
using ColumnType = exports::Column::Type;

static_assert(WM_COLUMN_INTEGER == static_cast<int>(ColumnType::integer) &&
              WM_COLUMN_ADDRESS == static_cast<int>(ColumnType::address) &&
              WM_COLUMN_REAL == static_cast<int>(ColumnType::real) &&
              WM_COLUMN_TEXT == static_cast<int>(ColumnType::text));

/// Thrown to end an analysis from within it; nothing there owns resources that would leak.
struct Cancelled {};

void put(wm_table::Column& column, ColumnType type, const Cell& cell) {
    column.known.push_back(cell.index() == 0 ? 0 : 1);
    const auto* const number = std::get_if<std::uint64_t>(&cell);
    const auto* const real = std::get_if<double>(&cell);
    if (type == ColumnType::real) {
        column.reals.push_back(real != nullptr ? *real : number != nullptr ? static_cast<double>(*number) : 0);
    } else if (type == ColumnType::text) {
        const auto* const text = std::get_if<std::string_view>(&cell);
        column.kept.emplace_back(text != nullptr ? *text : std::string_view());
    } else {
        column.integers.push_back(number != nullptr ? *number : 0);
    }
}

std::unique_ptr<wm_table> table_of(const exports::TableInfo& info, const answers::Answers& answers) {
    auto out = std::make_unique<wm_table>();
    out->info = &info;
    for (const exports::Column& column : info.columns)
        out->columns.push_back({std::string(column.name), std::string(column.what), std::string(column.refers)});
    info.rows(answers, [&](std::span<const Cell> cells) {
        for (std::size_t i = 0; i < cells.size(); ++i) put(out->columns[i], info.columns[i].type, cells[i]);
        ++out->rows;
    });
    for (wm_table::Column& column : out->columns)
        for (std::size_t row = 0; row < column.kept.size(); ++row)
            column.texts.push_back(column.known[row] != 0 ? column.kept[row].c_str() : nullptr);
    return out;
}

pipeline::FlowAnswersOptions options_of(unsigned parts, unsigned jobs) {
    const auto has = [parts](unsigned bit) { return (parts & bit) != 0; };
    pipeline::FlowAnswersOptions out;
    out.calls = has(WM_ANSWERS_CALLS);
    out.timeline = has(WM_ANSWERS_TIMELINE);
    // Without instructions the cost of a function is not known.
    out.instructions = has(WM_ANSWERS_INSTRUCTIONS | WM_ANSWERS_ALL_FUNCTIONS | WM_ANSWERS_DISASSEMBLY) || !out.calls;
    out.all_functions = has(WM_ANSWERS_ALL_FUNCTIONS);
    out.inlined = has(WM_ANSWERS_INLINED);
    out.ranges = has(WM_ANSWERS_RANGES);
    out.disassembly = has(WM_ANSWERS_DISASSEMBLY);
    out.sources = has(WM_ANSWERS_SOURCES);
    out.workers = threads_for(jobs);
    return out;
}

std::string known_tables() {
    std::string out;
    for (const exports::TableInfo& info : exports::tables())
        out += fmt::format("{}{}", out.empty() ? "" : ", ", info.name);
    return out;
}

/// csv, jsonl and sqlite have functions of their own: they consist of several files, or need a file name.
bool is_single_file(const exports::Format& format) {
    return format.name != "csv" && format.name != "jsonl" && format.name != "sqlite";
}

std::string known_formats() {
    std::string out;
    for (const exports::Format& format : exports::formats())
        if (is_single_file(format)) out += fmt::format("{}{}", out.empty() ? "" : ", ", format.name);
    return out;
}

}  // namespace
}  // namespace waymark::capi

extern "C" {

wm_status wm_answers_of(const wm_capture* capture, unsigned parts, unsigned jobs, wm_progress_callback progress,
                        void* user, wm_answers** answers, wm_error** error) {
    if (capture == nullptr) return waymark::capi::missing(error, "wm_answers_of", "capture");
    if (answers == nullptr) return waymark::capi::missing(error, "wm_answers_of", "answers");
    return waymark::capi::guarded(error, [&] {
        auto out = std::make_unique<wm_answers>();
        try {
            WM_TRY(out->answers,
                   waymark::capi::answers_of(*capture, waymark::capi::options_of(parts, jobs),
                                             [&](std::uint64_t bytes, std::uint64_t of) {
                                                 if (progress != nullptr && progress(bytes, of, user) != 0)
                                                     throw waymark::capi::Cancelled{};
                                             }));
        } catch (const waymark::capi::Cancelled&) {
            return waymark::capi::fail(error, WM_CANCELLED, capture->name + ": decoding was cancelled");
        }
        out->inputs = capture->input.files();
        *answers = out.release();
        return WM_OK;
    });
}

void wm_answers_free(wm_answers* answers) { delete answers; }

wm_status wm_answers_save(const wm_answers* answers, const char* path, wm_error** error) {
    if (answers == nullptr) return waymark::capi::missing(error, "wm_answers_save", "answers");
    if (path == nullptr) return waymark::capi::missing(error, "wm_answers_save", "path");
    return waymark::capi::guarded(error, [&] {
        const auto written = waymark::pipeline::write_answers_file(answers->answers, path, answers->inputs);
        return written ? WM_OK : waymark::capi::fail(error, written.error());
    });
}

wm_status wm_answers_export(const wm_answers* answers, const char* format, const char* path, wm_error** error) {
    using namespace waymark;
    if (answers == nullptr) return capi::missing(error, "wm_answers_export", "answers");
    if (format == nullptr) return capi::missing(error, "wm_answers_export", "format");
    if (path == nullptr) return capi::missing(error, "wm_answers_export", "path");
    return capi::guarded(error, [&] {
        const exports::Format* const found = exports::find_format(format);
        if (found == nullptr || !capi::is_single_file(*found))
            return capi::fail(error, WM_NOT_FOUND,
                              fmt::format("there is no format '{}' that is a single file; known are {}", format,
                                          capi::known_formats()));
        WM_TRY(const std::unique_ptr<capture::FileSink> file, capture::FileSink::open(path, answers->inputs));
        WM_TRY([[maybe_unused]] const exports::ExportReport report,
               exports::write(*found, answers->answers, {}, *file));
        const Status done = file->commit();
        return done ? WM_OK : capi::fail(error, done.error());
    });
}

size_t wm_answers_table_count(void) { return waymark::exports::tables().size(); }
const char* wm_answers_table_name(size_t index) {
    const auto all = waymark::exports::tables();
    return index < all.size() ? all[index].name.data() : nullptr;
}

wm_status wm_answers_table(const wm_answers* answers, const char* name, wm_table** table, wm_error** error) {
    if (answers == nullptr) return waymark::capi::missing(error, "wm_answers_table", "answers");
    if (name == nullptr) return waymark::capi::missing(error, "wm_answers_table", "name");
    if (table == nullptr) return waymark::capi::missing(error, "wm_answers_table", "table");
    return waymark::capi::guarded(error, [&] {
        const waymark::exports::TableInfo* const info = waymark::exports::find_table(name);
        if (info == nullptr)
            return waymark::capi::fail(
                error, WM_NOT_FOUND,
                fmt::format("answers have no table '{}'; they have {}", name, waymark::capi::known_tables()));
        *table = waymark::capi::table_of(*info, answers->answers).release();
        return WM_OK;
    });
}

void wm_table_free(wm_table* table) { delete table; }
size_t wm_table_rows(const wm_table* table) { return table->rows; }
size_t wm_table_columns(const wm_table* table) { return table->columns.size(); }
const char* wm_table_column_name(const wm_table* table, size_t column) {
    return column < table->columns.size() ? table->columns[column].name.c_str() : nullptr;
}
const char* wm_table_column_meaning(const wm_table* table, size_t column) {
    return column < table->columns.size() ? table->columns[column].meaning.c_str() : nullptr;
}
const char* wm_table_column_refers(const wm_table* table, size_t column) {
    return column < table->columns.size() ? table->columns[column].refers.c_str() : nullptr;
}
wm_column_type wm_table_column_type(const wm_table* table, size_t column) {
    return column < table->columns.size() ? static_cast<wm_column_type>(table->info->columns[column].type)
                                          : WM_COLUMN_INTEGER;
}
int wm_table_find_column(const wm_table* table, const char* name) {
    for (std::size_t i = 0; i < table->columns.size(); ++i)
        if (name != nullptr && table->columns[i].name == name) return static_cast<int>(i);
    return -1;
}
const uint64_t* wm_table_integers(const wm_table* table, size_t column) {
    const wm_column_type type = wm_table_column_type(table, column);
    const bool fits = column < table->columns.size() && (type == WM_COLUMN_INTEGER || type == WM_COLUMN_ADDRESS);
    return fits ? table->columns[column].integers.data() : nullptr;
}
const double* wm_table_reals(const wm_table* table, size_t column) {
    const bool fits = column < table->columns.size() && wm_table_column_type(table, column) == WM_COLUMN_REAL;
    return fits ? table->columns[column].reals.data() : nullptr;
}
const char* const* wm_table_texts(const wm_table* table, size_t column) {
    const bool fits = column < table->columns.size() && wm_table_column_type(table, column) == WM_COLUMN_TEXT;
    return fits ? table->columns[column].texts.data() : nullptr;
}
const uint8_t* wm_table_known(const wm_table* table, size_t column) {
    return column < table->columns.size() ? table->columns[column].known.data() : nullptr;
}

}  // extern "C"
