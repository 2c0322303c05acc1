/// `Decoder` on several cores: the stream is cut after I-syncs. The pieces are decoded side by side, and their elements
/// are delivered in order; they equal the elements of `Decoder` (docs/spec/pft.md, 2.11 and 4.3).
///
/// A place to cut is an A-sync followed by packets that can be parsed up to an I-sync. Its piece begins after that
/// I-sync, which gives address, state and Context ID, and empties the return stack. An I-sync does not give:
///
/// - the VMID: assumed to be the VMID of the last piece whose end is known;
/// - timestamps: delivered incomplete, and completed when the end of the previous piece is known.
///
/// Each piece ends where the next one begins. The elements of the next piece are used only if the decoder of the
/// previous piece has read an I-sync that ends there, and its state there equals the assumed state. Otherwise that
/// piece is decoded again from the end of the previous one. So a byte pattern that only looks like a synchronisation
/// costs time, but changes nothing.
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
    /// Everything is borrowed and must outlive the decoder. `code` must be thread-safe. `sink` is called by one thread
    /// at a time, not always the same; several threads call its forks.
    ParallelDecoder(const Config& config, const isa::CodeReader& code, flow::BlockTable& table, flow::Sink& sink,
                    const Options& options);
};

/// A decoder that can also begin where a stream can be cut. Everything is borrowed and must outlive it.
[[nodiscard]] std::unique_ptr<follow::Cutting> make_cutting(const Config& config, const isa::CodeReader& code,
                                                            flow::BatchWriter& out);

}  // namespace waymark::pft
