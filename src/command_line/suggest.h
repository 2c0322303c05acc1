/// "Did you mean": finds known words that are similar to an unknown one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace waymark::command_line {

/// At most three known words that `word` may stand for, the most similar first: those at the smallest distance, at most
/// a third of the word's length; otherwise those that begin with the word. Leading dashes are ignored.
[[nodiscard]] std::vector<std::string> similar(std::string_view word, const std::vector<std::string>& known);

/// The text `; did you mean sort or sorted?`, or an empty text.
[[nodiscard]] std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

}  // namespace waymark::command_line
