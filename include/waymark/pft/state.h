/// The state against which packets are compressed (docs/spec/pft.md, sections 2.5, 2.7, 2.9). For each part: does a
/// synchronisation point restore it?
///
///     address, isa         yes, the I-sync
///     ns, hyp, context id  yes, the I-sync (the context id if it is traced)
///     vmid                 no, but the VMID packet that follows the I-sync, if it is traced
///     timestamp            by the T-sync (a timestamp with all its bytes); until then its high bits are unknown
///     return stack         it is empty there (4.5); kept by the decoders, not here
#pragma once

#include <cstdint>
#include <optional>

#include "waymark/follow/place.h"
#include "waymark/pft/config.h"
#include "waymark/pft/packet.h"

namespace waymark::pft {

using follow::Place;

/// Completes a partial address from `last`, the last traced place. Bits that the packet does not carry, and the
/// instruction set of a packet of less than five bytes, come from `last`. Cannot fail: the parser refused impossible
/// patterns. If ThumbEE is possible, `isa` is t32, and the AltISA flag decides (with_alt_isa).
[[nodiscard]] WM_INLINE Place complete(const Target& target, const Place& last) {
    if (target.bytes == 5) return {{std::uint64_t{target.bits} << address_shift(target.isa) & 0xffffffffU}, target.isa};
    const unsigned shift = address_shift(last.isa);
    const std::uint64_t sent = ((std::uint64_t{1} << target_bits(target.bytes)) - 1) << shift;
    // Bits below the shift are never sent and always 0.
    const std::uint64_t kept = last.address.value & ~sent & ~((std::uint64_t{1} << shift) - 1);
    return {{kept | std::uint64_t{target.bits} << shift}, last.isa};
}

/// AltISA distinguishes ThumbEE from Thumb, and has no meaning in other instruction sets.
[[nodiscard]] WM_INLINE Isa with_alt_isa(Isa isa, bool alt_isa) {
    return isa == Isa::t32 || isa == Isa::tee ? (alt_isa ? Isa::tee : Isa::t32) : isa;
}

/// The address with the fewest bytes that changes `last` to `to` (section 2.5, the compression rule); `least` is 2 when
/// information bytes follow a branch packet. ThumbEE counts as a separate instruction set.
[[nodiscard]] Target compress(const Place& to, const Place& last, unsigned least = 1);

/// The last timestamp, as transmitted (possibly Gray coded).
class TimestampState {
public:
    /// Takes a timestamp's value and returns the whole timestamp, as transmitted; `known()` shows whether its high bits
    /// are known.
    WM_INLINE std::uint64_t update(const TimestampValue& sent, const Config& config) {
        const TimestampField field{config.timestamp_bytes};
        const unsigned width = field.width(sent.bytes);
        if (width >= 48 && sent.bytes == config.timestamp_bytes) {
            value_ = sent.value;
            known_ = true;
        } else {
            const std::uint64_t low = (std::uint64_t{1} << width) - 1;
            value_ = (value_ & ~low) | (sent.value & low);
        }
        return value_;
    }
    [[nodiscard]] bool known() const { return known_; }
    [[nodiscard]] std::uint64_t transmitted() const { return value_; }
    /// The value in natural binary.
    [[nodiscard]] std::uint64_t value(const Config& config) const {
        return config.gray_timestamps ? from_gray(value_) : value_;
    }
    /// A timestamp may have been lost, so only a whole one can be used next.
    void forget() { *this = {}; }
    /// Continues as after the transmission of this timestamp.
    void go_on_behind(std::uint64_t transmitted, bool known) {
        value_ = transmitted;
        known_ = known;
    }

private:
    std::uint64_t value_ = 0;
    bool known_ = false;
};

/// The timestamp with the fewest bytes that changes the transmitted value `last` to `to`; `whole` requests a T-sync.
[[nodiscard]] TimestampValue compress_timestamp(std::uint64_t to, std::uint64_t last, bool whole, const Config& config);

}  // namespace waymark::pft
