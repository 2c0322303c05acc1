/// Bytes → records at speed: a record with the same headers as an earlier one is taken apart without parsing, and
/// everything unusual goes packet by packet. Gives exactly the records of `ReferenceDecoder` (docs/spec/spe.md, section
/// 4.1).
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
    /// The next bytes do not follow the bytes before: an unfinished record is lost, and a gap says so.
    void reset(Start start = Start::record);
    /// The stream ends here: reports the bytes left over and delivers everything to the sink.
    void finish();
    /// Exact after finish().
    [[nodiscard]] const Totals& totals() const;

private:
    class Machine;
    std::unique_ptr<Machine> machine_;
};

}  // namespace waymark::spe
