#include "waymark/etm3/codec.h"

namespace waymark::etm3 {

void PHeaderField::print(std::string& out, std::uint8_t header) const {
    const Outcomes o = outcomes_of(header, cycle_accurate);
    for (unsigned i = 0; i < o.count; ++i) {
        out.append(o.cycles(i), 'W');
        out += o.passed(i) ? 'E' : 'N';
    }
    if (o.count == 0) out.append(o.first_cycles, 'W');
    out += '/';
    out += static_cast<char>('0' + o.format);
}

bool PHeaderField::scan(std::string_view text, std::uint8_t& header) const {
    for (unsigned byte = 0x80; byte < 0x100; byte += 2) {
        header = static_cast<std::uint8_t>(byte);
        if (!outcomes_of(header, cycle_accurate).valid()) continue;
        std::string printed;
        print(printed, header);
        if (printed == text) return true;
    }
    return false;
}

void SentTargetField::read_fifth(Cursor& c, SentTarget& t, std::uint32_t byte) {
    t.bytes = 5;
    const auto top = [&](Isa isa, unsigned width) {
        t.isa = isa;
        t.bits |= (byte & ((1U << width) - 1U)) << 27;
    };
    if ((byte & 0x80U) != 0) {
        t.old = static_cast<std::uint8_t>(byte >> 3);
        return top(Isa::a32, 3);
    }
    t.information = (byte & 0x40U) != 0;
    if ((byte & 0x20U) != 0) return top(Isa::jazelle, 5);
    if ((byte & 0x10U) != 0) return top(Isa::t32, 4);
    if ((byte & 0x08U) != 0) return top(Isa::a32, 3);
    c.bad();
}

void SentTargetField::write(std::vector<std::uint8_t>& out, const SentTarget& t) const {
    std::uint32_t rest = t.bits;
    const auto more = [&](unsigned n) { return t.bytes > n ? 0x80U : 0U; };
    out.push_back(static_cast<std::uint8_t>(more(1) | (rest & 0x3fU) << 1 | 1U));
    rest >>= 6;
    for (unsigned n = 2; n <= t.bytes && n < 5; ++n, rest >>= 7) {
        const std::uint32_t last = alternative ? (t.information ? 0x40U : 0U) | (rest & 0x3fU) : rest & 0x7fU;
        out.push_back(static_cast<std::uint8_t>(more(n) != 0 ? 0x80U | (rest & 0x7fU) : last));
    }
    if (t.bytes < 5) return;
    if (t.old != 0) {
        out.push_back(static_cast<std::uint8_t>(unsigned{t.old} << 3 | (rest & 7U)));
        return;
    }
    const std::uint32_t pattern = t.isa == Isa::a32 ? 0x08U : t.isa == Isa::jazelle ? 0x20U : 0x10U;
    const std::uint32_t width = t.isa == Isa::a32 ? 3 : t.isa == Isa::jazelle ? 5 : 4;
    out.push_back(static_cast<std::uint8_t>((t.information ? 0x40U : 0U) | pattern | (rest & ((1U << width) - 1U))));
}

void SentTargetField::print(std::string& out, const SentTarget& t) {
    wire::append_number(out, t.bytes == 5 ? t.bits << address_shift(t.isa) : t.bits);
    out += '/';
    out += static_cast<char>('0' + t.bytes);
    if (t.bytes == 5) {
        out += '/';
        out += name(t.isa);
    }
    if (t.information) out += "+info";
    if (t.old != 0) {
        out += "+old=";
        wire::append_number(out, t.old);
    }
}

bool SentTargetField::scan(std::string_view text, SentTarget& t) const {
    t = {};
    if (const std::size_t at = text.find("+old="); at != std::string_view::npos) {
        std::uint64_t old = 0;
        if (!wire::scan_number(text.substr(at + 5), old) || old < 0x10 || old > 0x1f) return false;
        t.old = static_cast<std::uint8_t>(old);
        text = text.substr(0, at);
    }
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
    if (t.information && t.bytes < (alternative ? 2 : 5)) return false;
    if (t.bytes < 5) {
        t.bits = static_cast<std::uint32_t>(value);
        return t.old == 0 && text.empty() && value < (std::uint64_t{1} << target_bits(t.bytes, alternative));
    }
    if (text == "/A32")
        t.isa = Isa::a32;
    else if (text == "/T32")
        t.isa = Isa::t32;
    else if (text == "/Jazelle")
        t.isa = Isa::jazelle;
    else
        return false;
    if (t.old != 0 && (t.isa != Isa::a32 || t.information)) return false;
    const unsigned shift = address_shift(t.isa);
    t.bits = static_cast<std::uint32_t>(value >> shift);
    return value <= 0xffffffffU && (value & ((1U << shift) - 1)) == 0;
}

void SentTargetField::random(wire::Random& r, SentTarget& t) const {
    t = {};
    t.bytes = static_cast<std::uint8_t>(1 + r() % 5);
    constexpr Isa isas[] = {Isa::a32, Isa::t32, Isa::jazelle};
    if (t.bytes == 5) {
        t.isa = isas[r() % 3];
        if (t.isa == Isa::a32 && r() % 4 == 0) t.old = static_cast<std::uint8_t>(0x10 + r() % 16);
    }
    t.bits = static_cast<std::uint32_t>(
        wire::random_number(r, t.bytes == 5 ? 32 - address_shift(t.isa) : target_bits(t.bytes, alternative)));
    t.information = t.old == 0 && t.bytes >= (alternative ? 2 : 5) && r() % 2 == 0;
}

void SentDataAddressField::read(Cursor& c, SentDataAddress& a) {
    a = {};
    for (unsigned n = 1, shift = 0;; ++n, shift += 7) {
        const std::uint32_t byte = c.u8();
        a.bytes = static_cast<std::uint8_t>(n);
        if (n == 5) {
            if ((byte & 0xe0U) != 0) return c.bad();
            a.bits |= (byte & 0xfU) << shift;
            a.big_endian = (byte & 0x10U) != 0;
            return;
        }
        a.bits |= (byte & 0x7fU) << shift;
        if ((byte & 0x80U) == 0) return;
    }
}
void SentDataAddressField::write(std::vector<std::uint8_t>& out, const SentDataAddress& a) {
    std::uint32_t rest = a.bits;
    for (unsigned n = 1; n < a.bytes; ++n, rest >>= 7) out.push_back(static_cast<std::uint8_t>(0x80U | (rest & 0x7fU)));
    out.push_back(static_cast<std::uint8_t>(a.bytes == 5 ? (rest & 0xfU) | (a.big_endian ? 0x10U : 0U) : rest & 0x7fU));
}
void SentDataAddressField::print(std::string& out, const SentDataAddress& a) {
    wire::append_number(out, a.bits);
    out += '/';
    out += static_cast<char>('0' + a.bytes);
    if (a.big_endian) out += "/BE";
}
bool SentDataAddressField::scan(std::string_view text, SentDataAddress& a) {
    a = {};
    if (text.ends_with("/BE")) {
        a.big_endian = true;
        text.remove_suffix(3);
    }
    const std::size_t slash = text.find('/');
    std::uint64_t value = 0, bytes = 0;
    if (slash == std::string_view::npos || !wire::scan_number(text.substr(0, slash), value) ||
        !wire::scan_number(text.substr(slash + 1), bytes) || bytes < 1 || bytes > 5)
        return false;
    a.bytes = static_cast<std::uint8_t>(bytes);
    a.bits = static_cast<std::uint32_t>(value);
    return value < (std::uint64_t{1} << (bytes == 5 ? 32 : 7 * bytes)) && (!a.big_endian || bytes == 5);
}
void SentDataAddressField::random(wire::Random& r, SentDataAddress& a) {
    a.bytes = static_cast<std::uint8_t>(1 + r() % 5);
    a.bits = static_cast<std::uint32_t>(wire::random_number(r, a.bytes == 5 ? 32 : 7U * a.bytes));
    a.big_endian = a.bytes == 5 && r() % 2 == 0;
}

}  // namespace waymark::etm3
