/// Common parts of recorders: the files they write.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "waymark/core/result.h"
#include "waymark/core/types.h"
#include "waymark/record/output_lock.h"

namespace waymark::record {

/// Trace is written in pieces of this many bytes.
inline constexpr std::size_t write_bytes = 1 << 20;

/// `cannot write out/cstrace.bin: No space left on device`, by errno.
[[nodiscard]] Error cannot(const char* what, const std::filesystem::path& path);

/// Writes to an open file, and returns the number of bytes written; if it is less than all, errno has the reason.
[[nodiscard]] std::size_t write_some(int file, Bytes bytes);

/// A text in the form that an ini file can hold; a command line can hold more.
[[nodiscard]] std::string ini_text(std::string text);

/// Copies of the files in which programs described the code they generated.
inline constexpr std::string_view perf_map_copy = "perf.map", jitdump_copy = "jit.dump";

/// Files of a DPU recording, beside its description and truth; images are numbered from 0: `image0.elf`.
inline constexpr std::string_view dpu_image_prefix = "image";
inline constexpr const char *dpu_buffer_file = "vtb.bin", *dpu_nexus_file = "nexus.bin";

/// Moves what an earlier recording wrote, of any unit, and nothing else that is in the folder, to a folder of its own
/// in `folder`, until it is known that the new one has something; false: there is none. Then either take them back in
/// place of newer files, or remove them; `lock_folder` does so after a recording that was killed. Errors: `unreadable`:
/// it cannot be moved, and is where it was.
[[nodiscard]] Result<bool> set_recordings_aside(const std::filesystem::path& folder);
void take_recordings_back(const std::filesystem::path& folder);
void forget_recordings_aside(const std::filesystem::path& folder);

/// Makes the folder of a recording where there is none, and locks it. `holds_recording` says whether the folder's
/// contents are `what`, which may be replaced; with other contents the folder is refused without `force`.
[[nodiscard]] Result<OutputLock> lock_folder(const std::filesystem::path& folder,
                                             const std::function<bool()>& holds_recording, const char* what,
                                             bool force);

}  // namespace waymark::record
