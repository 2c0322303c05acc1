/// Conditions that keep everything out of the trace but for one case, which registers decide that were not given: the
/// sentence of such a condition ends with the case.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "waymark/protocol/explanation.h"

namespace waymark::protocol {

inline constexpr std::string_view only_if_words = "; then nothing is traced, unless ";

/// `text` with this case, such as `the unit has no address comparators`.
[[nodiscard]] inline std::string with_only_if(std::string text, std::string_view only_if) {
    return std::move(text.append(only_if_words).append(only_if));
}
/// The case; empty: the condition is no such.
[[nodiscard]] inline std::string_view only_if(const TraceCondition& condition) {
    const std::size_t at = condition.text.rfind(only_if_words);
    if (condition.effect != TraceEffect::may || at == std::string::npos) return {};
    return std::string_view(condition.text).substr(at + only_if_words.size());
}

}  // namespace waymark::protocol
