/// An address and the instruction set there.
#pragma once

#include <cstdint>

#include "waymark/core/types.h"
#include "waymark/isa/isa.h"

namespace waymark::follow {

using isa::Isa;

struct Place {
    Address address{};
    Isa isa = Isa::a32;
    friend bool operator==(const Place&, const Place&) = default;
};

/// The address `bytes` after this one. AArch32 addresses wrap at 32 bits.
[[nodiscard]] WM_INLINE Address advance(Address address, std::uint64_t bytes, Isa isa) {
    const std::uint64_t sum = address.value + bytes;
    return {isa == Isa::a64 ? sum : sum & 0xffff'ffffU};
}

}  // namespace waymark::follow
