#include "waymark/exports/tables.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "table_cells.h"
#include "waymark/answers/answers.h"
#include "waymark/core/quote.h"
#include "writer.h"

namespace waymark::exports {

using answers::Answers;

namespace {

/// Writes a number as both formats represent it; false if the cell does not contain a number.
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
            if (const auto* t = std::get_if<std::string_view>(&row[i])) out.write(csv_field(*t));
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
