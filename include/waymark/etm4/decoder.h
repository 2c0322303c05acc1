/// Packets + program image → executed instructions, from a cache of basic blocks: the code between two P0 instructions
/// is decoded once, and the blocks are chained by outcome. Gives exactly the elements of `ReferenceDecoder`
/// (docs/spec/etm4.md, section 14).
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
class Decoder {
public:
    /// `code` and `out` are borrowed and must outlive the decoder.
    Decoder(const Config& config, const isa::CodeReader& code, flow::BatchWriter& out);
    /// The same decoder, for whom it is enough to know how often each edge ran.
    Decoder(const Config& config, const isa::CodeReader& code, flow::CountWriter& out);
    ~Decoder();

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
    class Core;
    template <class Out>
    class CoreTo;
    std::unique_ptr<Core> core_;
};

}  // namespace waymark::etm4
