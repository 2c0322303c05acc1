/// Captures of sampled operations for tests: handwritten samples → a perf.data file.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "support/perf_file.h"
#include "support/tiny_elf.h"
#include "waymark/capture/perf_writer.h"
#include "waymark/core/byte_sink.h"
#include "waymark/spe/encoder.h"
#include "waymark/spe/packet.h"
#include "waymark/spe/record.h"

namespace waymark::support {

struct SpeSample {
    std::uint32_t cpu{};
    std::uint64_t time = 1;  ///< in ticks of 25 MHz, which are 40 ns
    std::uint64_t pc{};
    std::uint8_t el{};
    spe::OperationClass operation_class = spe::OperationClass::load_store;
    std::uint8_t type{};
    std::uint64_t events = 2;  ///< retired
    std::uint16_t total{}, issue{}, translation{};
    std::optional<std::uint64_t> address{}, physical{}, target{};
    std::optional<std::uint8_t> source{};
    std::optional<std::uint32_t> context{};
};

inline void encode(std::vector<std::uint8_t>& out, const SpeSample& s) {
    const auto put = [&](const spe::Packet& packet) { spe::encode(out, packet); };
    const auto place = [&](std::uint64_t address) {
        return spe::from_program_address({{address}, s.el, spe::Security::non_secure});
    };
    put(spe::AddressPacket{{0}, place(s.pc)});
    if (s.context) put(spe::Context{1, *s.context});
    put(spe::OperationType{s.operation_class, s.type});
    put(spe::Events{{s.events, 4}});
    put(spe::Counter{{1}, s.issue});
    put(spe::Counter{{0}, s.total});
    if (s.address) put(spe::AddressPacket{{2}, *s.address});
    if (s.address) put(spe::Counter{{2}, s.translation});
    if (s.physical) put(spe::AddressPacket{{3}, *s.physical | std::uint64_t{1} << 63});
    if (s.source) put(spe::DataSource{{*s.source, 1}});
    if (s.target) put(spe::AddressPacket{{1}, place(*s.target)});
    put(spe::Timestamp{s.time});
}

struct SpeFile {
    std::uint32_t midr = 0x410fd490;  ///< Neoverse N2
    std::vector<SpeSample> samples;
    std::size_t pieces = 1;  ///< AUXTRACE records for each CPU, cut anywhere
    std::uint64_t collision_cpu = ~std::uint64_t{0};
    std::uint64_t config = 0x300010007, config1 = 0, config2 = 0;  ///< loads and stores, jitter
    bool info = true;
    unsigned switches = 0;  ///< further switches on CPU 0, to 78 and back to 77, a microsecond apart

    /// Threads 77 and 78 of process 77, /usr/bin/server at 0x400000, thread 77 on CPU 0 and 78 on CPU 1 from the start.
    [[nodiscard]] std::vector<std::uint8_t> build() const {
        using namespace capture::perf;
        ByteCollector collector;
        auto attrs = spe_attrs();
        attrs[0].config = config;
        attrs[0].config1 = config1;
        attrs[0].config2 = config2;
        PerfWriter w(collector, attrs);
        w.feature_text(Feature::arch, "aarch64");
        std::array<char, 24> text{};
        std::snprintf(text.data(), text.size(), "0x%016x", midr);
        if (midr != 0) w.feature_text(Feature::cpu_id, text.data());
        w.pmus({{1, "software"}, {8, "arm_spe_0"}});
        w.time_conversion({20, 41943040, 0, 0, ~std::uint64_t{0}, false});
        if (info) w.auxtrace_info({AuxtraceInfo::arm_spe, {8, 1}});
        Mapping kernel;
        kernel.pid = nobody;
        kernel.address = {0xffff800008000000};
        kernel.bytes = 0x1000000;
        kernel.file_offset = 0xffff800008000000;
        kernel.file = "[kernel.kallsyms]_text";
        w.mapping(kernel, {});
        w.task({TaskEvent::Kind::comm, 77, 77, nobody, nobody, 0, "server"}, {});
        w.task({TaskEvent::Kind::comm, 77, 78, nobody, nobody, 0, "worker"}, {});
        Mapping program;
        program.pid = program.tid = 77;
        program.address = {0x400000};
        program.bytes = 0x10000;
        program.file_offset = 0x1000;
        program.protection = 5;
        program.file = "/usr/bin/server";
        w.mapping(program, {});
        w.switch_to(77, 77, {0, 0, 0, 1, 1});
        w.switch_to(77, 78, {0, 0, 1, 1, 1});
        for (std::uint32_t i = 0; i < switches; ++i)
            w.switch_to(77, i % 2 == 0 ? 78 : 77, {0, 0, 0, 1000 + std::uint64_t{i} * 1000, 1});
        std::map<std::uint32_t, std::vector<std::uint8_t>> traces;
        for (const SpeSample& s : samples) encode(traces[s.cpu], s);
        for (const auto& [cpu, trace] : traces) {
            const std::size_t piece = std::max<std::size_t>(1, trace.size() / pieces);
            for (std::size_t at = 0; at < trace.size();) {
                // The last piece takes the remainder of the division.
                const std::size_t bytes = trace.size() - at < 2 * piece ? trace.size() - at : piece;
                Chunk c;
                c.cpu = c.index = cpu;
                c.ring = at;
                w.auxtrace(c, Bytes(trace).subspan(at, bytes));
                w.aux({at, bytes, cpu == collision_cpu ? AuxRange::collision : 0, {}}, {77, 77, cpu, 1, 0});
                at += bytes;
            }
        }
        w.finished_round();
        const auto header = w.finish();
        std::vector<std::uint8_t> out = collector.take();
        std::copy(header.begin(), header.end(), out.begin());
        return out;
    }
};

/// A program whose functions lie at 0x401000 of the file: `sum` (64 bytes), `spin` (64), `fill` (128).
inline std::vector<std::uint8_t> server_elf() {
    TinyElf elf;
    elf.is_64 = true;
    elf.machine = EM_AARCH64;
    std::vector<std::uint8_t> code(0x2000);
    elf.segments.push_back({PT_LOAD, 0x400000, code, 0, 0});
    elf.symbols = {{"sum", 0x401000, 64}, {"spin", 0x401040, 64}, {"fill", 0x401080, 128}};
    return elf.build();
}

}  // namespace waymark::support
