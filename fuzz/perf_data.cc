/// Damaged perf.data files: reading must end, stay in bounds, and account for all bytes that were not understood.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "waymark/capture/perf_cs_etm.h"
#include "waymark/capture/perf_data.h"
#include "waymark/capture/perf_spe.h"
#include "waymark/core/result.h"

namespace {

using namespace waymark;
using namespace waymark::capture;

/// As a capture of CoreSight units: all parts lie in the file, no byte twice, and whatever is mapped has a place.
void check_cs_etm(const std::shared_ptr<const ByteFile>& file, const perf::PerfData& data) {
    const auto made = perf::cs_etm_capture("perf.data", file, data);
    if (!made) {
        WM_CHECK(!made.error().message.empty());
        return;
    }
    std::uint64_t bytes = 0, chunk_bytes = 0;
    for (const perf::Chunk& c : data.chunks) chunk_bytes += c.bytes;
    for (const Buffer& buffer : made->buffers) {
        WM_CHECK(buffer.container != nullptr && !buffer.parts.empty() && !buffer.parts.front().follows);
        for (const BufferPart& part : buffer.parts) {
            WM_CHECK(part.bytes != 0 && part.from <= part.to && part.offset <= file->size());
            if (part.packed == 0)
                WM_CHECK(part.bytes <= file->size() - part.offset);
            else
                WM_CHECK(part.packed <= file->size() - part.offset);
            bytes += part.bytes;
            std::vector<std::uint8_t> piece(4096);
            const auto stream = open_part(*buffer.container, part);
            for (unsigned i = 0; i < 16; ++i) {
                const auto got = stream->read(piece);
                if (!got || *got == 0) break;
            }
        }
    }
    WM_CHECK(bytes <= chunk_bytes);
    for (const perf::TaskEvent& e : data.tasks)
        for (const std::uint64_t time : {std::uint64_t{0}, e.time, ~std::uint64_t{0}}) {
            const auto key = made->spaces->key(e.tid, time / 2, time);
            if (!key) continue;
            std::uint64_t next = 0;
            bool first = true;
            for (const MappedExtent& extent : made->spaces->extents(*key)) {
                WM_CHECK(extent.first <= extent.last && (first || extent.first >= next));
                WM_CHECK(extent.name < made->spaces->names().size());
                if (extent.module != no_module)
                    WM_CHECK(made->modules.modules[extent.module].holds({extent.first - extent.shift}));
                first = false;
                if (extent.last == ~std::uint64_t{0}) break;
                next = extent.last + 1;
            }
        }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace waymark::capture::perf;
    const std::shared_ptr<const ByteFile> file = capture::byte_file_from_memory({data, data + size});
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
    check_cs_etm(file, d);
    Tasks tasks(d);
    for (const Mapping& m : d.mappings) (void)tasks.mapping(m.pid, m.address, m.time);
    for (const TaskEvent& e : d.tasks) (void)tasks.thread(e.tid, e.time);
    for (const Switch& s : d.switches) (void)tasks.running(s.cpu, s.time);
    WM_CHECK(read_perf_data(*file)->counts == d.counts);
    return 0;
}
