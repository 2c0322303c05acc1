/// Decodes messages of the Nexus interface to the elements that a trace buffer would have given (the inverse of
/// docs/spec/dpu.md, 11.3): for captures with NXMODE 11, where nothing goes to the buffer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "waymark/core/types.h"
#include "waymark/dpu/element.h"
#include "waymark/dpu/format.h"

namespace waymark::dpu::nexus {

/// Push-style: feed() takes a chunk and keeps nothing borrowed. An element has the offset of its message. The messages
/// do not show the entries that one Error replaces (one is counted), nor whether a loop is short.
class Decoder {
public:
    /// `shows_did`: contexts have data IDs (DP_TC.TIDS); messages carry both. The sink is borrowed.
    Decoder(std::optional<TraceMode> mode, bool shows_did, ElementSink& out, const StartState& start);
    ~Decoder();
    void feed(Bytes bytes);
    /// The stream ends here.
    void finish();
    /// Complete after finish().
    [[nodiscard]] const Totals& totals();

private:
    class Machine;
    std::unique_ptr<Machine> machine_;
};

}  // namespace waymark::dpu::nexus
