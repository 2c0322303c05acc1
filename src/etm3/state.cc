#include "waymark/etm3/state.h"

#include <bit>

namespace waymark::etm3 {

SentTarget compress(const Place& to, const Place& last, const Config& config, unsigned least) {
    const unsigned shift = address_shift(to.isa);
    const auto bits = static_cast<std::uint32_t>(to.address.value >> shift);
    const auto changed = static_cast<unsigned>(std::bit_width((to.address.value ^ last.address.value) >> shift));
    unsigned bytes = to.isa == last.isa ? least : 5U;
    while (bytes < 5 && changed > target_bits(bytes, config.alternative_branches)) ++bytes;
    SentTarget out;
    out.bytes = static_cast<std::uint8_t>(bytes);
    out.bits = bytes == 5 ? bits : bits & ((1U << target_bits(bytes, config.alternative_branches)) - 1U);
    if (bytes == 5) out.isa = to.isa == Isa::tee ? Isa::t32 : to.isa;
    return out;
}

}  // namespace waymark::etm3
