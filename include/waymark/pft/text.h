/// Packets ↔ text: the notation of `waymark packets` and of .wmt tests, `BRANCH-ADDRESS target=0x17/1`. Names and
/// fields are those of docs/spec/pft.md, section 2.
#pragma once

#include <string>
#include <string_view>

#include "waymark/core/result.h"
#include "waymark/core/wire.h"
#include "waymark/pft/config.h"
#include "waymark/pft/packet.h"

namespace waymark::pft {

/// The fields alone: `target=0x17/1 cycles=12`.
template <class P>
[[nodiscard]] std::string fields_text(const P& packet, const Config& config) {
    std::string out;
    wire::Printer printer(out);
    P::fields(printer, packet, config);
    return out;
}

/// Name and fields.
template <class P>
[[nodiscard]] std::string to_text(const P& packet, const Config& config) {
    const std::string fields = fields_text(packet, config);
    return std::string(P::info.name) + (fields.empty() ? "" : " ") + fields;
}

/// The inverse of to_text. `bad_format`: no packet has that name, or a field is missing, in the wrong place or no value
/// of its kind; the message names it.
[[nodiscard]] Result<Packet> from_text(std::string_view text, const Config& config);

/// What exception `number` means on an A or R profile core (section 2.5).
[[nodiscard]] std::string_view exception_name(std::uint32_t number);

/// Why an I-sync was sent, as a word.
[[nodiscard]] std::string_view name(ISyncReason reason);

}  // namespace waymark::pft
