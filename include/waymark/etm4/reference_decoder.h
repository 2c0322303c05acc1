/// Decodes packets with a program image to executed instructions, by the steps of the specification (docs/spec/etm4.md,
/// section 14). Written for clarity, not speed: every element waits for its commit, and the program is walked again
/// each time. `Decoder` gives the same elements at speed, and tests compare the two.
#pragma once

#include "waymark/etm4/config.h"
#include "waymark/flow/blocks.h"
#include "waymark/follow/decoder.h"
#include "waymark/follow/recover.h"
#include "waymark/isa/isa.h"

namespace waymark::etm4 {

/// Decodes one trace unit's instruction stream, in chunks of any size.
class ReferenceDecoder final : public follow::HeldDecoder {
public:
    /// `code` and `out` are borrowed and must outlive the decoder.
    ReferenceDecoder(const Config& config, const isa::CodeReader& code, flow::BatchWriter& out);
    /// Continues as if everything before `at` had been read, a packet began there, and the core was in this state:
    /// delivers a `TraceOn` with the reason `recovered`. `threshold`: the threshold of cycle counts. For callers that
    /// know the state without a Trace Info (recover.h); call it before anything is fed.
    void begin_at(Offset at, const follow::Standing& standing, std::uint32_t threshold);

private:
    class Machine;
    Machine& machine_;
};

}  // namespace waymark::etm4
