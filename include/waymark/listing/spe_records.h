/// Lists sampled records, line by line, CPU by CPU in chronological order.
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
    std::optional<spe::OperationClass> kind{};  ///< only this class; nullopt: all
    bool mid_record = false;  ///< streams may begin inside a record: begin after the end of the first one
    unsigned workers = 1;     ///< number of threads; the output does not depend on it
};

/// Counts of listed records, and problems.
struct RecordsListed {
    std::uint64_t records = 0, shown = 0;  ///< of all kinds; of the selected ones
    std::uint64_t lost_bytes = 0, damaged = 0, no_pc = 0;
    std::vector<std::string> warnings{}, notes{};  ///< losses of streams, as sentences without final full stop
    std::optional<Error> error{};                  ///< the file could not be read to its end
};

/// Decodes a capture and writes a line for each record. `progress`, which may be null, and `out` are borrowed.
[[nodiscard]] RecordsListed list_spe_records(const analysis::SampleCapture& capture,
                                             const RecordListingOptions& options, TextSink& out,
                                             capture::perf::Progress* progress = nullptr);

}  // namespace waymark::listing
