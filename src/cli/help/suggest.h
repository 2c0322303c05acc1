/// "Did you mean": the known words that are closest to one that is not known.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace waymark::cli {

/// At most three known words that `word` may be meant for, the closest first: those at the smallest distance, which is
/// no more than a third of the word; else those that begin with it. Leading dashes count for nothing.
[[nodiscard]] std::vector<std::string> similar(std::string_view word, const std::vector<std::string>& known);

/// `; did you mean sort or sorted?`, or nothing.
[[nodiscard]] std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

}  // namespace waymark::cli
