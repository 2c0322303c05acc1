/// Whole numbers in the files of a job, whose contents may be damaged.
#pragma once

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

namespace waymark::fleet {

/// The value as this type. Throws nlohmann::json::exception for a fraction, and for a number that the type does not
/// have, which `get` would convert to another number.
template <class Number>
[[nodiscard]] Number whole(const nlohmann::json& value) {
    using Limits = std::numeric_limits<Number>;
    if (value.is_number_unsigned() && std::in_range<Number>(value.get<std::uint64_t>()))
        return static_cast<Number>(value.get<std::uint64_t>());
    if (value.is_number_integer() && !value.is_number_unsigned() && std::in_range<Number>(value.get<std::int64_t>()))
        return static_cast<Number>(value.get<std::int64_t>());
    throw nlohmann::json::type_error::create(
        302, fmt::format("found {}, expected a whole number from {} to {}", value.dump(), Limits::min(), Limits::max()),
        &value);
}

}  // namespace waymark::fleet
