#include "writer.h"

namespace waymark::exports {

void Writer::json(std::string_view text) {
    write("\"");
    utf8_pieces(text, [&](std::string_view c) {
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
    utf8_pieces(text, [&](std::string_view c) {
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
            write(first < 0x20 ? " " : c == "\x7f" ? replacement_character : c);
    });
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
