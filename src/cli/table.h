/// Renderers of tables: for reading, with bars and colours; as tab-separated values; as JSON.
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

/// Texts of a table are shortened only if the terminal is too narrow for its rows.
inline constexpr std::size_t as_wide_as_the_terminal = std::numeric_limits<std::size_t>::max();

/// The first `limit` rows, 0: all; and how many more there are. Columns without anything in them are omitted. Texts of
/// more than `widest` characters are shortened, and further where a row would not fit the terminal, with a note below
/// about what shows them whole; 0: none are.
void print_text(Output& out, const Table& table, std::uint64_t limit = 0, std::string_view indent = "",
                std::size_t widest = as_wide_as_the_terminal);
void print_tsv(Output& out, const Table& table);
/// An array of objects.
[[nodiscard]] nlohmann::ordered_json to_json(const Table& table);

/// JSON as text, over several lines; strings in it that are not UTF-8 have U+FFFD where they are not.
[[nodiscard]] std::string json_text(const nlohmann::ordered_json& value);
/// An object with `{"name": value, …}` on a line for each row of the table `rows`, which is the member `name`, and the
/// members of `head` on a line each.
[[nodiscard]] std::string rows_json(const nlohmann::ordered_json& head, const Table& rows, std::string_view name);
/// The same with the rows as member `rows`.
void print_rows_json(Output& out, const nlohmann::ordered_json& head, const Table& rows);

}  // namespace waymark::cli
