/// The common text format of .wmt files: blanks and comments are free, the last part is compared line by line, and can
/// be rewritten.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace waymark::test {

[[nodiscard]] std::vector<std::string> words(std::string_view text);
[[nodiscard]] std::string joined(const std::vector<std::string>& parts);
/// One blank between words, and nothing from `#` on.
[[nodiscard]] std::string without_comment(std::string_view line);
/// `key=value`; an empty value if there is no `=`.
[[nodiscard]] std::pair<std::string, std::string> key_value(const std::string& word);

/// All .wmt files of a folder, by name.
[[nodiscard]] std::vector<std::filesystem::path> wmt_files(const std::filesystem::path& folder);

/// The lines to remove from `expected` (-) and to add (+) to get `found`; empty if they are equal.
[[nodiscard]] std::string difference(const std::vector<std::string>& expected, const std::vector<std::string>& found);

/// The text of a file of these lines with `found` in place of `part`, which begins at `part_line`; comments in it stay.
[[nodiscard]] std::string with_part(const std::vector<std::string>& lines, std::size_t part_line,
                                    const std::vector<std::string>& part, const std::vector<std::string>& found);

}  // namespace waymark::test
