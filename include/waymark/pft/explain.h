/// Explains why a Program Trace Macrocell traces or does not (docs/spec/pft.md, 3, 5.3 and 5.6).
#pragma once

#include <cstdint>
#include <optional>

#include "waymark/pft/registers.h"
#include "waymark/protocol/explanation.h"

namespace waymark::pft {

/// Registers of a macrocell that are not part of `Registers`, if they were given.
struct ManagementValues {
    std::optional<std::uint32_t> oslsr{}, pdsr{}, lsr{}, authstatus{};
};

/// `given`: a register that was not given is not judged. A finding with effect `stops` means that Model, with these
/// registers, traces nothing at that level. If a level has no obstacles, and the explanation has neither `stops` nor
/// `may`, Model traces everything at that level.
[[nodiscard]] protocol::UnitExplanation explain(const Registers& registers, const ManagementValues& management,
                                                const protocol::Given& given);

}  // namespace waymark::pft
