/// Decodes bytes to records, packet by packet (docs/spec/spe.md, section 4.1). Written for clarity, not speed:
/// `Decoder` gives the same records at speed, and tests compare the two.
#pragma once

#include <memory>

#include "waymark/core/types.h"
#include "waymark/spe/record.h"

namespace waymark::spe {

/// The place in a record at which a stream begins.
enum class Start : std::uint8_t {
    record,     ///< at the first byte of a record, or in padding
    mid_record  ///< anywhere, as in a snapshot of a ring: all bytes up to the first End or Timestamp are unsynchronised
};

/// Decodes one unit's byte stream, in chunks of any size.
class ReferenceDecoder {
public:
    /// `out` is borrowed and must outlive the decoder.
    explicit ReferenceDecoder(RecordSink& out, Start start = Start::record);
    ~ReferenceDecoder();

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
