#include "writer.h"

#include <algorithm>

namespace waymark::exports {

namespace {

constexpr std::string_view replacement = "\xef\xbf\xbd";

/// Bytes of the UTF-8 character that `text` begins with; 0: it begins with none.
std::size_t character(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    if (first < 0x80) return 1;
    const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
    for (std::size_t i = 1; i < length; ++i)
        if ((byte(i) & 0xc0) != 0x80) return 0;
    // Longer than need be, surrogates, beyond U+10FFFF.
    const unsigned char second = byte(1);
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) || (first == 0xf0 && second < 0x90) ||
        (first == 0xf4 && second > 0x8f))
        return 0;
    return length;
}

/// `put` gets pieces that are UTF-8.
template <class Put>
void pieces(std::string_view text, Put&& put) {
    while (!text.empty()) {
        const std::size_t length = character(text);
        put(length == 0 ? replacement : text.substr(0, length));
        text.remove_prefix(std::max<std::size_t>(length, 1));
    }
}

}  // namespace

void Writer::json(std::string_view text) {
    write("\"");
    pieces(text, [&](std::string_view c) {
        if (c == "\"" || c == "\\") {
            write("\\");
            write(c);
        } else if (static_cast<unsigned char>(c[0]) < 0x20) {
            print("\\u{:04x}", static_cast<unsigned>(c[0]));
        } else {
            write(c);
        }
    });
    write("\"");
}

void Writer::xml(std::string_view text) {
    pieces(text, [&](std::string_view c) {
        const auto first = static_cast<unsigned char>(c[0]);
        if (c == "&")
            write("&amp;");
        else if (c == "<")
            write("&lt;");
        else if (c == ">")
            write("&gt;");
        else if (c == "\"")
            write("&quot;");
        else
            write(first < 0x20 ? " " : c == "\x7f" ? replacement : c);
    });
}

std::string utf8(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    pieces(text, [&](std::string_view c) { out += c; });
    return out;
}

std::string one_line(std::string_view text) {
    std::string out = utf8(text);
    for (char& c : out)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
    return out;
}

std::string grouped(std::uint64_t number) {
    std::string out = std::to_string(number);
    for (std::size_t at = out.size(); at > 3;) out.insert(at -= 3, ",");
    return out;
}

std::string counted(std::uint64_t number, std::string_view one) {
    return number == 1 ? fmt::format("1 {}", one) : fmt::format("{} {}s", grouped(number), one);
}

}  // namespace waymark::exports
