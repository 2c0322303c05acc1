/// perf.data files for tests, made by the writer of the library.
#pragma once

#include <zstd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "waymark/capture/perf_writer.h"
#include "waymark/core/byte_sink.h"

namespace waymark::support {

struct PerfBytes {
    std::vector<std::uint8_t> bytes;
    std::vector<std::vector<std::uint8_t>> traces;  ///< of each AUXTRACE record
    std::vector<std::uint64_t> records;             ///< file offsets of the records behind the first, in the data
    std::uint64_t data_end = 0;
};

/// The events of a session of `perf record -e arm_spe//`: the unit's own event, and the event for other records.
inline std::vector<capture::perf::Attr> spe_attrs() {
    using namespace capture::perf;
    constexpr std::uint64_t fields =
        sample::identifier | sample::ip | sample::tid | sample::time | sample::cpu | sample::period;
    constexpr std::uint64_t sample_id_all = std::uint64_t{1} << 18;
    Attr spe;
    spe.type = 8;
    spe.config = 0x300010007;
    spe.sample_period = 1024;
    spe.sample_type = fields;
    spe.flags = sample_id_all;
    spe.ids = {100, 101};
    spe.name = "arm_spe_0//";
    Attr dummy;
    dummy.type = 1;
    dummy.config = 9;
    dummy.sample_period = 1;
    dummy.sample_type = fields;
    // mmap, comm, task, mmap2, comm_exec, context_switch
    dummy.flags = sample_id_all | 1U << 8 | 1U << 9 | 1U << 13 | 1U << 23 | 1U << 24 | 1U << 26;
    dummy.ids = {200, 201};
    dummy.name = "dummy:u";
    return {spe, dummy};
}

/// Two CPUs, three processes, a kernel; AUXTRACE pieces that are adjacent and pieces that are not.
inline PerfBytes small_perf_file(capture::perf::PerfWriter::Form form) {
    using namespace capture::perf;
    PerfBytes out;
    ByteCollector collector;
    PerfWriter w(collector, spe_attrs(), form);
    const auto mark = [&] { out.records.push_back(w.size()); };
    const auto features = [&] {
        w.feature_text(Feature::hostname, "box");
        w.feature_text(Feature::cpu_id, "0x00000000410fd0c0");
        w.cpus(2, 4);
        const std::string words[] = {"perf", "record", "-e", "arm_spe//"};
        w.command_line(words);
        w.pmus({{1, "software"}, {8, "arm_spe_0"}});
    };
    features();
    const PerfWriter::At before{};
    const auto at = [](std::uint32_t pid, std::uint32_t tid, std::uint32_t cpu, std::uint64_t time) {
        return PerfWriter::At{pid, tid, cpu, time, 1};
    };
    w.time_conversion({20, 41943040, 0, 0, ~std::uint64_t{0}, false});
    mark();
    w.auxtrace_info({AuxtraceInfo::arm_spe, {8, 1}});
    mark();
    Mapping kernel;
    kernel.pid = nobody;
    kernel.address = {0xffff800008000000};
    kernel.bytes = 0x1000000;
    kernel.file_offset = 0xffff800008000000;
    kernel.file = "[kernel.kallsyms]_text";
    w.mapping(kernel, before);
    mark();
    w.task({TaskEvent::Kind::comm, 10, 10, nobody, nobody, 0, "first"}, before);
    mark();
    Mapping first;
    first.pid = first.tid = 10;
    first.address = {0x400000};
    first.bytes = 0x2000;
    first.file_offset = 0x1000;
    first.protection = 5;
    first.build_id = std::vector<std::uint8_t>(20, 0xab);
    first.file = "/bin/first";
    w.mapping(first, before);
    mark();
    w.itrace_start(10, 10, at(10, 10, 0, 1000));
    mark();
    w.task({TaskEvent::Kind::fork, 10, 11, 10, 10, 1050, {}}, at(10, 10, 0, 1050));
    mark();
    w.switched(false, at(10, 11, 1, 1060));
    mark();
    w.task({TaskEvent::Kind::fork, 20, 20, 10, 10, 1200, {}}, at(10, 10, 0, 1200));
    mark();
    w.switch_to(20, 20, at(10, 10, 0, 1250));
    mark();
    w.task({TaskEvent::Kind::exec, 20, 20, nobody, nobody, 0, "second"}, at(20, 20, 0, 1400));
    mark();
    Mapping second = first;
    second.pid = second.tid = 20;
    second.build_id.clear();
    second.file = "/bin/second";
    second.bytes = 0x1000;
    w.mapping(second, at(20, 20, 0, 1500));
    mark();
    w.kernel_symbol({{0xffff800009000000}, 64, 0, false, "bpf_prog"}, at(20, 20, 0, 1550));
    mark();
    w.build_id({10, std::vector<std::uint8_t>(20, 0xab), "/bin/first"});
    mark();
    Mapping third = second;
    third.bytes = 0x800;
    third.file = "/lib/third";
    w.mapping(third, at(20, 20, 0, 2100));
    mark();
    w.lost(200, 7, at(20, 20, 0, 2200));
    mark();
    const auto trace = [&](std::uint32_t cpu, std::uint64_t ring, std::size_t bytes) {
        std::vector<std::uint8_t> contents(bytes);
        for (std::size_t i = 0; i < bytes; ++i) contents[i] = static_cast<std::uint8_t>(0x98 + (i + ring) % 3);
        Chunk c;
        c.cpu = c.index = cpu;
        c.ring = ring;
        w.auxtrace(c, contents);
        out.traces.push_back(contents);
        mark();
    };
    w.aux({0, 69, 0, {}}, {10, 10, 0, 2500, 0});
    mark();
    trace(0, 0, 69);
    w.aux({0, 64, AuxRange::truncated | AuxRange::collision, {}}, {11, 11, 1, 3000, 0});
    mark();
    trace(1, 0, 64);
    trace(0, 69, 128);
    w.aux({4096, 64, AuxRange::overwrite, {}}, {20, 20, 0, 3500, 0});
    mark();
    trace(0, 4096, 64);
    w.switch_to(0, 0, at(20, 20, 0, 6000));
    mark();
    w.task({TaskEvent::Kind::exit, 20, 20, 10, 10, 6100, {}}, at(20, 20, 0, 6100));
    w.finished_round();
    out.data_end = w.size();
    const auto header = w.finish();
    out.bytes = collector.take();
    std::copy(header.begin(), header.end(), out.bytes.begin());
    return out;
}

/// A pipe-mode file whose records, except for AUXTRACE and records that perf makes itself, are packed into records of
/// `type` by `piece` bytes.
inline std::vector<std::uint8_t> compress_records(const std::vector<std::uint8_t>& pipe, capture::perf::Type type,
                                                  std::size_t piece) {
    std::vector<std::uint8_t> out(pipe.begin(), pipe.begin() + 16), waiting;
    ZSTD_CStream* const packer = ZSTD_createCStream();
    ZSTD_initCStream(packer, 1);
    const auto number = [&](std::uint64_t v, unsigned bytes) {
        for (unsigned i = 0; i < bytes; ++i) out.push_back(static_cast<std::uint8_t>(v >> (8 * i)));
    };
    const auto flush = [&](std::size_t bytes) {
        if (bytes == 0) return;
        std::vector<std::uint8_t> packed(ZSTD_compressBound(bytes) + 64);
        ZSTD_inBuffer in{waiting.data(), bytes, 0};
        ZSTD_outBuffer into{packed.data(), packed.size(), 0};
        ZSTD_compressStream2(packer, &into, &in, ZSTD_e_flush);
        packed.resize(into.pos);
        waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(bytes));
        number(static_cast<std::uint32_t>(type), 4);
        number(0, 2);
        if (type == capture::perf::Type::compressed) {
            number(8 + packed.size(), 2);
        } else {
            const std::size_t padded = (packed.size() + 7) / 8 * 8;
            number(16 + padded, 2);
            number(packed.size(), 8);
            packed.resize(padded);
        }
        out.insert(out.end(), packed.begin(), packed.end());
    };
    for (std::size_t at = 16; at < pipe.size();) {
        const std::size_t size = pipe[at + 6] | std::size_t{pipe[at + 7]} << 8;
        const auto from = pipe.begin() + static_cast<std::ptrdiff_t>(at);
        if (pipe[at] < 64) {
            waiting.insert(waiting.end(), from, from + static_cast<std::ptrdiff_t>(size));
            // Pieces end anywhere, inside records too.
            while (waiting.size() >= piece) flush(piece);
            at += size;
            continue;
        }
        std::size_t bytes = size;
        if (pipe[at] == 71) {
            flush(waiting.size());
            for (unsigned i = 0; i < 4; ++i) bytes += std::size_t{pipe[at + 8 + i]} << (8 * i);
        }
        out.insert(out.end(), from, from + static_cast<std::ptrdiff_t>(bytes));
        at += bytes;
    }
    flush(waiting.size());
    ZSTD_freeCStream(packer);
    return out;
}

}  // namespace waymark::support
