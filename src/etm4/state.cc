#include "waymark/etm4/state.h"

#include <algorithm>
#include <bit>

namespace waymark::etm4 {

CompressedAddress compress(const KnownAddress& to, const AddressHistory& history) {
    for (std::uint8_t i = 0; i < 3; ++i)
        if (history.entry(i) == to) return {.entry = i, .sent = {}};
    const KnownAddress& last = history.entry(0);
    const std::uint64_t difference = (to.address.value ^ last.address.value) | ~last.known;
    const auto changed = static_cast<unsigned>(std::bit_width(difference));
    std::uint8_t bytes = 1;
    while (bytes < 8 && changed > address_bits(bytes, to.is1)) bytes = static_cast<std::uint8_t>(bytes * 2);
    const std::uint64_t sent = to.address.value & address_mask(bytes, to.is1);
    return {.entry = {}, .sent = {.value = sent, .bytes = bytes, .is1 = to.is1}};
}

TimestampValue compress_timestamp(std::uint64_t to, std::uint64_t last) {
    const auto changed = static_cast<unsigned>(std::bit_width(to ^ last));
    const auto bytes = static_cast<std::uint8_t>(std::clamp((changed + 6) / 7, 1U, 9U));
    const unsigned width = timestamp_bits(bytes);
    return {width >= 64 ? to : to & ((std::uint64_t{1} << width) - 1), bytes};
}

Meaning PacketState::operator()(const Timestamp& p) {
    Meaning out;
    const std::uint64_t whole = timestamps_.take(p.value);
    if (timestamps_.known()) out.timestamp = whole;
    if (p.has_cycles) out.count = CycleCount{.commit = {}, .cycles = cycles(p)};
    return out;
}

}  // namespace waymark::etm4
