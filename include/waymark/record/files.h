/// Files that all recorders write.
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

/// An error such as `cannot write out/cstrace.bin: No space left on device`, by errno.
[[nodiscard]] Error cannot(const char* what, const std::filesystem::path& path);

/// Writes to an open file, and returns the number of bytes written; if not all were written, errno has the reason.
[[nodiscard]] std::size_t write_some(int file, Bytes bytes);

/// A text in a form for an ini file; a command line may contain other characters.
[[nodiscard]] std::string ini_text(std::string text);

/// Copies of the files in which programs described their generated code.
inline constexpr std::string_view perf_map_copy = "perf.map", jitdump_copy = "jit.dump";

/// Files of a DPU recording, beside its description and truth; images are numbered from 0: `image0.elf`.
inline constexpr std::string_view dpu_image_prefix = "image";
inline constexpr const char *dpu_buffer_file = "vtb.bin", *dpu_nexus_file = "nexus.bin";

/// Moves the files of an earlier recording, of any unit, and no other files in the folder, to a separate folder in
/// `folder`, until the new recording is known to contain something. Returns false if there is none. Afterwards either
/// move them back in place of newer files, or remove them; `lock_folder` does this after a recording that was killed.
/// Errors: `unreadable`: they cannot be moved, and are at their old place.
[[nodiscard]] Result<bool> set_recordings_aside(const std::filesystem::path& folder);
void take_recordings_back(const std::filesystem::path& folder);
void forget_recordings_aside(const std::filesystem::path& folder);

/// Creates the folder of a recording, if it does not exist, and locks it. `holds_recording`: whether the folder's
/// contents are `what`, which may be replaced; a folder with other contents is refused without `force`.
[[nodiscard]] Result<OutputLock> lock_folder(const std::filesystem::path& folder,
                                             const std::function<bool()>& holds_recording, const char* what,
                                             bool force);

}  // namespace waymark::record
