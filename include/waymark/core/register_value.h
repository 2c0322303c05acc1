/// The value of a unit's register, as given in a capture.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace waymark {

/// A register of a core or trace source, with its value when the capture was taken.
struct RegisterValue {
    std::string name;              ///< as written: `TRCCONFIGR`
    std::uint64_t value{};         ///< fits `bits`
    std::optional<unsigned> id{};  ///< register number, if the capture has it (docs/spec/pft.md, 3)
    unsigned bits = 32;            ///< 1 to 64
    friend bool operator==(const RegisterValue&, const RegisterValue&) = default;
};

/// The first register with that name (case-sensitive, as in every format), or null.
[[nodiscard]] inline const RegisterValue* find_register(const std::vector<RegisterValue>& registers,
                                                        std::string_view name) {
    const auto found =
        std::find_if(registers.begin(), registers.end(), [&](const RegisterValue& r) { return r.name == name; });
    return found == registers.end() ? nullptr : &*found;
}

}  // namespace waymark
