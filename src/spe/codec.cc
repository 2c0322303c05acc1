#include "waymark/spe/codec.h"

namespace waymark::spe {

bool SkipField::scan(std::string_view text, Skip& skip) {
    const std::size_t slash = text.find('/');
    std::uint64_t unit = 0, bytes = 0;
    if (slash == std::string_view::npos || !wire::scan_number(text.substr(0, slash), unit) ||
        !wire::scan_number(text.substr(slash + 1), bytes))
        return false;
    skip = {static_cast<std::uint32_t>(unit), static_cast<std::uint32_t>(bytes)};
    return unit >= 2 && unit <= 65536 && (unit & (unit - 1)) == 0 && bytes >= 1 && bytes <= unit;
}

void ForeignField::print(std::string& out, const Foreign& f) {
    if (f.prefix != 0) {
        wire::append_number(out, f.prefix);
        out += ',';
    }
    wire::append_number(out, f.header);
    out += ':';
    wire::append_number(out, f.payload);
}

bool ForeignField::scan(std::string_view text, Foreign& f) {
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos) return false;
    std::string_view head = text.substr(0, colon);
    std::uint64_t prefix = 0, header = 0;
    if (const std::size_t comma = head.find(','); comma != std::string_view::npos) {
        if (!wire::scan_number(head.substr(0, comma), prefix) || prefix < 0x20 || prefix > 0x3f) return false;
        head = head.substr(comma + 1);
    }
    if (!wire::scan_number(head, header) || header < 0x40 || header > 0xff ||
        !wire::scan_number(text.substr(colon + 1), f.payload))
        return false;
    f.prefix = static_cast<std::uint8_t>(prefix);
    f.header = static_cast<std::uint8_t>(header);
    const unsigned bytes = payload_bytes(f.header);
    return bytes == 8 || f.payload < std::uint64_t{1} << (8 * bytes);
}

void ForeignField::random(wire::Random& r, Foreign& f) {
    // Headers that no packet has (section 4.1), with and without a prefix.
    constexpr std::uint8_t headers[] = {0x40, 0x4c, 0x50, 0x63, 0x73, 0x68, 0x90, 0xa0, 0xb8, 0xc0, 0xd1, 0xee, 0xff};
    f.prefix = r() % 2 == 0 ? 0 : static_cast<std::uint8_t>(0x20 + r() % 32);
    f.header = headers[r() % std::size(headers)];
    f.payload = wire::random_number(r, 8 * payload_bytes(f.header));
}

}  // namespace waymark::spe
