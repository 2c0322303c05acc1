/// Decodes packets with a program image to executed instructions (docs/spec/etmv3.md, 7). The trace has an outcome for
/// every instruction, so each instruction is a range.
#pragma once

#include <memory>

#include "waymark/etm3/config.h"
#include "waymark/flow/blocks.h"
#include "waymark/follow/cutting.h"
#include "waymark/follow/decoder.h"
#include "waymark/isa/isa.h"

namespace waymark::etm3 {

/// Decodes one ETM's byte stream, in chunks of any size, with a cache of instructions.
class Decoder final : public follow::HeldDecoder {
public:
    /// `code` and `out` are borrowed and must outlive the decoder.
    Decoder(const Config& config, const isa::CodeReader& code, flow::BatchWriter& out);
};

/// The same, written independently from the specification, step by step and without a cache: each instruction is read
/// from the program when it is executed. Tests compare the two.
class ReferenceDecoder final : public follow::HeldDecoder {
public:
    ReferenceDecoder(const Config& config, const isa::CodeReader& code, flow::BatchWriter& out);
};

/// The same as Decoder on several threads: a stream is cut after I-syncs.
class ParallelDecoder final : public follow::HeldParallel {
public:
    ParallelDecoder(const Config& config, const isa::CodeReader& code, flow::BlockTable& table, flow::Sink& sink,
                    const Options& options);
};

/// A decoder that can also begin where a stream can be cut. Everything is borrowed and must outlive it.
[[nodiscard]] std::unique_ptr<follow::Cutting> make_cutting(const Config& config, const isa::CodeReader& code,
                                                            flow::BatchWriter& out);

}  // namespace waymark::etm3
