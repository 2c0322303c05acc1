/// Turns the first bytes of a fuzz input into configuration, code and other numbers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "waymark/core/types.h"
#include "waymark/pft/config.h"

namespace waymark::fuzz {

/// Takes numbers from the front of an input; zeros when it is used up.
class Input {
public:
    explicit Input(Bytes bytes) : bytes_(bytes) {}
    std::uint8_t byte() {
        if (bytes_.empty()) return 0;
        const std::uint8_t value = bytes_.front();
        bytes_ = bytes_.subspan(1);
        return value;
    }
    std::uint32_t word() {
        std::uint32_t out = 0;
        for (unsigned i = 0; i < 4; ++i) out = out << 8 | byte();
        return out;
    }
    Bytes take(std::size_t count) {
        const Bytes out = bytes_.first(std::min(count, bytes_.size()));
        bytes_ = bytes_.subspan(out.size());
        return out;
    }
    [[nodiscard]] Bytes rest() const { return bytes_; }

private:
    Bytes bytes_;
};

/// Any configuration, from two bytes.
inline pft::Config config(Input& input) {
    constexpr std::uint8_t sizes[] = {0, 1, 2, 4};
    const unsigned a = input.byte(), b = input.byte();
    pft::Config c;
    c.cycle_accurate = (a & 1U) != 0;
    c.return_stack = (a & 2U) != 0;
    c.barrier_waypoints = (a & 4U) != 0;
    c.gray_timestamps = (a & 8U) != 0;
    c.context_id_bytes = sizes[a >> 4 & 3U];
    c.timestamp_bytes = (a & 0x40U) != 0 ? 9 : 7;
    c.minor_version = (a & 0x80U) != 0 ? 1 : 0;
    c.update_is_compression_base = (b & 1U) != 0;
    c.hyp_kept_without_info_1 = (b & 2U) != 0;
    c.max_walk_bytes = 64U << (b >> 2 & 7U);
    return c;
}

}  // namespace waymark::fuzz
