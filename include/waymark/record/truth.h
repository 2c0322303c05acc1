/// The truth beside a recording: the code that was really executed, to check a decoder. For each source, `truth.txt`
/// has the number of ranges and instructions, and a hash that depends on their order, as in `flow::Totals`. On request
/// a file for each source has every range.
///
/// A range is the code from one waypoint up to and including the next one, or up to an exception. If the unit divides a
/// long one in two (docs/spec/pft.md, 5.3), a comparison joins the pieces.
#pragma once

#include <cstdint>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/core/types.h"

namespace waymark::record {

/// One range that executed.
struct TruthRange {
    std::uint64_t start{}, end{};
    std::uint32_t instructions{};
    bool lost{};  ///< the unit's FIFO was full: no trace of the range can be expected
    friend bool operator==(const TruthRange&, const TruthRange&) = default;
};

inline constexpr std::uint64_t truth_hash_start = 1469598103934665603U;
/// The hash of flow::Totals, extended by one range.
[[nodiscard]] constexpr std::uint64_t truth_hash(std::uint64_t hash, std::uint64_t start, std::uint64_t end) {
    constexpr std::uint64_t prime = 1099511628211U;
    return ((hash ^ start) * prime ^ end) * prime;
}

/// Sums over one source of a capture.
struct SourceTruth {
    std::string source;
    std::uint64_t ranges{}, instructions{};  ///< ranges and instructions to be found in the trace
    std::uint64_t hash = truth_hash_start;   ///< over these
    std::uint64_t lost_ranges{}, lost_instructions{};
    /// Code that ran after the last waypoint, which no unit traces.
    std::uint64_t unfinished_instructions{};
    std::string file{};  ///< file with every range, relative to the capture; empty: there is none
    bool wrapped{};      ///< its buffer did not hold all: only the end can be found in the trace
    bool stopped{};      ///< its buffer stopped before the source did: the end is not in the trace
    /// Ranges that the programming of the unit excluded (flow::SelectedBlocks).
    std::uint64_t filtered_ranges{}, filtered_instructions{};

    void add(const TruthRange& range) {
        if (range.lost) {
            ++lost_ranges;
            lost_instructions += range.instructions;
            return;
        }
        ++ranges;
        instructions += range.instructions;
        hash = truth_hash(hash, range.start, range.end);
    }
    friend bool operator==(const SourceTruth&, const SourceTruth&) = default;
};

struct Truth {
    bool complete{};  ///< the recording came to its end; else it was cut off and the sums may be incomplete
    std::deque<SourceTruth> sources;  ///< its elements stay in place while others are added
    friend bool operator==(const Truth&, const Truth&) = default;
};

inline constexpr const char* truth_file = "truth.txt";

[[nodiscard]] std::string to_text(const Truth& truth);
/// Errors: `bad_format`; the message names the line.
[[nodiscard]] Result<Truth> truth_from_text(const std::string& text, const std::string& name);
/// Errors: `not_found`, `unreadable`, `bad_format`.
[[nodiscard]] Result<Truth> read_truth(const std::filesystem::path& folder);
/// The same from one file, such as the file next to perf.data (perf_truth_file).
[[nodiscard]] Result<Truth> read_truth_file(const std::filesystem::path& path);

/// Writes ranges: a number for each distinct range, in LEB128. 0 introduces a new range (start, bytes, instructions),
/// which receives the next number, counted from 2; 1 means that the next range was lost.
class RangeWriter {
public:
    /// Errors: `unreadable`.
    [[nodiscard]] static Result<std::unique_ptr<RangeWriter>> create(const std::filesystem::path& path);
    void add(const TruthRange& range);
    /// Writes buffered bytes; returns false if writing has failed.
    bool flush();

private:
    struct Close {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    struct Key {
        std::uint64_t start, end;
        friend bool operator==(const Key&, const Key&) = default;
    };
    struct Hash {
        std::size_t operator()(const Key& k) const { return k.start * 0x9e3779b97f4a7c15U ^ k.end; }
    };
    void number(std::uint64_t value);

    struct Recent {
        std::uint64_t start, end, number;  ///< number 0: unused
    };
    static constexpr unsigned recent_bits = 12, recent_shift = 64 - recent_bits;

    std::unique_ptr<std::FILE, Close> file_;
    std::vector<Recent> recent_ = std::vector<Recent>(std::size_t{1} << recent_bits);
    std::unordered_map<Key, std::uint64_t, Hash> numbers_;
    std::vector<std::uint8_t> buffer_;
    bool failed_ = false;
};

/// Reads ranges back, in constant memory except for one row for each distinct range.
class RangeReader {
public:
    /// Errors: `not_found`, `unreadable`.
    [[nodiscard]] static Result<RangeReader> open(const std::filesystem::path& path);
    /// The next range; nullopt at the end, or at the place where the file was cut off.
    [[nodiscard]] std::optional<TruthRange> next();

private:
    struct Close {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    std::optional<std::uint64_t> number();
    std::unique_ptr<std::FILE, Close> file_;
    std::vector<TruthRange> known_;
};

}  // namespace waymark::record
