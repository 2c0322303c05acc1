/// Private to this layer: tables as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "waymark/listing/table.h"

namespace waymark::listing {

/// The table as an array of objects.
[[nodiscard]] nlohmann::ordered_json to_json(const answers::Table& table);
/// An object with the members of `head`, one on each line, and a member `name` with a line for each row of the table.
[[nodiscard]] std::string rows_json(const nlohmann::ordered_json& head, const answers::Table& rows,
                                    std::string_view name = "rows");

}  // namespace waymark::listing
