/// The contents of lcov and Cobertura files for a source file.
#pragma once

#include <string>
#include <vector>

#include "waymark/answers/answers.h"
#include "waymark/core/result.h"
#include "waymark/exports/covered_sources.h"
#include "waymark/exports/export.h"

namespace waymark::exports {

/// The count of a line; at least 1 if the line was executed.
[[nodiscard]] inline std::uint64_t hits(const answers::Line& line) {
    if (line.seen != answers::Seen::executed) return 0;
    return line.times == 0 ? 1 : line.times;
}

/// Number of outcomes of a conditional branch that were seen: 0 to 2.
[[nodiscard]] inline std::uint64_t outcomes(const answers::Branch& branch) {
    return std::uint64_t{branch.taken != 0} + std::uint64_t{branch.not_taken != 0};
}

struct CoveredFunction {
    std::string name{};                       ///< symbol name; for a lambda its readable name
    std::uint32_t line{};                     ///< the first with code: readers want a count for it
    std::uint32_t last{};                     ///< the last line with code of its own
    std::uint64_t entries{};                  ///< at least 1 if any of its code ran, including inlined copies
    std::uint64_t lines{}, lines_hit{};       ///< lines with code of the function
    answers::Index function = answers::none;  ///< none: exists only inlined
};

/// A direction of an executed conditional branch, as in BRDA records of lcov.
struct CoveredDirection {
    std::uint32_t line{}, block{};  ///< block: the branch's number in its line
    bool not_taken{};
};

struct CoveredFile {
    answers::Index source{};
    std::string path;  ///< with prefixes replaced
    std::string root;  ///< the source root that contains it; empty if none was given
    std::string name;  ///< relative to the root, or the whole path
    std::vector<answers::Line> lines;
    std::vector<CoveredFunction> functions;        ///< by line
    std::vector<const answers::Branch*> branches;  ///< conditional branches, by line, then address
    std::vector<std::uint32_t> not_observed;       ///< lines
    std::vector<CoveredDirection> directions_not_observed;
    [[nodiscard]] std::uint64_t lines_hit() const;
    [[nodiscard]] std::uint64_t branches_hit()
        const;  ///< number of outcomes that were seen, out of two for each branch
    /// Whether lcov 2.2 and later contradict the file unless it has the last lines of functions: these versions end a
    /// function before the next one, and treat it as not run if one of the lines in between did not run.
    [[nodiscard]] bool needs_end_lines() const;
};

struct Coverage {
    std::vector<CoveredFile> files;    ///< files with lines, by source
    std::vector<std::string> headers;  ///< headers of libraries, which were omitted because no option names them
    [[nodiscard]] std::vector<std::string> notes() const;  ///< what a reader of the coverage should know
};

/// Same errors as `write_lcov`.
[[nodiscard]] Result<Coverage> coverage_of(const answers::Answers& answers, const CoveredSources& options);

}  // namespace waymark::exports
