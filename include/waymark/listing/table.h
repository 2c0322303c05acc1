/// Tables as text with bars and colours, as tab-separated values, and as JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "waymark/answers/table.h"
#include "waymark/listing/text.h"

namespace waymark::listing {

/// Texts of a table are shortened only if the terminal is too narrow.
inline constexpr std::size_t as_wide_as_the_terminal = std::numeric_limits<std::size_t>::max();

/// Prints the first `limit` rows (0: all), and how many more there are. Empty columns are omitted. Texts of more than
/// `widest` characters (0: any length) are shortened, and further if a row would not fit the terminal; a note below
/// then tells how to see them whole.
void print_text(TextSink& out, const answers::Table& table, std::uint64_t limit = 0, std::string_view indent = "",
                std::size_t widest = as_wide_as_the_terminal);
void print_tsv(TextSink& out, const answers::Table& table);

/// A JSON object with the texts of `head`, one on each line, and a member `name` with a line `{"name": value, …}` for
/// each row of the table.
[[nodiscard]] std::string rows_json(const std::vector<std::pair<std::string, std::string>>& head,
                                    const answers::Table& rows, std::string_view name);

}  // namespace waymark::listing
