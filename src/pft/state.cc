#include "waymark/pft/state.h"

#include <algorithm>
#include <bit>

namespace waymark::pft {

Target compress(const Place& to, const Place& last, unsigned least) {
    const unsigned shift = address_shift(to.isa);
    const auto bits = static_cast<std::uint32_t>(to.address.value >> shift);
    const auto difference = static_cast<std::uint32_t>((to.address.value ^ last.address.value) >> shift);
    unsigned bytes = 5;
    if (to.isa == last.isa) {
        bytes = std::max(least, 1U);
        while (bytes < 5 && static_cast<unsigned>(std::bit_width(difference)) > target_bits(bytes)) ++bytes;
    }
    Target t;
    t.bytes = static_cast<std::uint8_t>(bytes);
    t.bits = bytes == 5 ? bits : bits & ((1U << target_bits(bytes)) - 1);
    if (bytes == 5) t.isa = to.isa == Isa::tee ? Isa::t32 : to.isa;
    return t;
}

TimestampValue compress_timestamp(std::uint64_t to, std::uint64_t last, bool whole, const Config& config) {
    if (whole) return {to, config.timestamp_bytes};
    const auto changed = static_cast<unsigned>(std::bit_width(to ^ last));
    const auto bytes = static_cast<std::uint8_t>(std::clamp((changed + 6) / 7, 1U, unsigned{config.timestamp_bytes}));
    const unsigned width = TimestampField{config.timestamp_bytes}.width(bytes);
    return {width >= 64 ? to : to & ((std::uint64_t{1} << width) - 1), bytes};
}

}  // namespace waymark::pft
