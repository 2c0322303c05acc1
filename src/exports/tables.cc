#include "waymark/exports/tables.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "table_cells.h"
#include "waymark/answers/answers.h"
#include "writer.h"

namespace waymark::exports {

using answers::Answers;

namespace {

/// Whether a spreadsheet would take a text for a formula and run it. Some of them leave out white space before it.
bool is_formula(std::string_view text) {
    if (text.empty()) return false;
    if (text[0] == '\t' || text[0] == '\r' || text[0] == '\n') return true;
    const auto first = text.find_first_not_of(" \t\r\n");
    if (first == text.npos) return false;
    // The same signs in the width of East Asian characters.
    static constexpr std::array<std::string_view, 8> signs{"=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20"};
    return std::any_of(signs.begin(), signs.end(),
                       [&](std::string_view sign) { return text.substr(first).starts_with(sign); });
}

/// A decimal number as text: `-12.5`, `+3`. No spreadsheet runs it.
bool is_decimal(std::string_view text) {
    if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
    bool digits = false, point = false;
    for (const char c : text) {
        if (c == '.' && !point)
            point = true;
        else if (c >= '0' && c <= '9')
            digits = true;
        else
            return false;
    }
    return digits;
}

void csv_text(Writer& out, std::string_view value) {
    std::string text = utf8(value);
    // The mark by which spreadsheets know text; also before text that begins so itself, so that it can be taken away.
    const bool marked = (is_formula(text) && !is_decimal(text)) || text.starts_with('\'');
    if (marked) text.insert(text.begin(), '\'');
    if (!marked && text.find_first_of(",\"\r\n") == text.npos) return out.write(text);
    out.write("\"");
    for (const char c : text) out.write(c == '"' ? std::string_view("\"\"") : std::string_view(&c, 1));
    out.write("\"");
}

/// Numbers as both formats have them; false: it is none.
bool write_number(Writer& out, const Column& column, const Cell& cell) {
    if (const auto* n = std::get_if<std::uint64_t>(&cell); n != nullptr && column.type != Column::Type::address) {
        out.print("{}", *n);
    } else if (const auto* d = std::get_if<double>(&cell)) {
        out.print("{}", *d);
    } else {
        return false;
    }
    return true;
}

}  // namespace

std::span<const TableInfo> tables() {
    static const std::vector<TableInfo> all = [] {
        std::vector<TableInfo> out;
        for (const auto& group : {capture_tables(), code_tables(), time_tables(), unit_tables()})
            out.insert(out.end(), group.begin(), group.end());
        return out;
    }();
    return all;
}

const TableInfo* find_table(std::string_view name) {
    const auto all = tables();
    const auto at = std::find_if(all.begin(), all.end(), [&](const TableInfo& t) { return t.name == name; });
    return at == all.end() ? nullptr : &*at;
}

ExportReport write_csv(const Answers& answers, const TableInfo& table, ByteSink& sink) {
    Writer out(sink);
    for (const Column& c : table.columns) out.print("{}{}", c.name, &c == &table.columns.back() ? "\n" : ",");
    table.rows(answers, [&](std::span<const Cell> row) {
        for (std::size_t i = 0; i < row.size(); ++i) {
            if (i != 0) out.write(",");
            if (write_number(out, table.columns[i], row[i])) continue;
            if (const auto* n = std::get_if<std::uint64_t>(&row[i])) out.print("{:#x}", *n);
            if (const auto* t = std::get_if<std::string_view>(&row[i])) csv_text(out, *t);
        }
        out.write("\n");
    });
    return {out.finish(), {}};
}

ExportReport write_jsonl(const Answers& answers, const TableInfo& table, ByteSink& sink) {
    Writer out(sink);
    table.rows(answers, [&](std::span<const Cell> row) {
        for (std::size_t i = 0; i < row.size(); ++i) {
            out.print("{}\"{}\":", i == 0 ? "{" : ",", table.columns[i].name);
            if (write_number(out, table.columns[i], row[i])) continue;
            if (const auto* n = std::get_if<std::uint64_t>(&row[i]))
                out.print("\"{:#x}\"", *n);
            else if (const auto* t = std::get_if<std::string_view>(&row[i]))
                out.json(*t);
            else
                out.write("null");
        }
        out.write("}\n");
    });
    return {out.finish(), {}};
}

}  // namespace waymark::exports
