/// Decodes words to elements at speed: an entry whose length and flags match its head and the trace mode is decoded in
/// place, and all others go through the parser. Gives exactly the elements of `ReferenceDecoder` (docs/spec/dpu.md,
/// sections 7.3 and 7.4).
#pragma once

#include <memory>

#include "waymark/core/types.h"
#include "waymark/dpu/element.h"

namespace waymark::dpu {

/// Decodes one unit's virtual trace buffer, in chunks of any size.
class Decoder {
public:
    /// `out` is borrowed and must outlive the decoder.
    Decoder(const TraceFormat& format, ByteOrder order, ElementSink& out, const StartState& start = {});
    ~Decoder();

    /// The next bytes of the buffer in reading order (vtb.h), borrowed for the call.
    void feed(Bytes bytes);
    /// The bytes that follow do not continue earlier ones: an unfinished entry is lost, and a gap reports it.
    void reset();
    /// The trace was closed here and begins again, perhaps with another programming (`periods`, 7.5).
    void restart(const TraceFormat& format, const StartState& start);
    /// The buffer ends here: reports the rest and delivers everything to the sink. `complete`: the unit had written
    /// everything (DP_SR.TWBA = 0).
    void finish(bool complete);
    /// Exact after finish().
    [[nodiscard]] const Totals& totals() const;

private:
    class Machine;
    std::unique_ptr<Machine> machine_;
};

}  // namespace waymark::dpu
