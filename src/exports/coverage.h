/// What lcov and Cobertura say of a source file.
#pragma once

#include <span>
#include <vector>

#include "waymark/answers/answers.h"
#include "waymark/core/result.h"
#include "waymark/exports/export.h"

namespace waymark::exports {

/// Lines that were executed count at least 1.
[[nodiscard]] inline std::uint64_t hits(const answers::Line& line) {
    if (line.seen != answers::Seen::executed) return 0;
    return line.times == 0 ? 1 : line.times;
}

/// How many of a conditional branch's two outcomes were seen.
[[nodiscard]] inline std::uint64_t outcomes(const answers::Branch& branch) {
    return std::uint64_t{branch.taken != 0} + std::uint64_t{branch.not_taken != 0};
}

struct CoveredFunction {
    answers::Index function{};
    std::uint32_t line{};
    std::uint64_t entries{};             ///< at least 1 if any of its code ran
    std::uint64_t lines{}, lines_hit{};  ///< with code of it
};

struct CoveredFile {
    answers::Index source{};
    std::span<const answers::Line> lines;
    std::vector<CoveredFunction> functions;        ///< by line
    std::vector<const answers::Branch*> branches;  ///< conditional ones, by line, then address
    std::vector<std::uint32_t> not_observed;       ///< lines
    [[nodiscard]] std::uint64_t lines_hit() const;
    [[nodiscard]] std::uint64_t branches_hit() const;  ///< outcomes, of two for each branch
};

/// Files with lines, by source. Errors as of `write_lcov`.
[[nodiscard]] Result<std::vector<CoveredFile>> covered_files(const answers::Answers& answers);

/// What a reader of coverage has to know.
void note_coverage(const std::vector<CoveredFile>& files, ExportReport& report);

}  // namespace waymark::exports
