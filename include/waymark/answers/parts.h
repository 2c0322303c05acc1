/// What producers of `Answers` have in common.
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

/// Numbers by ranges of addresses. Where ranges overlap, what was added first holds.
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

/// A build ID by which to find the same build: its bytes as hexadecimal digits in lower case, without the zeros that
/// some recorders append. What is no hexadecimal number stays as it is.
[[nodiscard]] std::string build_key(std::string_view build_id);

/// Synthetic functions (tasks, interrupts, gaps), each name once.
class SyntheticTable {
public:
    explicit SyntheticTable(Answers& answers) : answers_(answers) {}
    [[nodiscard]] Index of(const std::string& name);

private:
    Answers& answers_;
    std::map<std::string, Index> known_;
};

/// Inlined calls of answers, each once.
class InlinedTable {
public:
    /// Those that are there keep their places.
    explicit InlinedTable(Answers& answers);
    /// The index of a call; what is equal is one.
    [[nodiscard]] Index of(InlinedCall call);

private:
    using Key = std::tuple<Index, Index, SharedText, Index, std::uint32_t, std::uint32_t>;
    [[nodiscard]] static Key key(const InlinedCall& call);
    Answers& answers_;
    std::map<Key, Index> known_;
};

/// Leaves no more than `most` slices, none of which lies within another: neighbours of a track are put together while
/// they are shorter than Timeline::resolution, which is set to the least power of two that does it.
void bound_slices(Timeline& timeline, std::size_t most);

/// Name of the figure of a summary that counts ranges which ran and were not decoded, as their code is not known.
inline constexpr std::string_view ranges_not_decoded = "ranges not decoded";

/// The worst first.
void sort_findings(Answers& answers);

/// What `waymark answers --only-ranges` leaves of program flow: ranges and branches, but neither instructions nor
/// calls.
[[nodiscard]] bool has_only_ranges(const Answers& answers);

}  // namespace waymark::answers
