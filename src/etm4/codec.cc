#include "waymark/etm4/codec.h"

namespace waymark::etm4 {
namespace {

/// Reads `0x2ebc/2/IS0`, for a packet that allows these forms.
bool scan_address(std::string_view text, SentAddress& a) {
    const std::size_t slash = text.find('/');
    if (slash == std::string_view::npos || !wire::scan_number(text.substr(0, slash), a.value)) return false;
    text.remove_prefix(slash + 1);
    if (text.empty() || text[0] < '1' || text[0] > '8') return false;
    a.bytes = static_cast<std::uint8_t>(text[0] - '0');
    text.remove_prefix(1);
    if (text != "/IS0" && text != "/IS1") return false;
    a.is1 = text == "/IS1";
    return (a.bytes == 1 || a.bytes == 2 || a.bytes == 4 || a.bytes == 8) &&
           (a.value & ~address_mask(a.bytes, a.is1)) == 0;
}

}  // namespace

bool TimestampField::scan(std::string_view text, TimestampValue& t) {
    const std::size_t slash = text.find('/');
    std::uint64_t bytes = 0;
    if (slash == std::string_view::npos || !wire::scan_number(text.substr(0, slash), t.value) ||
        !wire::scan_number(text.substr(slash + 1), bytes) || bytes < 1 || bytes > 9)
        return false;
    t.bytes = static_cast<std::uint8_t>(bytes);
    return t.bytes == 9 || t.value >> timestamp_bits(t.bytes) == 0;
}

bool AddressBytes::scan(std::string_view text, SentAddress& a) const {
    return scan_address(text, a) && a.is1 == is1 && (bytes != 0 ? a.bytes == bytes : a.bytes <= 2);
}
bool LongAddressField::scan(std::string_view text, SentAddress& a) { return scan_address(text, a) && a.bytes >= 4; }
bool ShortAddressField::scan(std::string_view text, SentAddress& a) { return scan_address(text, a) && a.bytes <= 2; }

bool AtomField::scan(std::string_view text, Atoms& a) {
    if (text.empty() || text.size() > 24) return false;
    a = {static_cast<std::uint8_t>(text.size()), 0};
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != 'E' && text[i] != 'N') return false;
        a.e |= (text[i] == 'E' ? 1U : 0U) << i;
    }
    return atom_header(a) != 0;
}

bool KeyedResultField::scan(std::string_view text, KeyedResult& r) {
    const std::size_t at = text.find('@');
    std::uint64_t result = 0;
    if (at == std::string_view::npos || !wire::scan_number(text.substr(0, at), result) || result > 15 ||
        !wire::scan_number(text.substr(at + 1), r.key) || r.key >> 38 != 0)
        return false;
    r.result = static_cast<std::uint8_t>(result);
    return true;
}

}  // namespace waymark::etm4
