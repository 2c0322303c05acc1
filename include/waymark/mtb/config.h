/// The programming of a Micro Trace Buffer: everything on which its bytes depend (docs/spec/mtb.md, 2).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace waymark::mtb {

struct Config {
    // Register values; absent if not known.
    std::optional<std::uint32_t> position{}, master{}, flow{}, base{};
    std::uint32_t vtor = 0;  ///< address of the vector table
    /// Architecture of the core, as far as it is known: `ARMv8-M`. Empty: not known. It does not affect decoding.
    std::string core{};
    std::uint32_t max_walk_bytes =
        512 * 1024;  ///< longest path between two packets before the image is considered wrong
    bool operator==(const Config&) const = default;
};

}  // namespace waymark::mtb
