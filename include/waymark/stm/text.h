/// Packets ↔ text: `D32TS value=0xbb timestamp=0x12/2`. docs/spec/stm.md, 2, has names and fields.
#pragma once

#include <string>
#include <string_view>

#include "waymark/core/gap.h"
#include "waymark/core/packet_text.h"
#include "waymark/core/result.h"
#include "waymark/core/text_cursor.h"
#include "waymark/stm/config.h"
#include "waymark/stm/packet.h"
#include "waymark/stm/state.h"

namespace waymark::stm {

using wire::fields_text, wire::to_text;

/// The inverse of to_text. `bad_format`: no packet has that name, or a field is missing, in the wrong place or invalid;
/// the message names it.
[[nodiscard]] Result<Packet> from_text(std::string_view text);

/// Explains packets. Must get every packet and gap of a stream in order.
class Explainer {
public:
    explicit Explainer(const Config& config) : state_(config) {}
    [[nodiscard]] std::string operator()(const Packet& packet);
    void operator()(const Gap& gap) { state_.see(gap); }
    /// The same at speed, for any packet: src/stm/explain.h. At most 200 bytes.
    template <class P>
    void explain(const P& packet, TextCursor& out);

private:
    SourceState state_;
};

}  // namespace waymark::stm
