/// Packets + program image → executed instructions, by the steps of the specification (docs/spec/etm4.md, section 14).
/// Clear, not fast: every element waits for its commit, and the program is walked anew each time. `Decoder` gives the
/// same elements at speed, and tests hold the two together.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "waymark/core/types.h"
#include "waymark/etm4/config.h"
#include "waymark/flow/blocks.h"
#include "waymark/isa/isa.h"

namespace waymark::etm4 {

/// Decodes one trace unit's instruction stream, in chunks of any size.
class ReferenceDecoder {
public:
    /// `code` and `out` are borrowed and must outlive the decoder.
    ReferenceDecoder(const Config& config, const isa::CodeReader& code, flow::BatchWriter& out);
    ~ReferenceDecoder();

    /// The next bytes of the stream, borrowed for the call.
    void feed(Bytes bytes);
    /// What comes next does not follow what came before.
    void reset();
    /// The stream ends here: reports what is left over and delivers everything to the sink. Bytes fed after it are
    /// another stream's, which needs its own A-sync and Trace Info; offsets go on.
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

}  // namespace waymark::etm4
