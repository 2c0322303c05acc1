/// Places in a program, and how addresses advance.
#pragma once

#include <cstdint>

#include "waymark/core/types.h"
#include "waymark/isa/place.h"

namespace waymark::follow {

using isa::Isa, isa::Place;

/// The block that execution has reached: block id * 2, an index into BlockCache::links(). Negative: no block.
using Position = std::int32_t;

/// The address `bytes` bytes after this one. AArch32 addresses wrap at 32 bits.
[[nodiscard]] WM_INLINE Address advance(Address address, std::uint64_t bytes, Isa isa) {
    const std::uint64_t sum = address.value + bytes;
    return {isa == Isa::a64 ? sum : sum & 0xffff'ffffU};
}

}  // namespace waymark::follow
