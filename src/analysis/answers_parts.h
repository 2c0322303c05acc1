/// What producers of `Answers` have in common.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "waymark/analysis/answers.h"

namespace waymark::analysis {

/// Source files of answers, each once.
class SourceTable {
public:
    explicit SourceTable(Answers& answers) : answers_(answers) {}
    /// The index of a path; `none` for an empty one.
    [[nodiscard]] Index of(const std::string& path);

private:
    Answers& answers_;
    std::map<std::string, Index> known_;
};

/// Fills SourceFile::lines from the files themselves, below `root` where they are there, else where they say.
void read_sources(Answers& answers, const std::filesystem::path& root);

/// Leaves no more than `most` slices, none of which lies within another: neighbours of a track are put together while
/// they are shorter than Timeline::resolution, which is set to the least power of two that does it.
void bound_slices(Timeline& timeline, std::size_t most);

/// The worst first.
void sort_findings(Answers& answers);

/// `1,234`: whole numbers with groups of three digits.
[[nodiscard]] std::string grouped_digits(std::uint64_t number);

}  // namespace waymark::analysis
