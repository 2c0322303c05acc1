/// The text of `waymark info`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "output.h"
#include "waymark/pipeline/continuations.h"

namespace waymark::cli {

/// The name of a member of the description: `I-syncs` → `i_syncs`.
[[nodiscard]] std::string key_of(std::string_view name);

/// What `waymark info` found in a snapshot, for reading; sources and buffers that continue others in one line.
void print_snapshot_info(Output& out, const nlohmann::ordered_json& info, const pipeline::Continuations& continuations);

}  // namespace waymark::cli
