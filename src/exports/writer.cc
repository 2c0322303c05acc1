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

}  // namespace waymark::exports
