/// Explains why a Program Trace Macrocell, or an ETMv3, traces or does not (docs/spec/pft.md, 3, 5.3 and 5.6;
/// docs/spec/etmv3.md, 13).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/register_value.h"
#include "waymark/pft/registers.h"
#include "waymark/protocol/explanation.h"

namespace waymark::pft {

/// Registers of a macrocell that are not part of `Registers`, if they were given.
struct ManagementValues {
    std::optional<std::uint32_t> oslsr{}, pdsr{}, lsr{}, authstatus{};
};
/// Their names, in the same order.
inline constexpr std::array<std::string_view, 4> management_names{"ETMOSLSR", "ETMPDSR", "ETMLSR", "ETMAUTHSTATUS"};

enum class Macrocell : std::uint8_t { ptm, etmv3 };

/// `given`: a register that was not given is not judged. `kind`: whose rules apply, for ETMIDR may not be given. A
/// finding with effect `stops` means that Model, with these registers, traces nothing at that level. If a level has no
/// obstacles, and the explanation has neither `stops` nor `may`, Model traces everything at that level.
[[nodiscard]] protocol::UnitExplanation explain(const Registers& registers, const ManagementValues& management,
                                                const protocol::Given& given, Macrocell kind = Macrocell::ptm);

/// The same from registers by name. `at_reset`: values of those that were not given.
[[nodiscard]] protocol::UnitExplanation explain(const std::vector<RegisterValue>& values, Registers at_reset,
                                                Macrocell kind);

/// The registers that keep some code from being traced, if their values do (Protocol::filters).
[[nodiscard]] std::vector<std::string> filters(const std::vector<RegisterValue>& values);

}  // namespace waymark::pft
