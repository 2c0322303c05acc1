/// Converts packets to text and back, in the notation of `waymark packets` and of .wmt tests: `ADDRESS-SHORT
/// address=0x2ebc/2/IS0`. docs/spec/etm4.md has the names and fields.
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

/// Only the fields: `address=0x2ebc/2/IS0`.
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

/// The inverse of to_text. `bad_format`: unknown name, the configuration lacks the packet, or a field is missing, in
/// the wrong place or has an invalid value; the message names it.
[[nodiscard]] Result<Packet> from_text(std::string_view text, const Config& config);

/// Exception level, security state, width and identifiers as text: `EL1 Non-secure AArch64, VMID 0x5, Context ID 0x12`.
[[nodiscard]] std::string context_text(const ContextFields& context, const Config& config);

/// Explains packets that are partial on the wire: keeps the state against which they are compressed, but no state of
/// the program. Receives every packet and gap of a stream in order.
class Explainer {
public:
    explicit Explainer(const Config& config);
    ~Explainer();
    Explainer(const Explainer&) = delete;
    Explainer& operator=(const Explainer&) = delete;

    /// A short phrase, such as `to 0xffffffc000083c00 A64`; empty if the fields are enough. In an address that cannot
    /// be completed, because there was no Trace Info yet, each unknown hexadecimal digit is `?`.
    [[nodiscard]] std::string operator()(const Packet& packet);
    /// The state is unknown from here on.
    void operator()(const Gap& gap);

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace waymark::etm4
