/// Decodes packets with a program image to executed instructions (docs/spec/mtb.md, 4).
#pragma once

#include "waymark/flow/blocks.h"
#include "waymark/follow/decoder.h"
#include "waymark/isa/isa.h"
#include "waymark/mtb/config.h"

namespace waymark::mtb {

/// Decodes the packets of one unit, the oldest first, in chunks of any size.
class Decoder final : public follow::HeldDecoder {
public:
    /// `code` and `out` are borrowed and must outlive the decoder.
    Decoder(const Config& config, const isa::CodeReader& code, flow::BatchWriter& out);
};

/// The same without a cache: each path is read from the program when it is followed.
class ReferenceDecoder final : public follow::HeldDecoder {
public:
    ReferenceDecoder(const Config& config, const isa::CodeReader& code, flow::BatchWriter& out);
};

/// A decoder with the interface for several threads. Buffers are small, so one thread decodes.
class ParallelDecoder final : public follow::HeldParallel {
public:
    ParallelDecoder(const Config& config, const isa::CodeReader& code, flow::BlockTable& table, flow::Sink& sink,
                    const Options& options);
};

}  // namespace waymark::mtb
