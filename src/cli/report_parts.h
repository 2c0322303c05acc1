/// Additions of `waymark report` and `waymark serve` to answers before they are shown.
#pragma once

#include <string>
#include <vector>

#include "options.h"
#include "waymark/answers/answers.h"

namespace waymark::cli {

/// Whether a page can be made, of at most `most_megabytes` (`--max-size`). Errc::usage.
[[nodiscard]] Status check_page(double most_megabytes);
/// Adds the text of source files, and prints which were refused.
[[nodiscard]] Status include_sources(answers::Answers& answers, const InputOptions& input,
                                     const std::vector<std::string>& roots);

}  // namespace waymark::cli
