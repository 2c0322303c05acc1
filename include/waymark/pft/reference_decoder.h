/// Packets + program image → executed instructions, step by step as the specification writes it (docs/spec/pft.md,
/// section 4). Clear, not fast: `Decoder` gives the same elements at speed, and tests hold the two together.
#pragma once

#include "waymark/flow/blocks.h"
#include "waymark/follow/decoder.h"
#include "waymark/follow/recover.h"
#include "waymark/isa/isa.h"
#include "waymark/pft/config.h"
#include "waymark/pft/state.h"

namespace waymark::pft {

using follow::Standing;

/// Decodes one PTM's byte stream, in chunks of any size.
class ReferenceDecoder final : public follow::HeldDecoder {
public:
    /// `code` and `out` are borrowed and must outlive the decoder.
    ReferenceDecoder(const Config& config, const isa::CodeReader& code, flow::BatchWriter& out);
    /// Continues as if all bytes before `at` were read, a packet began there, and the core was in this state: delivers
    /// a `TraceOn` of the reason `recovered`. For callers who know the state without an I-sync (recover.h); before the
    /// first feed().
    void begin_at(Offset at, const Standing& standing);

private:
    class Machine;
    Machine& machine_;
};

}  // namespace waymark::pft
