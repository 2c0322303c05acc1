/// Logic with three values, for decisions of registers: always, never, or depending on the executing code.
#pragma once

#include <optional>

namespace waymark::protocol {

/// nullopt: it depends on the executing code, and on signals.
using Constant = std::optional<bool>;
inline constexpr Constant never = false, always = true, varies = std::nullopt;

[[nodiscard]] constexpr Constant inverted(Constant c, bool inverts = true) { return c ? Constant(*c != inverts) : c; }
[[nodiscard]] constexpr Constant either(Constant a, Constant b) {
    if (a == always || b == always) return always;
    return a && b ? never : varies;
}
[[nodiscard]] constexpr Constant both(Constant a, Constant b) { return inverted(either(inverted(a), inverted(b))); }

}  // namespace waymark::protocol
