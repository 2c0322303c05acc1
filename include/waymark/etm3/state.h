/// The state against which packets are compressed (docs/spec/etmv3.md, 4 and 5). An I-sync restores everything except
/// the VMID and the high bits of timestamps.
#pragma once

#include <cstdint>
#include <optional>

#include "waymark/etm3/config.h"
#include "waymark/etm3/packet.h"
#include "waymark/flow/flow.h"
#include "waymark/follow/place.h"
#include "waymark/pft/state.h"

namespace waymark::etm3 {

using follow::Place;

/// The last timestamp. Program Flow Trace has the same rules (section 6).
using pft::TimestampState;
[[nodiscard]] inline pft::Config timestamp_config(const Config& config) {
    pft::Config c;
    c.timestamp_bytes = config.timestamp_bytes;
    c.gray_timestamps = config.gray_timestamps;
    return c;
}

/// A core's state, as packets show it.
struct LastState {
    Address address{};
    Isa isa = Isa::a32;
    bool alt_isa{};  ///< the last AltISA flag
    bool ns{}, hyp{};
    std::optional<std::uint32_t> context_id, vmid;

    [[nodiscard]] flow::Context context() const {
        return {.ns = ns, .hyp = hyp, .context_id = context_id, .vmid = vmid};
    }
    [[nodiscard]] Place place() const { return {address, isa}; }
    /// An I-sync carries no VMID: the earlier one stays.
    void carry(std::optional<std::uint32_t> last_vmid) { vmid = last_vmid; }
    friend bool operator==(const LastState&, const LastState&) = default;
};

/// Completes a partial address from `last`. Without a fifth byte, the instruction set is the one of `last`.
[[nodiscard]] inline Place complete(const SentTarget& target, const Place& last, const Config& config) {
    if (target.bytes == 5) return {{std::uint64_t{target.bits} << address_shift(target.isa) & 0xffffffffU}, target.isa};
    const unsigned shift = address_shift(last.isa);
    const std::uint64_t low =
        (std::uint64_t{1} << (target_bits(target.bytes, config.alternative_branches) + shift)) - 1;
    return {{(last.address.value & ~low) | std::uint64_t{target.bits} << shift}, last.isa};
}

/// The address with the fewest bytes, but at least `least`, that changes `last` to `to` (section 4). A change of the
/// instruction set needs all five.
[[nodiscard]] SentTarget compress(const Place& to, const Place& last, const Config& config, unsigned least = 1);

/// The state after a branch packet (section 4).
[[nodiscard]] inline LastState branch_state(const BranchAddress& p, const LastState& last, const Config& config) {
    LastState to = last;
    if (p.target.information) {
        to.ns = p.ns;
        to.alt_isa = p.alt_isa;
        if (p.has_byte_1()) to.hyp = p.hyp();
    }
    const Place place = complete(p.target, last.place(), config);
    to.address = place.address;
    to.isa = place.isa == Isa::t32 || place.isa == Isa::tee ? (to.alt_isa ? Isa::tee : Isa::t32) : place.isa;
    return to;
}

/// The state in an I-sync (section 5); the VMID stays.
[[nodiscard]] inline LastState isync_state(const ISync& p, std::optional<std::uint32_t> vmid, const Config& config) {
    LastState to;
    to.isa = p.isa();
    const std::uint32_t unsent = to.isa == Isa::t32 || to.isa == Isa::tee ? 1U : 0U;
    to.address = {p.address & ~unsent};
    to.alt_isa = p.alt_isa;
    to.ns = p.ns;
    to.hyp = p.hyp;
    if (config.context_id_bytes != 0) to.context_id = p.context_id;
    to.vmid = vmid;
    if (p.in_progress) {
        const Place current = complete(p.current, to.place(), Config{});
        to.address = current.address;
        to.isa = current.isa == Isa::t32 && to.alt_isa ? Isa::tee : current.isa;
    }
    return to;
}

}  // namespace waymark::etm3
