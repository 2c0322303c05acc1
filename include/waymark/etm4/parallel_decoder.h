/// `Decoder` on several cores: the stream is cut after an A-sync, its Trace Info and the address that comes next, the
/// pieces are decoded side by side, and their elements come in order; they equal the elements of `Decoder`
/// (docs/spec/etm4.md, 4).
///
/// The Trace Info gives everything packets are compressed against and empties the return stack; the Context and Address
/// packets after it give where execution is. Only for identifiers that these packets omit, the values at the end of the
/// last known piece are assumed.
///
/// Each piece ends at the next one's beginning. Only if the state of the decoder of the piece before is the one assumed
/// are the next piece's elements taken; else that piece is decoded again from where the one before ended. So a byte
/// pattern that only looks like a synchronisation costs time and changes nothing.
///
/// A unit that speculates (TRCIDR8.MAXSPEC) has elements that wait across any cut: its stream is decoded by one thread.
#pragma once

#include <memory>

#include "waymark/etm4/config.h"
#include "waymark/flow/blocks.h"
#include "waymark/flow/flow.h"
#include "waymark/follow/cutting.h"
#include "waymark/follow/decoder.h"
#include "waymark/isa/isa.h"

namespace waymark::etm4 {

/// Decodes one trace unit's instruction stream, in chunks of any size.
class ParallelDecoder final : public follow::HeldParallel {
public:
    /// Everything is borrowed and must outlive the decoder. `code` must be thread-safe. `sink` is called by one thread
    /// at a time, not always the same; if it splits, several threads call its forks.
    ParallelDecoder(const Config& config, const isa::CodeReader& code, flow::BlockTable& table, flow::Sink& sink,
                    const Options& options);
};

/// A decoder that can also begin where a stream can be cut. Everything is borrowed and must outlive it. Null: the unit
/// speculates, and what is speculative waits across any cut.
[[nodiscard]] std::unique_ptr<follow::Cutting> make_cutting(const Config& config, const isa::CodeReader& code,
                                                            flow::BatchWriter& out);

}  // namespace waymark::etm4
