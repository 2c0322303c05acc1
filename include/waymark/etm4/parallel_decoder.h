/// `Decoder` on several cores: the stream is cut after an A-sync, its Trace Info and the address that comes next, the
/// pieces are decoded side by side, and their elements come in order, exactly those of `Decoder` (docs/spec/etm4.md,
/// 4).
///
/// The Trace Info gives everything packets are compressed against and empties the return stack; the Context and Address
/// packets after it give where execution is. Only identifiers that these packets omit are assumed to be those of the
/// last piece whose end is known.
///
/// Each piece ends at the next one's beginning. Only if the state of the decoder of the piece before is the one assumed
/// are the next piece's elements taken; else that piece is decoded again from where the one before ended. So a byte
/// pattern that only looks like a synchronisation costs time and changes nothing.
///
/// A unit that speculates (TRCIDR8.MAXSPEC) has elements that wait across any cut: its stream is decoded by one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "waymark/core/types.h"
#include "waymark/etm4/config.h"
#include "waymark/flow/blocks.h"
#include "waymark/flow/flow.h"
#include "waymark/follow/parallel.h"
#include "waymark/isa/isa.h"

namespace waymark::etm4 {

/// Decodes one trace unit's instruction stream, in chunks of any size; the larger they are, the more cores have work at
/// once. Memory: about 20 MB for two workers, whatever the size of a chunk.
class ParallelDecoder {
public:
    using Ranges = follow::Ranges;
    using Options = follow::ParallelOptions;

    /// Everything is borrowed and must outlive the decoder. `code` must be safe to call from several threads. `sink` is
    /// called by one thread at a time, not always the same; if it splits, its forks by several.
    ParallelDecoder(const Config& config, const isa::CodeReader& code, flow::BlockTable& table, flow::Sink& sink,
                    const Options& options);
    ~ParallelDecoder();

    /// The next bytes of the stream, borrowed for the call. All elements that `Decoder` would know of were delivered,
    /// or will be by `flush`, when it returns.
    void feed(Bytes bytes);
    /// As Decoder's.
    void reset();
    void finish();
    void flush();
    [[nodiscard]] std::uint64_t packets() const;
    [[nodiscard]] std::array<Offset, 2> pending() const;
    /// The bytes fed so far end inside a packet: those to come complete it.
    [[nodiscard]] bool amid_packet() const;

    /// Ranges::counted: by edge, how often it ran so far.
    [[nodiscard]] std::vector<std::uint64_t> counts() const;
    /// Ranges::counted: the sum of the cycles that came with ranges.
    [[nodiscard]] std::uint64_t cycles() const;
    /// Pieces decoded again, because a place to cut was none or the state there was another.
    [[nodiscard]] std::uint64_t repeated() const;

private:
    std::unique_ptr<follow::Parallel> core_;
};

}  // namespace waymark::etm4
