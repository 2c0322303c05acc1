/// Decodes packets with a program image to executed instructions, by the steps of the specification (docs/spec/pft.md,
/// section 4). Written for clarity, not speed: `Decoder` gives the same elements at speed, and tests compare the two.
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
    /// Continues as if all bytes before `at` had been read, a packet began there, and the core was in this state:
    /// delivers a `TraceOn` with the reason `recovered`. For callers that know the state without an I-sync (recover.h);
    /// call it before anything is fed.
    void begin_at(Offset at, const Standing& standing);

private:
    class Machine;
    Machine& machine_;
};

}  // namespace waymark::pft
