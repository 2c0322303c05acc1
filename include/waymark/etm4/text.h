/// Packets ↔ text: the notation of `waymark packets` and of .wmt tests, `ADDRESS-SHORT address=0x2ebc/2/IS0`.
/// docs/spec/etm4.md has the names and fields.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "waymark/core/gap.h"
#include "waymark/core/result.h"
#include "waymark/core/wire.h"
#include "waymark/etm4/config.h"
#include "waymark/etm4/packet.h"

namespace waymark::etm4 {

/// The fields alone: `address=0x2ebc/2/IS0`.
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

/// The inverse of to_text. `bad_format`: no packet has that name, the configuration has no such packet, or a field is
/// missing, in the wrong place or no value of its kind; the message names it.
[[nodiscard]] Result<Packet> from_text(std::string_view text, const Config& config);

/// Exception level, security state, width and identifiers: `EL1 Non-secure AArch64, VMID 0x5, Context ID 0x12`.
[[nodiscard]] std::string context_text(const ContextFields& context, const Config& config);

/// Says what packets mean that are partial on the wire: keeps the state they are compressed against, and nothing of the
/// program. Fed every packet and gap of a stream in order.
class Explainer {
public:
    explicit Explainer(const Config& config);
    ~Explainer();
    Explainer(const Explainer&) = delete;
    Explainer& operator=(const Explainer&) = delete;

    /// A short phrase, such as `to 0xffffffc000083c00 A64`; empty when the fields say it all. Of addresses that cannot
    /// be completed, because no Trace Info came yet, each unknown hexadecimal digit is `?`.
    [[nodiscard]] std::string operator()(const Packet& packet);
    /// What was known is known no more.
    void operator()(const Gap& gap);

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace waymark::etm4
