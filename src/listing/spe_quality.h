/// Private to this layer: the quality of samples, at the head of every report of a profile.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "waymark/doctor/profile_view.h"
#include "waymark/listing/text.h"

namespace waymark::listing {

void print_quality_head(TextSink& out, const doctor::ProfileView& view);
[[nodiscard]] nlohmann::ordered_json quality_json(const doctor::ProfileView& view);

inline constexpr std::string_view few_samples_note =
    "* fewer than 30 samples: not reliable. Shares of samples with their 95 % interval (Wilson).\n";

}  // namespace waymark::listing
