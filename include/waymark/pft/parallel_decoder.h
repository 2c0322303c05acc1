/// `Decoder` on several cores: the stream is cut behind I-syncs, the pieces are decoded side by side, and their
/// elements come in order; they equal the elements of `Decoder` (docs/spec/pft.md, 2.11 and 4.3).
///
/// A place to cut is an A-sync with packets behind it that parse up to an I-sync; its piece begins behind that I-sync,
/// which gives address, state and Context ID, and empties the return stack. What an I-sync does not give:
///
/// - VMID: taken to be that of the last piece whose end is known.
/// - Timestamps: delivered incomplete, and completed when the end of the piece before is known.
///
/// Each piece ends at the next one's beginning. Only if the decoder of the piece before has read an I-sync that ends
/// there, and its state then is the one assumed, are the next piece's elements taken; else that piece is decoded again
/// from where the one before ended. So a byte pattern that only looks like a synchronisation costs time and changes
/// nothing.
#pragma once

#include <memory>

#include "waymark/flow/blocks.h"
#include "waymark/flow/flow.h"
#include "waymark/follow/cutting.h"
#include "waymark/follow/decoder.h"
#include "waymark/isa/isa.h"
#include "waymark/pft/config.h"

namespace waymark::pft {

/// Decodes one PTM's byte stream, in chunks of any size.
class ParallelDecoder final : public follow::HeldParallel {
public:
    /// Everything is borrowed and must outlive the decoder. `code` must be safe to call from several threads. `sink` is
    /// called by one thread at a time, not always the same one; several threads call its forks.
    ParallelDecoder(const Config& config, const isa::CodeReader& code, flow::BlockTable& table, flow::Sink& sink,
                    const Options& options);
};

/// A decoder that can also begin where a stream can be cut. Everything is borrowed and must outlive it.
[[nodiscard]] std::unique_ptr<follow::Cutting> make_cutting(const Config& config, const isa::CodeReader& code,
                                                            flow::BatchWriter& out);

}  // namespace waymark::pft
