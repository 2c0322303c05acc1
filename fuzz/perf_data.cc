/// Damaged perf.data files: reading must end, stay in bounds, and account for what it did not understand.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "waymark/capture/perf_data.h"
#include "waymark/capture/perf_spe.h"
#include "waymark/core/result.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace waymark;
    using namespace waymark::capture::perf;
    const auto file = capture::byte_file_from_memory({data, data + size});
    const auto read = read_perf_data(*file);
    if (!read) {
        WM_CHECK(!read.error().message.empty());
        return 0;
    }
    const PerfData& d = *read;
    WM_CHECK(d.losses.size() <= d.loss_count && d.losses.size() <= PerfData::max_losses);
    WM_CHECK(d.lost_bytes <= size);
    std::uint64_t payload = 0;
    for (const Chunk& c : d.chunks) {
        WM_CHECK(c.payload <= size && c.bytes <= size - c.payload && c.record.value < c.payload);
        payload += c.bytes;
    }
    WM_CHECK(payload <= size);
    for (const Loss& loss : d.losses) WM_CHECK(loss.first <= loss.end && loss.end.value <= size);
    for (const Stream& s : streams(d)) {
        WM_CHECK(!s.stretches.empty() && !s.stretches.front().follows);
        for (const Stretch& part : s.stretches)
            WM_CHECK(part.chunk < d.chunks.size() && part.bytes <= d.chunks[part.chunk].bytes);
    }
    if (d.auxtrace_info)
        if (const auto info = spe_info(*d.auxtrace_info)) (void)spe_midr(d, *info, 0);
    if (d.time_conversion && d.time_conversion->valid()) {
        (void)d.time_conversion->to_ns(size);
        (void)d.time_conversion->to_ticks(size);
    }
    Tasks tasks(d);
    for (const Mapping& m : d.mappings) (void)tasks.mapping(m.pid, m.address, m.time);
    for (const TaskEvent& e : d.tasks) (void)tasks.thread(e.tid, e.time);
    for (const Switch& s : d.switches) (void)tasks.running(s.cpu, s.time);
    WM_CHECK(read_perf_data(*file)->counts == d.counts);
    return 0;
}
