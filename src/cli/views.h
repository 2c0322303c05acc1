/// Answers for reading and for programs: what `waymark profile`, `coverage`, `branches`, `loops`, `exceptions` and
/// `diff` print. None of them decodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "output.h"
#include "rows.h"
#include "waymark/analysis/answers.h"

namespace waymark::cli {

struct ViewOptions {
    std::string format = "text", metric, sort;
    std::uint64_t limit = 20;  ///< rows of text; 0: all
};
struct ProfileOptions : ViewOptions {
    std::string by = "function";
    bool inlines = false;  ///< what was inlined counts for what was called
};
struct CoverageOptions : ViewOptions {
    std::string by = "file", of = "instructions";
    bool uncovered = false;
    std::vector<std::string> only{};     ///< functions, sources or images (cli/only.h); empty: all
    std::optional<double> fail_under{};  ///< per cent
};
struct BranchOptions : ViewOptions {
    std::string function;
    bool one_sided = false;
};
struct DiffOptions : ViewOptions {
    std::string by = "self";
    // What may not be exceeded. Functions that cost less than `least` on both sides exceed nothing.
    std::optional<double> threshold{};               ///< per cent of all before; points of share
    std::optional<double> threshold_each{};          ///< per cent of what a function cost before
    std::optional<std::uint64_t> threshold_count{};  ///< so much more, of a function or in all
    std::uint64_t least = 0;
    std::vector<std::string> only{};     ///< functions, sources or images (cli/only.h); empty: all
    std::vector<std::string> renames{};  ///< `OLD=NEW`
    bool mean = false;                   ///< costs of a capture on average, rather than of all
    std::size_t captures_before = 1, captures_after = 1;
};

// Each gives the exit status, and says why if there is nothing to show.
[[nodiscard]] Status show_profile(const analysis::Answers& answers, const ProfileOptions& options, Output& out);
[[nodiscard]] Status show_coverage(const analysis::Answers& answers, const CoverageOptions& options, Output& out);
[[nodiscard]] Status show_branches(const analysis::Answers& answers, const BranchOptions& options, Output& out);
[[nodiscard]] Status show_loops(const analysis::Answers& answers, const ViewOptions& options, Output& out);
[[nodiscard]] Status show_exceptions(const analysis::Answers& answers, const ViewOptions& options, Output& out);
[[nodiscard]] Status show_diff(const analysis::Answers& before, const analysis::Answers& after,
                               const DiffOptions& options, Output& out);

// ---- what they have in common

/// The metric called `name`, in any case; empty: the first. Errors: `usage`, with those there are.
[[nodiscard]] Result<std::size_t> find_metric(const analysis::Answers& answers, std::string_view name);
/// `main.c:12`, only the last part of the path; empty if not known.
[[nodiscard]] std::string line_text(const analysis::Answers& answers, analysis::Index source, std::uint32_t line);
/// The whole path of a source file; empty if not known.
[[nodiscard]] std::string_view path_text(const analysis::Answers& answers, analysis::Index source);
/// `[unknown]` where there is none.
[[nodiscard]] std::string_view function_name(const analysis::Answers& answers, analysis::Index function);
[[nodiscard]] std::string_view image_name(const analysis::Answers& answers, analysis::Index image);
/// `main+0x10`; the address where no function is known.
[[nodiscard]] std::string place_text(const analysis::Answers& answers, analysis::Index function, std::uint64_t address);
[[nodiscard]] std::string_view kind_text(analysis::Branch::Kind kind);
/// A sentence begins with a small letter where it goes on.
[[nodiscard]] std::string costs_name(const analysis::Metric& metric);

/// What stands on top of every view: the capture, and what to know before trusting the rest.
void print_head(Output& out, const analysis::Answers& answers);
/// How far figures can be believed, a line of each kind.
void print_trust(Output& out, const analysis::Trust& trust);
/// `"capture": …, "unit": …, "metrics": […], "health": […]`, without braces.
[[nodiscard]] std::string json_head(const analysis::Answers& answers);
/// Says that rows are sorted by something else than `asked` for, and why.
void say_not_sorted(std::string_view asked, std::string_view why, std::string_view by);
/// Prints rows in the format asked for; in text, below `print_head` and `title`.
void print_rows(Output& out, const analysis::Answers& answers, const ViewOptions& options, std::string_view title,
                const Rows& rows, std::string_view json_more = {});

}  // namespace waymark::cli
