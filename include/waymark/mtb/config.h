/// How a Micro Trace Buffer was programmed: everything its bytes depend on (docs/spec/mtb.md, 2).
#pragma once

#include <cstdint>
#include <optional>

namespace waymark::mtb {

struct Config {
    // The registers that were read; absent: not known.
    std::optional<std::uint32_t> position{}, master{}, flow{}, base{};
    std::uint32_t vtor = 0;  ///< address of the vector table
    std::uint32_t max_walk_bytes =
        512 * 1024;  ///< longest way between two packets before the image is taken to be wrong
    bool operator==(const Config&) const = default;
};

}  // namespace waymark::mtb
