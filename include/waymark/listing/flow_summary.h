/// The sums of a decoded capture, for reading.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "waymark/answers/account.h"
#include "waymark/flow/tee.h"
#include "waymark/listing/text.h"
#include "waymark/pipeline/damage.h"
#include "waymark/pipeline/run.h"
#include "waymark/pipeline/session.h"

namespace waymark::listing {

/// One source in one buffer, decoded.
struct DecodedSource {
    const pipeline::Source* source;
    std::string buffer;
    std::uint64_t bytes, padding, packets;
    flow::Totals totals;
    std::vector<pipeline::Damage> damage;
};

/// Prints how the bytes of each buffer were used, then the sums of each source and of all; the numbers add up.
void print_flow_summary(TextSink& out, const pipeline::Report& report, const std::vector<DecodedSource>& all,
                        const answers::Account& account);

}  // namespace waymark::listing
