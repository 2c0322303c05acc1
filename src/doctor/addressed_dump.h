/// Dumps with an address before each line, as od, hexdump and xxd print them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "contents.h"

namespace waymark::doctor {

/// The evidence in a dump's addresses about its lines.
struct AddressedDump {
    /// Readings of the numbers that the distance between addresses shows not to be hexadecimal; empty: they may be
    /// hexadecimal.
    std::vector<DecodedText> readings{};
    std::string text{};   ///< the lines; those that `*` abbreviates are written out
    std::string lacks{};  ///< sentence about bytes that are not in the text; empty: none is known to be missing
};
/// nullopt: most lines do not begin with an address, or the distances between addresses differ from the number of bytes
/// in the lines.
[[nodiscard]] std::optional<AddressedDump> addressed_dump(std::string_view text);

}  // namespace waymark::doctor
