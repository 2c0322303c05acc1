#include "waymark/listing/text.h"

#include "waymark/core/quote.h"

namespace waymark::listing {

LineFormat format_of(std::string_view name) {
    return name == "tsv" ? LineFormat::tsv : name == "json" ? LineFormat::json : LineFormat::text;
}

std::string json_string(std::string_view text) { return json_text(text); }

}  // namespace waymark::listing
