#include "waymark/listing/text.h"

#include <nlohmann/json.hpp>

namespace waymark::listing {

LineFormat format_of(std::string_view name) {
    return name == "tsv" ? LineFormat::tsv : name == "json" ? LineFormat::json : LineFormat::text;
}

std::string json_string(std::string_view text) {
    // Names come from files: whatever is not UTF-8 in them is replaced rather than refused.
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace waymark::listing
