/// Decodes bytes to records at speed: a record with the same headers as an earlier one is decoded without parsing, and
/// everything unusual is parsed packet by packet. Gives exactly the records of `ReferenceDecoder` (docs/spec/spe.md,
/// section 4.1).
#pragma once

#include <memory>

#include "waymark/core/types.h"
#include "waymark/spe/record.h"
#include "waymark/spe/reference_decoder.h"

namespace waymark::spe {

/// Decodes one unit's byte stream, in chunks of any size.
class Decoder {
public:
    /// `out` is borrowed and must outlive the decoder.
    explicit Decoder(RecordSink& out, Start start = Start::record);
    ~Decoder();

    /// The next bytes of the stream, borrowed for the call.
    void feed(Bytes bytes);
    /// The bytes that follow do not continue earlier ones: an unfinished record is lost, and a gap reports it.
    void reset(Start start = Start::record);
    /// The stream ends: reports the unfinished rest and delivers everything to the sink.
    void finish();
    /// Exact after finish().
    [[nodiscard]] const Totals& totals() const;

private:
    class Machine;
    std::unique_ptr<Machine> machine_;
};

}  // namespace waymark::spe
