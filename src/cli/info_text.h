/// The text of `waymark info`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "output.h"
#include "waymark/answers/account.h"
#include "waymark/pipeline/continuations.h"

namespace waymark::cli {

/// The name of a member of the description: `I-syncs` → `i_syncs`.
[[nodiscard]] std::string key_of(std::string_view name);

/// What `waymark info` found in a snapshot, for reading; sources and buffers that continue others in one line.
/// `account`: how much of the run it is; empty: only a part of the trace was read.
void print_snapshot_info(Output& out, const nlohmann::ordered_json& info, const answers::Account& account,
                         const pipeline::Continuations& continuations);

}  // namespace waymark::cli
