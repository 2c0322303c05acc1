/// Dumps with an address before each line, as od, hexdump and xxd print them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "contents.h"

namespace waymark::doctor {

/// What the addresses of a dump say about its lines.
struct AddressedDump {
    /// Readings of numbers that are not hexadecimal, as the distance between addresses shows; empty: they may be.
    std::vector<DecodedText> readings{};
    std::string text{};   ///< the lines; those that `*` abbreviates are written out
    std::string lacks{};  ///< sentence about bytes that are not in the text; empty: none is known to be missing
};
/// nullopt: most lines do not begin with an address, or the addresses do not advance by the bytes of the lines.
[[nodiscard]] std::optional<AddressedDump> addressed_dump(std::string_view text);

}  // namespace waymark::doctor
