/// `Decoder` on several cores: the stream is cut after an A-sync, its Trace Info and the next address. The pieces are
/// decoded side by side, and their elements are delivered in order; they equal the elements of `Decoder`
/// (docs/spec/etm4.md, 4).
///
/// The Trace Info resets all state of compression, and empties the return stack; the Context and Address packets after
/// it give the place of execution. For identifiers that these packets omit, the values at the end of the last known
/// piece are assumed.
///
/// Each piece ends where the next one begins. The elements of the next piece are used only if the state at its
/// beginning was assumed correctly. Otherwise that piece is decoded again from the end of the previous one. So a byte
/// pattern that only looks like a synchronisation costs time, but changes nothing.
///
/// In a unit that speculates (TRCIDR8.MAXSPEC), elements wait across any cut: its stream is decoded by one thread.
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

/// A decoder that can also begin where a stream can be cut. Everything is borrowed and must outlive it. Null if the
/// unit speculates, since speculative elements wait across any cut.
[[nodiscard]] std::unique_ptr<follow::Cutting> make_cutting(const Config& config, const isa::CodeReader& code,
                                                            flow::BatchWriter& out);

}  // namespace waymark::etm4
