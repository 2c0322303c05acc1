/// Shared code of producers of `Answers`.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "waymark/answers/answers.h"
#include "waymark/core/numbers.h"

namespace waymark::answers {

/// The number of captures in a sum; 1 for a single capture. A capture that was added twice counts twice.
[[nodiscard]] std::uint64_t captures_in(const Answers& answers);
/// A note about each capture that was added several times: its counts are in the sum as often.
[[nodiscard]] std::vector<Finding> captures_added_again(const Answers& sum);

/// Source files of answers, without duplicates.
class SourceTable {
public:
    explicit SourceTable(Answers& answers) : answers_(answers) {}
    /// The index of a path; `none` for an empty one.
    [[nodiscard]] Index of(const std::string& path);

private:
    Answers& answers_;
    std::map<std::string, Index> known_;
};

/// Numbers by ranges of addresses. Where ranges overlap, the first one added applies.
class AddressRanges {
public:
    void add(std::uint64_t first, std::uint64_t bytes, std::size_t number);
    /// O(log n).
    [[nodiscard]] std::optional<std::size_t> find(std::uint64_t address) const;

private:
    struct Range {
        std::uint64_t end{};
        std::size_t number{};
    };
    std::map<std::uint64_t, Range> ranges_;  // by first address; they do not overlap
};

/// A normalised build ID: lower-case hexadecimal digits, without the zeros that some recorders append. A text that is
/// not hexadecimal stays unchanged.
[[nodiscard]] std::string build_key(std::string_view build_id);

/// Synthetic functions (tasks, interrupts, gaps), one for each name.
class SyntheticTable {
public:
    explicit SyntheticTable(Answers& answers) : answers_(answers) {}
    [[nodiscard]] Index of(const std::string& name);

private:
    Answers& answers_;
    std::map<std::string, Index> known_;
};

/// Inlined calls of answers, without duplicates.
class InlinedTable {
public:
    /// Existing calls keep their indices.
    explicit InlinedTable(Answers& answers);
    /// The index of a call; equal calls have one index.
    [[nodiscard]] Index of(InlinedCall call);

private:
    using Key = std::tuple<Index, Index, SharedText, Index, std::uint32_t, std::uint32_t>;
    [[nodiscard]] static Key key(const InlinedCall& call);
    Answers& answers_;
    std::map<Key, Index> known_;
};

/// Reduces the slices to at most `most`, without nesting: neighbours on a track are merged while they are shorter than
/// Timeline::resolution, which is set to the smallest sufficient power of two.
void bound_slices(Timeline& timeline, std::size_t most);

/// Name of the figure that says how the capture was recorded: by which program, with which command.
inline constexpr std::string_view recorded_figure = "recorded";
/// Name of the figure in a summary that counts ranges which ran but were not decoded, because their code is not known.
inline constexpr std::string_view ranges_not_decoded = "ranges not decoded";

/// The worst first.
void sort_findings(Answers& answers);

/// Whether the answers have only what `waymark answers --only-ranges` keeps: ranges and branches, but neither
/// instructions nor calls.
[[nodiscard]] bool has_only_ranges(const Answers& answers);

}  // namespace waymark::answers
