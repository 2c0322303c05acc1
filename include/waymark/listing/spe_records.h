/// Sampled records, line by line, CPU by CPU in the order they were taken.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "waymark/analysis/samples.h"
#include "waymark/listing/text.h"
#include "waymark/spe/record.h"

namespace waymark::listing {

struct RecordListingOptions {
    LineFormat format = LineFormat::text;
    std::optional<spe::OperationClass> kind{};  ///< only these; none: all
    bool mid_record = false;  ///< streams may begin inside a record: start after the end of the first one
    unsigned workers = 1;     ///< threads; what is written does not depend on it
};

/// What was listed, and what was wrong.
struct RecordsListed {
    std::uint64_t records = 0, shown = 0;  ///< of all kinds; of the one asked for
    std::uint64_t lost_bytes = 0, damaged = 0, no_pc = 0;
    std::vector<std::string> warnings{}, notes{};  ///< what streams lost, as sentences without their ends
    std::optional<Error> error{};                  ///< the file could not be read to its end
};

/// Decodes a capture and writes a line for each record. `progress`, which may be null, and `out` are borrowed.
[[nodiscard]] RecordsListed list_spe_records(const analysis::SampleCapture& capture,
                                             const RecordListingOptions& options, TextSink& out,
                                             capture::perf::Progress* progress = nullptr);

}  // namespace waymark::listing
