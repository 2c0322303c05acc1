/// Decodes words to elements, entry by entry (docs/spec/dpu.md, sections 7.3 and 7.4). Written for clarity, not speed:
/// `Decoder` gives the same elements at speed, and tests compare the two.
#pragma once

#include <memory>

#include "waymark/core/types.h"
#include "waymark/dpu/element.h"

namespace waymark::dpu {

/// Decodes one unit's virtual trace buffer, in chunks of any size.
class ReferenceDecoder {
public:
    /// `out` is borrowed and must outlive the decoder.
    ReferenceDecoder(const TraceFormat& format, ByteOrder order, ElementSink& out, const StartState& start = {});
    ~ReferenceDecoder();

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
