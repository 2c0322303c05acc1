/// An address and the instruction set there.
#pragma once

#include "waymark/core/types.h"
#include "waymark/isa/isa.h"

namespace waymark::isa {

struct Place {
    Address address{};
    Isa isa = Isa::a32;
    friend bool operator==(const Place&, const Place&) = default;
};

}  // namespace waymark::isa
