/// Shows the contents of maps.txt (docs/maps.md), for `waymark info` of every unit.
#pragma once

#include <nlohmann/json.hpp>

#include "output.h"
#include "waymark/capture/module_map.h"

namespace waymark::cli {

/// For each file: its build ID, and the addresses and times of its mappings. Null if nothing is known.
[[nodiscard]] nlohmann::ordered_json maps_json(const capture::ModuleMap& map);
/// Prints the same as text: a line for each file; if there are many, only the first ones.
void print_maps(Output& out, const nlohmann::ordered_json& maps);

}  // namespace waymark::cli
