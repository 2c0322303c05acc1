/// Gathers a plan's facts about a capture, without decoding it.
#pragma once

#include <cstdint>
#include <string>

#include "waymark/core/result.h"
#include "waymark/fleet/manifest.h"

namespace waymark::fleet {

/// Size and state of the files of a capture.
struct FileState {
    std::uint64_t bytes{};
    std::int64_t changed{};  ///< ns since 1970
    std::string sample{};
};

/// Measures a capture: name, size and four blocks of 4096 bytes (the first, the last, two between) of each of its files
/// become one hash. Errors: `not_found`, `unreadable`.
[[nodiscard]] Result<FileState> file_state(const std::string& capture);

/// Hash of all bytes of all files of a capture, in the order of their names. Errors: as above.
[[nodiscard]] Result<std::string> whole_hash(const std::string& capture);

/// Opens a capture and reads its description: unit, bytes of trace, files that ran. With `bare` set, a bare trace file
/// is accepted (options of the job describe it). Errors: the errors of the readers; `bad_format`: not a capture.
[[nodiscard]] Result<PlannedCapture> survey_capture(const std::string& path, bool bare);

}  // namespace waymark::fleet
