/// Completion in shells: finds what could be typed next. The scripts in completion/ only pass words on, so their offers
/// always match this program.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace waymark::cli {

/// One possible word, and its description.
struct Candidate {
    std::string word, about;
};

struct Completion {
    /// Names that the shell completes itself.
    enum class Files { none, files, folders };
    std::vector<Candidate> candidates;
    Files files = Files::none;
};

/// Candidates for the last of `words`, the words after `waymark`; the last may be empty. For `--option=beginning` the
/// candidates are values alone. If sources, functions or metrics are wanted, the named capture or answers file is read;
/// without one there are no candidates.
[[nodiscard]] Completion complete(const CLI::App& app, const std::vector<std::string>& words);

/// `waymark __complete WORD...` prints a line for each candidate, with its description after a tab, and then `:files`
/// or `:folders`. It prints nothing else, and ends after five seconds, however large the capture is.
int run_complete(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace waymark::cli
