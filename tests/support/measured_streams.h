/// The streams that bench/pft_rates decodes, of any length, and the expected result of decoders.
///
///     b  random execution of random programs (support/synthetic.h) in mixed A32 and T32: about 1 500 blocks
///     c  about 50 000 blocks
///     d  b with return stack
///     e  b cycle-accurate with timestamps
///     f  two sources like b through the formatter
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "support/trace_writer.h"
#include "waymark/core/types.h"
#include "waymark/coresight/trace_id.h"
#include "waymark/isa/isa.h"
#include "waymark/pft/config.h"

namespace waymark::synthetic {

/// The bytes of one source.
struct MeasuredPart {
    struct Section {
        std::uint64_t address{};
        std::vector<std::uint8_t> bytes;
    };
    std::uint32_t etmcr = 0, etmccer = 0x34c01ac2, etmidr = 0x411cf312;
    pft::Config config;  ///< the configuration by these registers
    coresight::TraceId id{0x10};
    std::shared_ptr<const isa::CodeReader> code;
    std::vector<Section> sections;  ///< the same code
    std::vector<std::uint8_t> bytes;
    RangeTruth truth;
};

struct MeasuredStream {
    std::vector<MeasuredPart> parts;
    std::vector<std::uint8_t> frames;  ///< f: all parts together; else empty

    [[nodiscard]] std::size_t bytes() const;
};

/// A source of a capture, and its bytes.
struct FramedSource {
    coresight::TraceId id;
    Bytes bytes;
};
/// Both through the formatter, in turns of several bytes.
[[nodiscard]] std::vector<std::uint8_t> framed(std::array<FramedSource, 2> sources);

inline constexpr const char* measured_streams = "bcdef";
[[nodiscard]] MeasuredStream measured_stream(char which, std::uint64_t waypoints);

}  // namespace waymark::synthetic
