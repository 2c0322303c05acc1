#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "waymark/analysis/quality.h"
#include "waymark/core/numbers.h"

namespace waymark::analysis {

std::string why_no_samples(const SampleCapture& capture, const Quality& quality) {
    const capture::perf::PerfData& data = *capture.data;
    if (quality.records != 0) {
        if (std::all_of(quality.streams.begin(), quality.streams.end(),
                        [](const StreamQuality& s) { return s.no_pc == s.records; }))
            return fmt::format(
                "none of the {} records contains a PC: the file is not an SPE buffer, or is badly damaged",
                grouped(quality.records));
        return fmt::format("none of the {} records is from the requested CPUs, threads and functions",
                           grouped(quality.records));
    }
    if (capture.bare) {
        if (capture.file->size() == 0) return "the file is empty";
        return "no record found: the file is neither perf.data nor an SPE buffer";
    }
    if (!data.auxtrace_info && data.loss_count != 0)
        return "the AUXTRACE_INFO record, which describes the unit that traced, is in the missing or damaged part of "
               "the file: copy the whole file again, or record again";
    if (!data.auxtrace_info)
        return "the file contains no trace of a hardware unit (no AUXTRACE_INFO record): was it recorded with perf "
               "record -e arm_spe// ?";
    if (data.chunks.empty() && data.loss_count != 0)
        return "the readable part of the file has no trace; whether the unit wrote any is not known: copy the whole "
               "file again, or record again";
    if (data.chunks.empty())
        return data.unfinished
                   ? "the recorder was ended before it wrote any sample into the file"
                   : "the unit wrote nothing (no AUXTRACE record): no code ran where it sampled, its filters excluded "
                     "everything, or the core's SPE is off for this exception level (waymark spe explain)";
    std::uint64_t bytes = 0;
    for (const StreamQuality& s : quality.streams) bytes += s.bytes;
    if (bytes == 0) return "the file was cut: it has the headers of trace, but no bytes of trace";
    return fmt::format("no record in {} of trace: they are damaged, or only padding", counted(bytes, "byte"));
}

}  // namespace waymark::analysis
