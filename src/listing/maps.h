/// Private to this layer: the contents of maps.txt (docs/maps.md), for descriptions of captures of every unit.
#pragma once

#include <nlohmann/json.hpp>

#include "waymark/capture/module_map.h"
#include "waymark/listing/text.h"

namespace waymark::listing {

/// For each file: its build ID, and the addresses and times of its mappings. Null if nothing is known.
[[nodiscard]] nlohmann::ordered_json maps_json(const capture::ModuleMap& map);
/// Prints the same as text: a line for each file; if there are many, only the first ones.
void print_maps(TextSink& out, const nlohmann::ordered_json& maps);

}  // namespace waymark::listing
