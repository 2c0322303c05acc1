/// Samples with branch stacks as a capture (docs/branch-stacks.md): a source for each CPU, whose buffer has the stacks
/// one after another, each a part of its own with its thread and time. From perf.data, or from the text that
/// `perf script` prints.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

#include "waymark/capture/byte_file.h"
#include "waymark/capture/capture.h"
#include "waymark/capture/perf_data.h"
#include "waymark/core/result.h"

namespace waymark::capture::perf {

/// `file` is that of `data`, and stays open as long as the capture. Errors: `not_found`: there is no stack.
[[nodiscard]] Result<Capture> branch_stack_capture(const std::filesystem::path& path,
                                                   std::shared_ptr<const ByteFile> file, PerfData data);

/// What `data` says of the machine; nothing: nothing.
[[nodiscard]] std::optional<bool> is_x86_64(const PerfData& data);
/// Of a capture that does not say so. `assumed`: nothing shows it.
void set_x86_64(Capture& capture, bool x86_64, bool assumed = false);

/// Text that begins as `perf script` prints samples with brstack, or maps before them (--show-mmap-events).
[[nodiscard]] bool is_branch_text(std::string_view text);
/// Reads such text. `offset` of PerfData::branch_samples is in `unpacked_branches`. Lines of another form are counted
/// as losses, with their number. Errors: `not_found`: there is no stack; `unreadable`.
[[nodiscard]] Result<PerfData> read_branch_text(const std::filesystem::path& path);

}  // namespace waymark::capture::perf
