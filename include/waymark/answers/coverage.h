/// Counts of code that ran, did not run, or was not observed, as in `waymark coverage`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/answers/answers.h"
#include "waymark/answers/own_code.h"

namespace waymark::answers {

/// Numbers of items that ran, did not run, or were not observed.
struct CoverageClasses {
    std::uint64_t executed{}, not_executed{}, not_observed{};
    void add(Seen seen) {
        ++(seen == Seen::executed ? executed : seen == Seen::not_executed ? not_executed : not_observed);
    }
    [[nodiscard]] std::uint64_t all() const { return executed + not_executed + not_observed; }
};

/// Counts for a file, a function or an image. The path lives as long as the answers.
struct CoverageRow {
    std::string name;
    std::string_view path{};
    Index function = none, source = none, image = none;  ///< none if the row has another subject
    CoverageClasses instructions{}, lines{}, directions{};
    CodeKind kind = CodeKind::system;  ///< the first kind of which the row has code
};

struct CoverageCounts {
    std::vector<CoverageRow> rows;
    CoverageRow all;  ///< a line counts once, even if several rows contain its code
    std::size_t functions{}, functions_that_ran{};
    /// How `functions_that_ran` relates to the run: `at least`, `about`; empty: it is exact.
    std::string_view bound{};
    /// Images that may contain more code than is counted, since nothing says where it is.
    std::vector<std::string> not_whole;
};

/// `by`: file, function or image. `of_functions`: which functions count; empty: all.
[[nodiscard]] CoverageCounts coverage_counts(const Answers& answers, const std::string& by,
                                             const std::vector<bool>& of_functions = {});

/// A stretch of code that did not run or was not observed, or a direction of an executed branch.
struct Uncovered {
    enum class What : std::uint8_t { code, never_taken, always_taken };
    Seen seen{};
    What what{};
    std::uint64_t instructions{}, begin{}, end{};  ///< 0 instructions: a direction; end 0: not known
    Index function = none, source = none;
    std::uint32_t first_line{}, last_line{};  ///< 0: not known
};
[[nodiscard]] std::vector<Uncovered> uncovered_code(const Answers& answers);

}  // namespace waymark::answers
