/// What lcov and Cobertura say of a source file.
#pragma once

#include <string>
#include <vector>

#include "waymark/answers/answers.h"
#include "waymark/core/result.h"
#include "waymark/exports/covered_sources.h"
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
    std::string name{};                       ///< as in the symbol table, or for reading where that is of a lambda
    std::uint32_t line{};                     ///< the first with code: readers want a count for it
    std::uint32_t last{};                     ///< the last line with code of its own
    std::uint64_t entries{};                  ///< at least 1 if any of its code ran, also where it was inlined
    std::uint64_t lines{}, lines_hit{};       ///< lines with code of the function
    answers::Index function = answers::none;  ///< none: it exists only inlined
};

/// A direction of a conditional branch that ran, as BRDA records of lcov name it.
struct CoveredDirection {
    std::uint32_t line{}, block{};  ///< block: the branch's number in its line
    bool not_taken{};
};

struct CoveredFile {
    answers::Index source{};
    std::string path;  ///< with prefixes replaced
    std::string root;  ///< the source root it lies below; empty: none was given
    std::string name;  ///< relative to the root, else the path
    std::vector<answers::Line> lines;
    std::vector<CoveredFunction> functions;        ///< by line
    std::vector<const answers::Branch*> branches;  ///< conditional ones, by line, then address
    std::vector<std::uint32_t> not_observed;       ///< lines
    std::vector<CoveredDirection> directions_not_observed;
    [[nodiscard]] std::uint64_t lines_hit() const;
    [[nodiscard]] std::uint64_t branches_hit() const;  ///< outcomes, of two for each branch
    /// Whether lcov 2.2 and later contradict the file unless it has the last lines of functions: to them a function
    /// ends before the next one, and has not run if one of those lines has.
    [[nodiscard]] bool needs_end_lines() const;
};

struct Coverage {
    std::vector<CoveredFile> files;    ///< with lines, by source
    std::vector<std::string> headers;  ///< of libraries, which were left out as nobody asked for them
    [[nodiscard]] std::vector<std::string> notes() const;  ///< what a reader of the coverage has to know
};

/// Errors as of `write_lcov`.
[[nodiscard]] Result<Coverage> coverage_of(const answers::Answers& answers, const CoveredSources& options);

}  // namespace waymark::exports
