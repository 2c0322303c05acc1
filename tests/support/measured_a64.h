/// The streams that bench/etm4_flow_rates decodes, of any length, and the expected result of decoders: random execution
/// of random A64 programs, given to etm4::Model instruction by instruction.
///
///     b  about 1 500 blocks, a synchronisation every 1024 bytes
///     c  about 50 000 blocks
///     d  b with return stack
///     e  b with cycle counts and timestamps
///     f  two sources like b through the formatter
///     n  b of an ETE that sends N atoms and a taken branch after them as one Source Address
///     s  b of a unit that speculates: up to 8 P0 elements wait for Commit packets, and some are cancelled
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "support/trace_writer.h"
#include "waymark/core/types.h"
#include "waymark/coresight/trace_id.h"
#include "waymark/etm4/config.h"
#include "waymark/isa/isa.h"

namespace waymark::synthetic {

/// The bytes of one source.
struct MeasuredA64Part {
    struct Section {
        std::uint64_t address{};
        std::vector<std::uint8_t> bytes;
    };
    etm4::Config config;
    coresight::TraceId id{0x10};
    std::shared_ptr<const isa::CodeReader> code;
    std::vector<Section> sections;  ///< the same code
    std::vector<std::uint8_t> bytes;
    RangeTruth truth;
};

struct MeasuredA64Stream {
    std::vector<MeasuredA64Part> parts;
    std::vector<std::uint8_t> frames;  ///< f: all parts together; else empty
    [[nodiscard]] std::size_t bytes() const;
};

inline constexpr const char* measured_a64_streams = "bcdefns";
/// `waypoints`: P0 instructions that are executed.
[[nodiscard]] MeasuredA64Stream measured_a64_stream(char which, std::uint64_t waypoints);

}  // namespace waymark::synthetic
