/// The description of the capture of a Debug and Profiling Unit: what `waymark info` shows.
#pragma once

#include <string>

#include "waymark/answers/account.h"
#include "waymark/core/types.h"
#include "waymark/doctor/dpu.h"
#include "waymark/doctor/dpu_input.h"
#include "waymark/listing/text.h"

namespace waymark::listing {

/// How much of the run the trace covers; empty if nothing was decoded.
[[nodiscard]] answers::Account dpu_account(const doctor::DpuInput& input, const doctor::DpuSums& sums);
/// A sentence about intervals in which a counter decreased by 2^30 or more.
[[nodiscard]] std::string wide_differences(const dpu::Totals& totals);
/// `nexus`: the messages of the Nexus interface. Returns whether there are any.
bool print_dpu_info(TextSink& out, const doctor::DpuInput& input, const doctor::DpuSums& sums, Bytes nexus,
                    LineFormat format);

}  // namespace waymark::listing
