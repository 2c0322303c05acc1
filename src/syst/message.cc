#include "waymark/syst/message.h"

#include <fmt/format.h>

#include <algorithm>

#include "waymark/core/numbers.h"

namespace waymark::syst {

std::string to_text(const Guid& guid) {
    std::string out = "{";
    for (std::size_t i = 0; i < guid.bytes.size(); ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
        out += fmt::format("{:02x}", guid.bytes[i]);
    }
    return out + "}";
}

std::optional<Guid> guid_from_text(std::string_view text) {
    if (text.starts_with('{') && text.ends_with('}')) text = text.substr(1, text.size() - 2);
    if (text.size() != 36) return {};
    Guid out;
    std::size_t digit = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const char c = text[at];
        if (at == 8 || at == 13 || at == 18 || at == 23) {
            if (c != '-') return {};
            continue;
        }
        const int value = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (value < 0) return {};
        std::uint8_t& byte = out.bytes[digit / 2];
        byte = static_cast<std::uint8_t>(byte << 4 | value);
        ++digit;
    }
    return out;
}

std::uint32_t crc32c(Bytes bytes) {
    static constexpr auto table = [] {
        std::array<std::uint32_t, 256> out{};
        for (std::uint32_t i = 0; i < 256; ++i) {
            std::uint32_t value = i;
            for (unsigned bit = 0; bit < 8; ++bit) value = value >> 1 ^ ((value & 1U) != 0 ? 0x82f6'3b78U : 0U);
            out[i] = value;
        }
        return out;
    }();
    std::uint32_t crc = ~std::uint32_t{0};
    for (const std::uint8_t byte : bytes) crc = crc >> 8 ^ table[(crc ^ byte) & 0xffU];
    return ~crc;
}

std::uint64_t number_in(Bytes bytes, std::size_t at, unsigned size) {
    std::uint64_t out = 0;
    for (unsigned i = 0; i < size; ++i) out |= std::uint64_t{bytes[at + i]} << 8 * i;
    return out;
}

namespace {

constexpr std::uint64_t bits_of(std::uint64_t value, unsigned high, unsigned low) {
    return value >> low & ((std::uint64_t{1} << (high - low + 1)) - 1);
}

/// The short forms have a fixed size.
void take_short(SystMessage& out, Bytes bytes, unsigned size) {
    out.is_short = true;
    out.severity = 0;
    if (bytes.size() != size)
        out.problem = fmt::format("{}; a message of this type has {}", counted(bytes.size(), "byte"), size);
    if (bytes.size() < size) return;
    out.complete = true;
    const std::uint64_t word = number_in(bytes, 0, size);
    if (out.type == MessageType::build)
        out.value = bits_of(word, 23, 4) | bits_of(word, size == 4 ? 31 : 63, 30) << 20;
    else
        out.value = word >> 4;
}

}  // namespace

SystMessage parse(Bytes bytes) {
    SystMessage out;
    if (bytes.size() < 4) {
        out.problem = counted(bytes.size(), "byte") + "; a header has 4";
        return out;
    }
    const std::uint64_t header = number_in(bytes, 0, 4);
    out.type = static_cast<MessageType>(bits_of(header, 3, 0));
    out.subtype = static_cast<unsigned>(bits_of(header, 29, 24));
    if (out.type == MessageType::short32) {
        take_short(out, bytes, 4);
        return out;
    }
    if (out.type == MessageType::short64) {
        take_short(out, bytes, 8);
        return out;
    }
    if (out.type == MessageType::build && out.subtype < 2) {
        take_short(out, bytes, out.subtype == 0 ? 4 : 8);
        return out;
    }
    out.severity = static_cast<unsigned>(bits_of(header, 6, 4));
    if (bits_of(header, 7, 7) != 0 || bits_of(header, 31, 30) != 0) out.problem = "reserved bits of the header are set";
    const bool has_guid = bits_of(header, 23, 23) != 0, has_crc = bits_of(header, 10, 10) != 0;
    if (has_guid) {
        out.unit = static_cast<unsigned>(bits_of(header, 22, 12));
    } else {
        out.origin = static_cast<unsigned>(bits_of(header, 22, 16));
        out.unit = static_cast<unsigned>(bits_of(header, 15, 12));
    }
    std::size_t at = 4;
    const auto has = [&](std::size_t count, std::string_view part) {
        if (bytes.size() - at >= count) return true;
        out.problem = fmt::format("it ends after {}, in its {}", counted(bytes.size(), "byte"), part);
        return false;
    };
    if (has_guid) {
        if (!has(16, "GUID")) return out;
        out.guid.emplace();
        std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), 16, out.guid->bytes.begin());
        at += 16;
    }
    if (bits_of(header, 8, 8) != 0) {
        if (!has(1, "location")) return out;
        const bool wide = (bytes[at] & 1U) != 0, address = (bytes[at] & 2U) != 0;
        ++at;
        if (!has(wide ? 8 : 4, "location")) return out;
        const unsigned half = wide ? 4 : 2;
        if (address)
            out.location = {true, number_in(bytes, at, 2 * half), 0};
        else
            out.location = {false, number_in(bytes, at, half),
                            static_cast<std::uint32_t>(number_in(bytes, at + half, half))};
        at += 2 * half;
    }
    std::optional<std::uint64_t> length;
    if (bits_of(header, 9, 9) != 0) {
        if (!has(2, "length")) return out;
        length = number_in(bytes, at, 2);
        at += 2;
    }
    if (bits_of(header, 11, 11) != 0) {
        if (!has(8, "timestamp")) return out;
        out.time = number_in(bytes, at, 8);
        at += 8;
    }
    const std::size_t tail = has_crc ? 4 : 0;
    if (!has(tail, "checksum")) return out;
    out.complete = true;
    const std::size_t there = bytes.size() - at - tail;
    const auto size = static_cast<std::size_t>(length.value_or(there));
    out.payload = bytes.subspan(at, std::min(size, there));
    if (size != there)
        out.problem = fmt::format("its payload has {}, its length says {}", counted(there, "byte"), size);
    if (has_crc && size <= there) out.checksum = crc32c(bytes.first(at + size)) == number_in(bytes, at + size, 4);
    return out;
}

}  // namespace waymark::syst
