/// Tables of samples: where operations spend their cycles, which branches were taken, which cache lines are shared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/analysis/branches.h"
#include "waymark/analysis/profile.h"
#include "waymark/analysis/program.h"
#include "waymark/analysis/sharing.h"
#include "waymark/answers/table.h"

namespace waymark::analysis {

/// Name of a thread of a process.
using ThreadText = std::function<std::string(std::uint32_t pid, std::uint32_t tid)>;

/// A number of samples; few samples are marked: `1,234*`.
[[nodiscard]] answers::Cell sample_count(std::uint64_t samples);
/// `12.3% (11.9-12.7%)`.
[[nodiscard]] answers::Cell share_with_interval(std::uint64_t part, std::uint64_t all);
/// Name of a data source; `unknown (code 3)` if the core's codes are not known.
[[nodiscard]] std::string source_text(std::uint32_t midr, std::uint32_t code);
/// The function's name; the address if neither function nor file is known.
[[nodiscard]] std::string function_or_address(Program& program, std::uint32_t mapping, std::uint64_t pc);

/// The first rows of a table, and how many more there are.
struct FirstRows {
    answers::Table table;
    std::size_t left_out{};
};

/// The keys by which rows of a profile can be sorted and measured.
[[nodiscard]] std::vector<std::string> profile_sort_keys();

/// Borrows its arguments.
class ProfileTables {
public:
    ProfileTables(const Profile& profile, Program& program, ThreadText thread)
        : profile_(profile), program_(program), thread_(std::move(thread)) {}

    /// `by`: function, line, pc, file or thread. At most `most` rows; 0: all.
    [[nodiscard]] FirstRows rows(const std::string& by, const std::string& sort, std::size_t most) const;
    /// Loads by the source of their data; with `functions` also by function.
    [[nodiscard]] FirstRows sources(bool functions, std::size_t most) const;
    struct Event {
        std::string_view name, of;
        std::uint64_t Measures::*member;
        std::uint64_t among{};
    };
    [[nodiscard]] std::vector<Event> events() const;
    /// The events that occur in samples, and for each the function with the most samples.
    [[nodiscard]] answers::Table event_table() const;
    [[nodiscard]] answers::Table latency_table() const;

private:
    struct Group;
    [[nodiscard]] std::vector<Group> groups(const std::string& by) const;

    const Profile& profile_;
    Program& program_;
    ThreadText thread_;
};

/// Branches at one place, with all their targets, or `pairs` of places.
[[nodiscard]] FirstRows branch_table(const Branches& branches, Program& program, bool pairs, bool by_samples,
                                     std::size_t most);

/// Borrows its arguments.
class SharingTables {
public:
    SharingTables(Program& program, ThreadText thread) : program_(program), thread_(std::move(thread)) {}
    /// A row for each line.
    [[nodiscard]] answers::Table summary(const std::vector<SharedLine>& lines) const;
    /// A row for each offset, thread, function and line of source.
    [[nodiscard]] answers::Table places(const SharedLine& line) const;
    /// For programs: a row for each access. With `of_lines`, also its line.
    [[nodiscard]] answers::Table accesses(const std::vector<SharedLine>& lines, bool of_lines) const;
    /// Names of up to three variables in a cache line.
    [[nodiscard]] std::string variables_of(const SharedLine& line) const;

private:
    [[nodiscard]] std::string variable_of(const SharedLine& line, const LineAccess& access) const;
    [[nodiscard]] std::string place_of(const LineAccess& access, bool whole) const;

    Program& program_;
    ThreadText thread_;
};
[[nodiscard]] std::string line_text(const LineKey& key);

}  // namespace waymark::analysis
