/// Converts packets to text and back, in the notation of `waymark packets` and of .wmt tests: `BRANCH-ADDRESS
/// target=0x17/1`. docs/spec/pft.md, section 2, has the names and fields.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "waymark/core/gap.h"
#include "waymark/core/packet_text.h"
#include "waymark/core/result.h"
#include "waymark/pft/config.h"
#include "waymark/pft/packet.h"

namespace waymark::pft {

using wire::fields_text, wire::to_text;

/// The inverse of to_text. `bad_format`: no packet has that name, or a field is missing, in the wrong place or invalid;
/// the message names it.
[[nodiscard]] Result<Packet> from_text(std::string_view text, const Config& config);

/// The reason for an I-sync, as a word.
[[nodiscard]] std::string_view name(ISyncReason reason);

/// Explains packets that carry only a part of a value: keeps the state against which packets are compressed, but no
/// state of the program. Receives every packet and gap of a stream in order.
class Explainer {
public:
    explicit Explainer(const Config& config);
    ~Explainer();
    Explainer(const Explainer&) = delete;
    Explainer& operator=(const Explainer&) = delete;

    /// A short phrase, such as `to 0xc0010ef4 T32, IRQ`; empty if the fields are enough. In an address that cannot be
    /// completed, because no I-sync came yet, each unknown hexadecimal digit is `?`.
    [[nodiscard]] std::string operator()(const Packet& packet);
    /// Forgets the known state.
    void operator()(const Gap& gap);

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace waymark::pft
