/// Packets + program image → executed instructions, step by step as the specification writes it (docs/spec/pft.md,
/// section 4). Clear, not fast: `Decoder` gives the same elements at speed, and tests hold the two together.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "waymark/core/types.h"
#include "waymark/flow/blocks.h"
#include "waymark/follow/recover.h"
#include "waymark/isa/isa.h"
#include "waymark/pft/config.h"
#include "waymark/pft/state.h"

namespace waymark::pft {

using follow::Standing;

/// Decodes one PTM's byte stream, in chunks of any size.
class ReferenceDecoder {
public:
    /// `code` and `out` are borrowed and must outlive the decoder.
    ReferenceDecoder(const Config& config, const isa::CodeReader& code, flow::BatchWriter& out);
    ~ReferenceDecoder();

    /// The next bytes of the stream, borrowed for the call.
    void feed(Bytes bytes);
    /// Goes on as if all before `at` were read, a packet began there, and the core stood so: tells a `TraceOn` of the
    /// reason `recovered`. For who knows without an I-sync (recover.h); before anything is fed.
    void begin_at(Offset at, const Standing& standing);
    /// What comes next does not follow what came before (docs/spec/pft.md, 6.4 and 6.5).
    void reset();
    /// The stream ends here: reports what is left over and delivers everything to the sink. Bytes fed after it are
    /// another stream's, which needs its own A-sync and I-sync; offsets go on.
    void finish();
    /// Whole packets met so far.
    [[nodiscard]] std::uint64_t packets() const;
    /// Stream positions that elements to come may name: where whatever is unfinished began.
    [[nodiscard]] std::array<Offset, 2> pending() const;
    /// The bytes fed so far end inside a packet: those to come complete it.
    [[nodiscard]] bool amid_packet() const;

private:
    class Machine;
    std::unique_ptr<Machine> machine_;
};

}  // namespace waymark::pft
