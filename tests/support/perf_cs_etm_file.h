/// perf.data files with CoreSight trace for tests, made by the writer of the library.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "waymark/capture/perf_cs_etm.h"
#include "waymark/capture/perf_writer.h"
#include "waymark/core/byte_sink.h"

namespace waymark::support {

/// The events of a session of `perf record -e cs_etm//`.
inline std::vector<capture::perf::Attr> cs_etm_attrs() {
    using namespace capture::perf;
    constexpr std::uint64_t fields =
        sample::identifier | sample::ip | sample::tid | sample::time | sample::id | sample::cpu | sample::period;
    constexpr std::uint64_t sample_id_all = std::uint64_t{1} << 18;
    Attr trace;
    trace.type = 8;
    trace.config = 1U << 14;
    trace.sample_type = fields;
    trace.flags = sample_id_all;
    trace.ids = {100, 101};
    Attr dummy;
    dummy.type = 1;
    dummy.config = 9;
    dummy.sample_type = fields;
    dummy.flags = sample_id_all | 1U << 8 | 1U << 9 | 1U << 13 | 1U << 23 | 1U << 24;
    dummy.ids = {200, 201};
    return {trace, dummy};
}

/// The block of an ETMv4 with context IDs of 32 bits, of header version 1.
inline std::vector<std::uint64_t> etmv4_block(std::uint32_t cpu, std::uint64_t configr = 0x40) {
    return {0x4040404040404040, cpu,        7,          configr, 0x10 + 2 * std::uint64_t{cpu},
            0x28000ea1,         0x4100f424, 0x20001088, 0,       0xcc};
}
inline capture::perf::AuxtraceInfo cs_etm_info(const std::vector<std::vector<std::uint64_t>>& blocks,
                                               std::uint64_t version = 1, bool snapshot = false) {
    capture::perf::AuxtraceInfo out{capture::perf::AuxtraceInfo::cs_etm,
                                    {version, std::uint64_t{8} << 32 | blocks.size(), snapshot ? 1U : 0U}};
    for (const auto& block : blocks) out.words.insert(out.words.end(), block.begin(), block.end());
    return out;
}

/// Frames with the bytes of one source; the rest of the last one is padding.
inline std::vector<std::uint8_t> frames(std::uint8_t id, const std::vector<std::uint8_t>& bytes) {
    std::vector<std::uint8_t> out;
    std::size_t at = 0;
    while (at < bytes.size()) {
        // Pair 0: the ID, and one byte of data; then seven data bytes in each half of the frame.
        std::uint8_t frame[16] = {}, lowest = 0;
        frame[0] = static_cast<std::uint8_t>(id << 1 | 1U);
        frame[1] = bytes[at++];
        for (unsigned i = 2; i < 15; ++i) {
            if (at == bytes.size() && i % 2 == 0) {
                frame[i] = 1;  // the null ID: what follows is padding
                break;
            }
            std::uint8_t byte = at < bytes.size() ? bytes[at++] : std::uint8_t{0};
            if (i % 2 == 0) {
                lowest = static_cast<std::uint8_t>(lowest | (std::uint32_t{byte} & 1U) << (i / 2));
                byte = static_cast<std::uint8_t>(byte & 0xfe);
            }
            frame[i] = byte;
        }
        frame[15] = lowest;
        out.insert(out.end(), frame, frame + 16);
    }
    return out;
}

/// ETMv4 bytes: synchronisation, then tracing on at an address in EL0, 64 bits, with a context ID.
inline std::vector<std::uint8_t> etmv4_start(std::uint64_t address, std::uint32_t context_id) {
    std::vector<std::uint8_t> out(11, 0);
    out.insert(out.end(), {0x80, 0x01, 0x01, 0x00, 0x04, 0x85});
    out.push_back(static_cast<std::uint8_t>(address >> 2 & 0x7f));
    out.push_back(static_cast<std::uint8_t>(address >> 9 & 0x7f));
    for (unsigned i = 16; i < 64; i += 8) out.push_back(static_cast<std::uint8_t>(address >> i));
    out.push_back(0xb0);
    for (unsigned i = 0; i < 32; i += 8) out.push_back(static_cast<std::uint8_t>(context_id >> i));
    return out;
}
inline constexpr std::uint8_t etmv4_taken = 0xf7, etmv4_not_taken = 0xf6;

}  // namespace waymark::support
