/// The text of `waymark info`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "output.h"
#include "waymark/answers/account.h"
#include "waymark/pipeline/continuations.h"

namespace waymark::cli {

/// The key of a member in the JSON description: `I-syncs` → `i_syncs`.
[[nodiscard]] std::string key_of(std::string_view name);

/// Prints the description of a snapshot as text; sources and buffers that continue others share a line. `account`: how
/// much of the run it covers; empty if only a part of the trace was read. `details`: with the fields of all registers
/// and each region of memory.
void print_snapshot_info(Output& out, const nlohmann::ordered_json& info, const answers::Account& account,
                         const pipeline::Continuations& continuations, bool details);

}  // namespace waymark::cli
