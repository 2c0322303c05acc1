#include "waymark/protocol/profile.h"

#include <fmt/format.h>

#include <string>

#include "waymark/core/nearest.h"
#include "waymark/core/utf8.h"

namespace waymark::protocol {

isa::CoreProfile profile_of(const Description& source, Configured& out) {
    const auto profile = isa::core_profile(source.core_type);
    if (!profile && !source.core_type.empty()) {
        const std::string_view near = nearest(source.core_type, isa::core_names());
        out.problems.push_back(fmt::format(
            "source '{}': no core of the type '{}' is known; it is treated as one of profile A.{}", source.name,
            one_line(source.core_type), near.empty() ? std::string() : fmt::format(" Did you mean '{}'?", near)));
    }
    return profile.value_or(isa::CoreProfile::a);
}

}  // namespace waymark::protocol
