/// Large perf.data files from small ones: a file with CoreSight trace as if many processes had run the same program, or
/// as if it had run repeatedly.
#pragma once

#include <cstdint>
#include <vector>

#include "waymark/capture/byte_file.h"
#include "waymark/capture/perf_data.h"
#include "waymark/core/byte_sink.h"
#include "waymark/core/result.h"

namespace waymark::support {

struct PerfClones {
    unsigned processes = 1;  ///< number for each process; they take turns after each AUX range
    unsigned more_maps = 0;  ///< number for each clone: its first file again, at addresses that no other clone has
    unsigned times = 1;      ///< number of repetitions of the whole trace
};

/// Writes the file to `out`; returns the bytes to write over its front. With several processes, formatted trace becomes
/// that of units without a formatter. Errors: trace of other units than ETMv4 and ETE; errors of reading.
[[nodiscard]] Result<std::vector<std::uint8_t>> write_clones(const capture::perf::PerfData& data,
                                                             const capture::ByteFile& file, const PerfClones& clones,
                                                             ByteSink& out);

}  // namespace waymark::support
