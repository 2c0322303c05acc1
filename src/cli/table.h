/// Renders tables: as text with bars and colours, as tab-separated values, and as JSON.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "output.h"
#include "waymark/answers/table.h"

namespace waymark::cli {

using answers::Cell;
using answers::Column;
using answers::Table;

/// Texts of a table are shortened only if the terminal is too narrow.
inline constexpr std::size_t as_wide_as_the_terminal = std::numeric_limits<std::size_t>::max();

/// Prints the first `limit` rows (0: all), and how many more there are. Empty columns are omitted. Texts of more than
/// `widest` characters (0: any length) are shortened, and further if a row would not fit the terminal; a note below
/// then tells how to see them whole.
void print_text(Output& out, const Table& table, std::uint64_t limit = 0, std::string_view indent = "",
                std::size_t widest = as_wide_as_the_terminal);
void print_tsv(Output& out, const Table& table);
/// The table as an array of objects.
[[nodiscard]] nlohmann::ordered_json to_json(const Table& table);

/// JSON as text, over several lines; invalid UTF-8 in strings is replaced by U+FFFD.
[[nodiscard]] std::string json_text(const nlohmann::ordered_json& value);
/// Prints an object with the members of `head`, one on each line, and a member `rows` with a line `{"name": value, …}`
/// for each row of the table.
[[nodiscard]] std::string rows_json(const nlohmann::ordered_json& head, const Table& rows, std::string_view name);
/// The same for a table whose member is called `rows`.
void print_rows_json(Output& out, const nlohmann::ordered_json& head, const Table& rows);

}  // namespace waymark::cli
