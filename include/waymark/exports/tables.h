/// Answers as tables. Each is described once, for CSV, JSON lines, SQLite and their documentation.
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
        address,  ///< 64 bits: hexadecimal in text
        real,
        text,
    };
    std::string_view name;
    Type type{};
    std::string_view what;      ///< its meaning, in words
    std::string_view refers{};  ///< such as `functions.id`; empty: nothing
};

/// A value, or none: the first alternative.
using Cell = std::variant<std::monostate, std::uint64_t, double, std::string_view>;
/// Borrowed for the call; one cell for each column.
using RowSink = std::function<void(std::span<const Cell>)>;

struct TableInfo {
    std::string_view name, what;
    std::span<const Column> columns;
    /// Column 0 is the row's number, from 0 on.
    bool has_id{};
    void (*rows)(const answers::Answers&, const RowSink&);
};

/// Every table, in the order of importance for readers.
[[nodiscard]] std::span<const TableInfo> tables();
/// The table with that name; null if there is none.
[[nodiscard]] const TableInfo* find_table(std::string_view name);

/// A header line, then a line for each row (RFC 4180). Text that a spreadsheet would execute as a formula gets an
/// apostrophe and quotes. Cannot fail; a table without rows has only its header.
[[nodiscard]] ExportReport write_csv(const answers::Answers& answers, const TableInfo& table, ByteSink& sink);
/// A JSON object for each row. Addresses are strings, `"0x8000"`; unknown values are null.
[[nodiscard]] ExportReport write_jsonl(const answers::Answers& answers, const TableInfo& table, ByteSink& sink);

}  // namespace waymark::exports
