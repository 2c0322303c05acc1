/// Code that ran before a recording began, if the recorder saw it: which code, and which of its branches were not
/// taken. Coverage then knows that other code did not run. A capture folder stores it as `before.txt` (docs/captures.md
/// describes the format).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/core/types.h"

namespace waymark::capture {

struct Buffer;
struct Capture;
struct Problem;
class FileAccess;

struct RanBefore {
    /// Addresses [first, first + bytes) in which all instructions ran.
    struct Stretch {
        Address first{};
        std::uint64_t bytes{};  ///< at least 1
        friend bool operator==(const Stretch&, const Stretch&) = default;
    };
    /// A branch that was not taken at some time.
    struct Passed {
        Address branch{};
        bool taken{};  ///< it was also taken at another time
        friend bool operator==(const Passed&, const Passed&) = default;
    };
    /// The beginning of the trace that the recording made. The file of another recording does not apply to a capture.
    struct Trace {
        std::uint64_t bytes{};  ///< length of the beginning, at most `most_bytes`
        std::uint32_t sum{};    ///< CRC-32 of these bytes
        static constexpr std::uint64_t most_bytes = std::uint64_t{1} << 20;
        friend bool operator==(const Trace&, const Trace&) = default;
    };
    Trace trace;
    std::uint64_t instructions{};    ///< number of instructions executed
    std::vector<Stretch> code{};     ///< ascending, without overlaps
    std::vector<Passed> branches{};  ///< ascending; other branches of `code` were always taken
    friend bool operator==(const RanBefore&, const RanBefore&) = default;

    [[nodiscard]] bool holds(Address address) const;
    /// nullopt if there is no such branch, or it was always taken.
    [[nodiscard]] const Passed* passed(Address branch) const;
};

/// The name of the file in a capture folder.
inline constexpr std::string_view ran_before_file = "before.txt";
/// The version of the format that is written; readers refuse other versions. Version 1 did not state the trace.
inline constexpr unsigned ran_before_version = 2;
/// A longer file is refused: it cannot be such a file.
inline constexpr std::uint64_t max_ran_before_bytes = std::uint64_t{64} << 20;

/// The first `most` of a buffer's bytes, unpacked, or all if there are fewer. Errors: `open_buffer` fails, or the
/// buffer cannot be read.
[[nodiscard]] Result<RanBefore::Trace> trace_of(const Buffer& buffer,
                                                std::uint64_t most = RanBefore::Trace::most_bytes);
/// The text of `before.txt`, which read_ran_before() reads back.
[[nodiscard]] std::string to_text(const RanBefore& ran);
/// Parses that text. A malformed line gives a problem with `file` and the line number, and nothing is known: a missing
/// line would look like code that did not run.
[[nodiscard]] std::optional<RanBefore> read_ran_before(std::string_view text, const std::filesystem::path& file,
                                                       std::vector<Problem>& problems);
/// The same for the file in a capture folder; nullopt if there is none.
[[nodiscard]] std::optional<RanBefore> read_ran_before(const std::filesystem::path& folder, const FileAccess& files,
                                                       std::vector<Problem>& problems);
/// The code that ran before the only part of a snapshot that states where it begins (Buffer::begins). nullopt: the
/// snapshot is not the one of its folder, not exactly one part states its beginning, or there is no file for this
/// trace. Errors in the file were reported when the snapshot was read.
[[nodiscard]] std::optional<RanBefore> ran_before(const Capture& snapshot);
/// Reports a problem if the file in the snapshot's folder is about another trace.
void check_ran_before(Capture& snapshot);

}  // namespace waymark::capture
