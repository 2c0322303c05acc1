/// Hashes files and the contents of a plan. Not for cryptographic use: XXH3 with 128 bits.
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "waymark/core/types.h"

namespace waymark::fleet {

class Hasher {
public:
    Hasher() { XXH3_128bits_reset(&state_); }
    void add(Bytes bytes) { XXH3_128bits_update(&state_, bytes.data(), bytes.size()); }
    /// Adds a text with its length, so that texts in a sequence cannot run into each other.
    void add(std::string_view text) {
        add(static_cast<std::uint64_t>(text.size()));
        XXH3_128bits_update(&state_, text.data(), text.size());
    }
    void add(std::uint64_t number) {
        std::uint8_t bytes[8];
        for (unsigned i = 0; i < 8; ++i) bytes[i] = static_cast<std::uint8_t>(number >> (8 * i));
        XXH3_128bits_update(&state_, bytes, sizeof bytes);
    }
    /// 32 hexadecimal digits.
    [[nodiscard]] std::string text() const {
        const XXH128_hash_t hash = XXH3_128bits_digest(&state_);
        return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
    }

private:
    XXH3_state_t state_;
};

}  // namespace waymark::fleet
