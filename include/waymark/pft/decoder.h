/// Decodes packets with a program image to executed instructions, using a cache of basic blocks: the code between two
/// waypoints is decoded once, and the blocks are linked by outcome. Gives exactly the elements of `ReferenceDecoder`
/// (docs/spec/pft.md, 4).
#pragma once

#include "waymark/flow/blocks.h"
#include "waymark/follow/decoder.h"
#include "waymark/isa/isa.h"
#include "waymark/pft/config.h"

namespace waymark::pft {

/// Decodes one PTM's byte stream, in chunks of any size.
class Decoder final : public follow::HeldDecoder {
public:
    /// `code` and `out` are borrowed and must outlive the decoder.
    Decoder(const Config& config, const isa::CodeReader& code, flow::BatchWriter& out);
    /// The same decoder, for callers that only need the execution count of each edge.
    Decoder(const Config& config, const isa::CodeReader& code, flow::CountWriter& out);
};

}  // namespace waymark::pft
