/// The results of `waymark profile`, `coverage`, `branches`, `loops`, `exceptions` and `diff`: tables of answers, with
/// remarks. None of these functions decodes trace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "waymark/answers/answers.h"
#include "waymark/answers/own_code.h"
#include "waymark/core/result.h"

namespace waymark::answers {

struct ViewOptions {
    std::string metric, sort;
    bool strict = false;  ///< a gate fails, instead of giving a warning, if its subject is not known
};
struct ProfileOptions : ViewOptions {
    std::string by = "function";
    std::vector<std::string> only{};   ///< functions, sources or images (answers/only.h); empty: all
    CodeKind code = CodeKind::system;  ///< only code of the kinds up to this one
    bool inlines = false;              ///< inlined code counts for the callee
    bool interrupts = true;            ///< inclusive costs contain what interrupts and signals ran
};
struct CoverageOptions : ViewOptions {
    std::string by = "file", of = "instructions";
    bool uncovered = false;
    std::vector<std::string> only{};     ///< functions, sources or images (answers/only.h); empty: all
    CodeKind code = CodeKind::system;    ///< as of ProfileOptions
    std::optional<double> fail_under{};  ///< per cent
    bool entered = false;                ///< the answers only have functions that were entered
};
struct LoopOptions : ViewOptions {
    std::vector<std::string> only{};  ///< as of ProfileOptions
    CodeKind code = CodeKind::system;
};
struct BranchOptions : ViewOptions {
    std::string function;
    std::vector<std::string> only{};  ///< as of ProfileOptions
    CodeKind code = CodeKind::system;
    bool one_sided = false;
};
struct CallOptions : ViewOptions {
    std::string function{};   ///< a word as for --only
    bool callees = true;      ///< lengths of calls include callees
    bool interrupts = true;   ///< and exceptions in between
    std::uint64_t slowest{};  ///< rows; 0: all
};
struct DiffOptions : ViewOptions {
    std::string by = "self";
    // Limits of growth. Functions that cost less than `least` on both sides are ignored.
    std::optional<double> threshold{};               ///< in per cent of the total before; in points of share
    std::optional<double> threshold_each{};          ///< in per cent of the function's own cost before
    std::optional<std::uint64_t> threshold_count{};  ///< in absolute numbers, for a function or in total
    std::uint64_t least = 0;
    std::vector<std::string> only{};     ///< functions, sources or images (answers/only.h); empty: all
    std::vector<std::string> renames{};  ///< `OLD=NEW`
    bool mean = false;                   ///< mean costs of a capture, instead of the sum over all
    bool changed_only = false;           ///< omits functions whose exact costs are equal
};

/// A table with all rows, sorted, and the texts that belong to it.
struct View {
    Table table{};  ///< with a title
    using Sums = std::vector<std::pair<std::string, std::uint64_t>>;
    std::vector<std::pair<std::string, Sums>> sums{};  ///< sums of all rows, by name, for programs
    std::vector<std::string> above{}, below{};         ///< lines above the title and below the table, for readers
    std::vector<Finding> remarks{};                    ///< remarks on what was requested; `bad`: a gate fails
    void remark(Finding::Severity severity, std::string what) { remarks.push_back({severity, std::move(what)}); }
    /// The subject of a gate is not known: adds a warning, or a failure under --strict.
    void doubt(bool strict, std::string what) {
        if (strict) what += " (--strict)";
        remark(strict ? Finding::Severity::bad : Finding::Severity::warning, std::move(what));
    }
};

// Errors: `usage`: a requested item does not exist; `not_found`: there is nothing to show, with the reason.
[[nodiscard]] Result<View> profile_view(const Answers& answers, const ProfileOptions& options);
[[nodiscard]] Result<View> coverage_view(const Answers& answers, const CoverageOptions& options);
[[nodiscard]] Result<View> branch_view(const Answers& answers, const BranchOptions& options);
[[nodiscard]] Result<View> loop_view(const Answers& answers, const LoopOptions& options);
/// How exact lengths of whole calls are on a timeline with this resolution: `exact`, `at least` or `estimate`.
[[nodiscard]] std::string_view call_bound(const Answers& answers, std::uint64_t resolution);
/// The single calls of a function, the slowest first, from the timeline.
[[nodiscard]] Result<View> call_view(const Answers& answers, const CallOptions& options);
[[nodiscard]] Result<View> exception_view(const Answers& answers, const ViewOptions& options);

/// The differences, function by function.
struct DiffView {
    View view{};
    Metric metric{};
    std::uint64_t before{}, after{};                ///< sums of all
    std::uint64_t chosen_before{}, chosen_after{};  ///< costs of the functions that --only selects
};
[[nodiscard]] Result<DiffView> compare(const Answers& before, const Answers& after, const DiffOptions& options);

// Titles of the table of loops, for all commands that show it.
inline constexpr std::string_view hardware_loops = "hardware loops: runs that jump back, and iterations of the body";
inline constexpr std::string_view loops_by_flow = "loops: entries, and iterations (executions of the head)";
inline constexpr std::string_view no_hardware_loop = "the trace contains no loop";

// ---- names of things

/// The metric called `name`, in any case; if empty, the first. Errors: `usage`, with the existing names.
[[nodiscard]] Result<std::size_t> find_metric(const Answers& answers, std::string_view name);
/// `main.c:12`, only the last part of the path; empty if not known.
[[nodiscard]] std::string line_text(const Answers& answers, Index source, std::uint32_t line);
/// The whole path of a source file; empty if not known.
[[nodiscard]] std::string_view path_text(const Answers& answers, Index source);
/// The function's name; `[unknown]` if there is none.
[[nodiscard]] std::string_view function_name(const Answers& answers, Index function);
[[nodiscard]] std::string_view image_name(const Answers& answers, Index image);
/// Text such as `main+0x10`; the address if no function is known.
[[nodiscard]] std::string place_text(const Answers& answers, Index function, std::uint64_t address);
/// `samples (estimate)`.
[[nodiscard]] std::string costs_name(const Metric& metric);
/// The text of a finding, and the number of captures in a sum that have it.
[[nodiscard]] std::string sentence_of(const Finding& finding);
/// How far figures can be trusted, a line for each kind: `exact every figure`.
[[nodiscard]] std::vector<std::string> trust_lines(const Trust& trust);
/// The note of a metric, to follow its name: `cycles: each count …`; empty if it has none.
[[nodiscard]] std::string metric_note(const Answers& answers, std::string_view metric);
/// A sentence: rows are not sorted by `asked`, with the reason.
[[nodiscard]] std::string not_sorted(std::string_view asked, std::string_view why, std::string_view by);

}  // namespace waymark::answers
