#include "waymark/pft/codec.h"

namespace waymark::pft {

bool TargetField::scan(std::string_view text, Target& t) const {
    t = {};
    if (text.ends_with("+info")) {
        t.information = true;
        text.remove_suffix(5);
    }
    const std::size_t slash = text.find('/');
    std::uint64_t value = 0;
    if (slash == std::string_view::npos || !wire::scan_number(text.substr(0, slash), value)) return false;
    text.remove_prefix(slash + 1);
    if (text.empty() || text[0] < '1' || text[0] > '5') return false;
    t.bytes = static_cast<std::uint8_t>(text[0] - '0');
    text.remove_prefix(1);
    // Only targets that can be encoded: other sizes have no room for the bit that announces information.
    if (t.information && t.bytes < (information_from_two_bytes ? 2 : 5)) return false;
    if (t.bytes < 5) {
        t.bits = static_cast<std::uint32_t>(value);
        return text.empty() && value < (std::uint64_t{1} << target_bits(t.bytes));
    }
    if (text == "/A32")
        t.isa = Isa::a32;
    else if (text == "/T32")
        t.isa = Isa::t32;
    else if (text == "/Jazelle" && jazelle)
        t.isa = Isa::jazelle;
    else
        return false;
    const unsigned shift = address_shift(t.isa);
    t.bits = static_cast<std::uint32_t>(value >> shift);
    return value <= 0xffffffffU && (value & ((1U << shift) - 1)) == 0;
}

bool TimestampField::scan(std::string_view text, TimestampValue& t) const {
    const std::size_t slash = text.find('/');
    std::uint64_t bytes = 0;
    if (slash == std::string_view::npos || !wire::scan_number(text.substr(0, slash), t.value) ||
        !wire::scan_number(text.substr(slash + 1), bytes) || bytes < 1 || bytes > max_bytes)
        return false;
    t.bytes = static_cast<std::uint8_t>(bytes);
    const unsigned bits = width(t.bytes);
    return bits >= 64 || t.value < (std::uint64_t{1} << bits);
}

}  // namespace waymark::pft
