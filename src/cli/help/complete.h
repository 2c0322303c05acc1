/// What could be typed next: what completion in shells asks for. The scripts in completion/ only pass words on, so what
/// they offer is always what this program knows.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace waymark::cli {

/// One word that could be there, and what it is.
struct Candidate {
    std::string word, about;
};

struct Completion {
    /// What the shell looks up itself.
    enum class Files { none, files, folders };
    std::vector<Candidate> candidates;
    Files files = Files::none;
};

/// What could continue the last of `words`, the words after `waymark`; the last may be empty. Of `--option=beginning`
/// the candidates are values alone. Reads the capture or the answers file that the words name if sources, functions or
/// metrics are wanted; without it there are none.
[[nodiscard]] Completion complete(const CLI::App& app, const std::vector<std::string>& words);

/// `waymark __complete WORD...`: a line for each candidate, with what it is after a tab; then `:files` or `:folders`.
/// Never says anything else, and ends after five seconds, however large the capture is.
int run_complete(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace waymark::cli
