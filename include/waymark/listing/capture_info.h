/// The description of a capture with sources: what `waymark info` shows.
#pragma once

#include <cstdint>
#include <vector>

#include "waymark/answers/account.h"
#include "waymark/listing/text.h"
#include "waymark/pipeline/run.h"
#include "waymark/pipeline/session.h"

namespace waymark::listing {

/// The part of the trace that was read.
struct Looked {
    std::uint64_t bytes{}, of{};
};
[[nodiscard]] Looked looked_at(const pipeline::Session& session, const pipeline::Report& report);

struct InfoOptions {
    LineFormat format{};
    bool details = false;  ///< text: the fields of all registers, and each region of memory
    unsigned threads = 1;  ///< for the survey of processes
};
/// `report`: of pipeline::count_packets. `account`: how much of the run the capture covers; empty if only a part of the
/// trace was read. In text, sources and buffers that continue others share a line.
void print_capture_info(TextSink& out, const pipeline::Session& session,
                        const std::vector<const pipeline::Source*>& selected, const pipeline::Report& report,
                        const answers::Account& account, const InfoOptions& options);

}  // namespace waymark::listing
