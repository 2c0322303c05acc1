#include "writer.h"

#include "waymark/core/quote.h"

namespace waymark::exports {

void Writer::json(std::string_view text) {
    json_pieces(text, [&](std::string_view piece) { write(piece); });
}

void Writer::xml(std::string_view text) {
    xml_pieces(text, [&](std::string_view piece) { write(piece); });
}

}  // namespace waymark::exports
