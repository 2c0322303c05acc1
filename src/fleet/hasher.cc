#include "hasher.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <fmt/format.h>

namespace waymark::fleet {

struct Hasher::State {
    XXH3_state_t of;
};

Hasher::Hasher() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->of); }
Hasher::~Hasher() = default;

void Hasher::add(Bytes bytes) { XXH3_128bits_update(&state_->of, bytes.data(), bytes.size()); }

void Hasher::add(std::string_view text) {
    add(static_cast<std::uint64_t>(text.size()));
    XXH3_128bits_update(&state_->of, text.data(), text.size());
}

void Hasher::add(std::uint64_t number) {
    std::uint8_t bytes[8];
    for (unsigned i = 0; i < 8; ++i) bytes[i] = static_cast<std::uint8_t>(number >> (8 * i));
    XXH3_128bits_update(&state_->of, bytes, sizeof bytes);
}

std::string Hasher::text() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(&state_->of);
    return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace waymark::fleet
