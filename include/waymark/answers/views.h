/// What `waymark profile`, `coverage`, `branches`, `loops`, `exceptions` and `diff` show: tables of answers, and what
/// to say with them. None of them decodes.
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
    bool strict = false;  ///< a gate fails, rather than to warn, where what it is about is not known
};
struct ProfileOptions : ViewOptions {
    std::string by = "function";
    std::vector<std::string> only{};   ///< functions, sources or images (answers/only.h); empty: all
    CodeKind code = CodeKind::system;  ///< and only code of the kinds up to this one
    bool inlines = false;              ///< what was inlined counts for what was called
    bool interrupts = true;            ///< with callees: with what interrupts and signals ran
};
struct CoverageOptions : ViewOptions {
    std::string by = "file", of = "instructions";
    bool uncovered = false;
    std::vector<std::string> only{};     ///< functions, sources or images (answers/only.h); empty: all
    CodeKind code = CodeKind::system;    ///< as of ProfileOptions
    std::optional<double> fail_under{};  ///< per cent
    bool entered = false;                ///< the answers hold only functions that were entered
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
    std::string function{};   ///< as a function of --only
    bool callees = true;      ///< calls last with what they called
    bool interrupts = true;   ///< and with what exceptions ran meanwhile
    std::uint64_t slowest{};  ///< rows; 0: all
};
struct DiffOptions : ViewOptions {
    std::string by = "self";
    // What may not be exceeded. Functions that cost less than `least` on both sides exceed nothing.
    std::optional<double> threshold{};               ///< per cent of all before; points of share
    std::optional<double> threshold_each{};          ///< per cent of what a function cost before
    std::optional<std::uint64_t> threshold_count{};  ///< so much more, of a function or in all
    std::uint64_t least = 0;
    std::vector<std::string> only{};     ///< functions, sources or images (answers/only.h); empty: all
    std::vector<std::string> renames{};  ///< `OLD=NEW`
    bool mean = false;                   ///< costs of a capture on average, rather than of all
    std::size_t captures_before = 1, captures_after = 1;
    bool changed_only = false;  ///< functions whose exact costs are the same have no rows
};

/// A table with all rows, sorted, and what belongs to it.
struct View {
    Table table{};  ///< its title says what it shows
    using Sums = std::vector<std::pair<std::string, std::uint64_t>>;
    std::vector<std::pair<std::string, Sums>> sums{};  ///< of all rows, by name, for programs
    std::vector<std::string> above{}, below{};         ///< lines above the title and below the table, for readers
    std::vector<Finding> remarks{};                    ///< about what was asked for; bad: a gate fails
    void remark(Finding::Severity severity, std::string what) { remarks.push_back({severity, std::move(what)}); }
    /// What a gate asks about is not known: a warning, or under --strict what it fails for.
    void doubt(bool strict, std::string what) {
        if (strict) what += " (--strict)";
        remark(strict ? Finding::Severity::bad : Finding::Severity::warning, std::move(what));
    }
};

// Errors: `usage`: what is asked for is not there; `not_found`: there is nothing to show, and why.
[[nodiscard]] Result<View> profile_view(const Answers& answers, const ProfileOptions& options);
[[nodiscard]] Result<View> coverage_view(const Answers& answers, const CoverageOptions& options);
[[nodiscard]] Result<View> branch_view(const Answers& answers, const BranchOptions& options);
[[nodiscard]] Result<View> loop_view(const Answers& answers, const LoopOptions& options);
/// What the lengths of whole calls are on a timeline of this resolution: `exact`, `at least` or `estimate`.
[[nodiscard]] std::string_view call_bound(const Answers& answers, std::uint64_t resolution);
/// The single calls of a function, the slowest first, from the timeline.
[[nodiscard]] Result<View> call_view(const Answers& answers, const CallOptions& options);
[[nodiscard]] Result<View> exception_view(const Answers& answers, const ViewOptions& options);

/// What changed, function by function.
struct DiffView {
    View view{};
    Metric metric{};
    std::uint64_t before{}, after{};                ///< sums of all
    std::uint64_t chosen_before{}, chosen_after{};  ///< of the functions that --only asks for
};
[[nodiscard]] Result<DiffView> compare(const Answers& before, const Answers& after, const DiffOptions& options);

// Titles of loops, for all that show some.
inline constexpr std::string_view hardware_loops = "hardware loops: runs that jump back, and iterations of the body";
inline constexpr std::string_view loops_by_flow = "loops: entries, and iterations (executions of the head)";
inline constexpr std::string_view no_hardware_loop = "the trace contains no loop";

// ---- names of things

/// The metric called `name`, in any case; empty: the first. Errors: `usage`, with those there are.
[[nodiscard]] Result<std::size_t> find_metric(const Answers& answers, std::string_view name);
/// `main.c:12`, only the last part of the path; empty if not known.
[[nodiscard]] std::string line_text(const Answers& answers, Index source, std::uint32_t line);
/// The whole path of a source file; empty if not known.
[[nodiscard]] std::string_view path_text(const Answers& answers, Index source);
/// `[unknown]` where there is none.
[[nodiscard]] std::string_view function_name(const Answers& answers, Index function);
[[nodiscard]] std::string_view image_name(const Answers& answers, Index image);
/// `main+0x10`; the address where no function is known.
[[nodiscard]] std::string place_text(const Answers& answers, Index function, std::uint64_t address);
/// `samples (estimate)`.
[[nodiscard]] std::string costs_name(const Metric& metric);
/// What a finding says, and how many captures of a sum say it.
[[nodiscard]] std::string sentence_of(const Finding& finding);
/// How far figures can be believed, a line of each kind: `exact     every figure`.
[[nodiscard]] std::vector<std::string> trust_lines(const Trust& trust);
/// `cycles: each count …`: the note of a metric, by its name; empty: it has none.
[[nodiscard]] std::string metric_note(const Answers& answers, std::string_view metric);
/// That rows are sorted by something else than `asked` for, and why.
[[nodiscard]] std::string not_sorted(std::string_view asked, std::string_view why, std::string_view by);

}  // namespace waymark::answers
