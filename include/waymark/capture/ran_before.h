/// What ran before a recording began, where the recorder saw it run: which code, and which of its branches were not
/// taken. Coverage then says of other code that it did not run. A capture folder holds it as `before.txt`
/// (docs/captures.md describes the format).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/types.h"

namespace waymark::capture {

struct Capture;
struct Problem;
class FileAccess;

struct RanBefore {
    /// Addresses [first, first + bytes) whose instructions all ran.
    struct Stretch {
        Address first{};
        std::uint64_t bytes{};  ///< at least 1
        friend bool operator==(const Stretch&, const Stretch&) = default;
    };
    /// A branch after which execution went on at the next instruction.
    struct Passed {
        Address branch{};
        bool taken{};  ///< another time it was taken
        friend bool operator==(const Passed&, const Passed&) = default;
    };
    std::uint64_t instructions{};    ///< how many ran, each as often as it did
    std::vector<Stretch> code{};     ///< ascending, apart from each other
    std::vector<Passed> branches{};  ///< ascending; another branch of `code` was taken each time
    friend bool operator==(const RanBefore&, const RanBefore&) = default;

    [[nodiscard]] bool holds(Address address) const;
    /// Nothing: none of this address, or it was always taken.
    [[nodiscard]] const Passed* passed(Address branch) const;
};

/// The name of the file in a capture folder.
inline constexpr std::string_view ran_before_file = "before.txt";
/// The version of the format that is written; others are refused.
inline constexpr unsigned ran_before_version = 1;
/// A file longer than this is refused: it is something else.
inline constexpr std::uint64_t max_ran_before_bytes = std::uint64_t{64} << 20;

/// The text of `before.txt`. Reading it gives what was written.
[[nodiscard]] std::string to_text(const RanBefore& ran);
/// Reads that text. With one line that cannot be understood nothing is known, and there is a problem with `file` and
/// its number: a line that is missing would be code that did not run.
[[nodiscard]] std::optional<RanBefore> read_ran_before(std::string_view text, const std::filesystem::path& file,
                                                       std::vector<Problem>& problems);
/// The same of the file in a capture folder; nothing where there is none.
[[nodiscard]] std::optional<RanBefore> read_ran_before(const std::filesystem::path& folder, const FileAccess& files,
                                                       std::vector<Problem>& problems);
/// What ran before the only part of a snapshot that says where it begins (Buffer::begins); nothing: it is no snapshot
/// that its folder names, no part says so, several do, or the file does not say it. Reading the snapshot has reported
/// what is wrong with that file.
[[nodiscard]] std::optional<RanBefore> ran_before(const Capture& snapshot);

}  // namespace waymark::capture
