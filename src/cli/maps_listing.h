/// What maps.txt says (docs/maps.md), for `waymark info` of every unit.
#pragma once

#include <nlohmann/json.hpp>

#include "output.h"
#include "waymark/capture/module_map.h"

namespace waymark::cli {

/// By file: its build ID, and where it was mapped when. Null where nothing is known.
[[nodiscard]] nlohmann::ordered_json maps_json(const capture::ModuleMap& map);
/// The same in a few lines: a line for each file, of many the first.
void print_maps(Output& out, const nlohmann::ordered_json& maps);

}  // namespace waymark::cli
