/// Answers as tables, each described once: CSV, JSON lines, SQLite and their documentation are written from that.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "waymark/core/byte_sink.h"
#include "waymark/exports/export.h"

namespace waymark::exports {

struct Column {
    enum class Type : std::uint8_t {
        integer,
        address,  ///< 64 bits: hexadecimal where it is text
        real,
        text,
    };
    std::string_view name;
    Type type{};
    std::string_view what;      ///< its meaning, in words
    std::string_view refers{};  ///< `functions.id`; empty: to nothing
};

/// A value; the first alternative: there is none.
using Cell = std::variant<std::monostate, std::uint64_t, double, std::string_view>;
/// Borrowed for the call; as many as there are columns.
using RowSink = std::function<void(std::span<const Cell>)>;

struct TableInfo {
    std::string_view name, what;
    std::span<const Column> columns;
    /// Column 0 is a number of its own for each row, from 0 up.
    bool has_id{};
    void (*rows)(const answers::Answers&, const RowSink&);
};

/// Every table, in the order in which a reader would want them.
[[nodiscard]] std::span<const TableInfo> tables();
/// Null: there is none of that name.
[[nodiscard]] const TableInfo* find_table(std::string_view name);

/// A header line, then a line for each row (RFC 4180). Text that a spreadsheet would run as a formula has an apostrophe
/// before it and is quoted. Cannot fail; a table without rows is its header.
[[nodiscard]] ExportReport write_csv(const answers::Answers& answers, const TableInfo& table, ByteSink& sink);
/// A JSON object for each row. Addresses are strings, `"0x8000"`; what is not known is null.
[[nodiscard]] ExportReport write_jsonl(const answers::Answers& answers, const TableInfo& table, ByteSink& sink);

}  // namespace waymark::exports
