/// Converts packets to text and back: `STIMULUS port=3 size=1 data=0xbb`. docs/spec/itm.md, 2, has names and fields.
#pragma once

#include <string>
#include <string_view>

#include "waymark/core/gap.h"
#include "waymark/core/packet_text.h"
#include "waymark/core/result.h"
#include "waymark/core/text_cursor.h"
#include "waymark/itm/config.h"
#include "waymark/itm/packet.h"
#include "waymark/itm/state.h"

namespace waymark::itm {

using wire::fields_text, wire::to_text;

/// The inverse of to_text. `bad_format`: unknown name, or a field is missing, in the wrong place or has an invalid
/// value; the message names it.
[[nodiscard]] Result<Packet> from_text(std::string_view text);

/// Explains packets. Receives every packet and gap of a stream in order.
class Explainer {
public:
    explicit Explainer(const Config& config) : state_(config) {}
    [[nodiscard]] std::string operator()(const Packet& packet);
    void operator()(const Gap& gap) { state_.see(gap); }
    /// The same at speed, for any packet: src/itm/explain.h. At most 200 bytes.
    template <class P>
    void explain(const P& packet, TextCursor& out);

private:
    SourceState state_;
};

}  // namespace waymark::itm
