/// Samples with branch stacks as a capture (docs/branch-stacks.md): a source for each CPU, whose buffer contains the
/// stacks in order, each as a part with its thread and time. From perf.data, or from the output of `perf script`.
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

/// `file` is the file of `data`, and stays open as long as the capture. Errors: `not_found`: there is no stack.
[[nodiscard]] Result<Capture> branch_stack_capture(const std::filesystem::path& path,
                                                   std::shared_ptr<const ByteFile> file, PerfData data);

/// Whether `data` was recorded on x86-64; nullopt if it does not say.
[[nodiscard]] std::optional<bool> is_x86_64(const PerfData& data);
/// Sets the machine of a capture that does not state it. `assumed`: there is no evidence.
void set_x86_64(Capture& capture, bool x86_64, bool assumed = false);

/// Whether a text begins as `perf script` prints samples with brstack, or maps before them (--show-mmap-events).
[[nodiscard]] bool is_branch_text(std::string_view text);
/// Reads such text. `offset` of PerfData::branch_samples refers to `unpacked_branches`. Lines of another form are
/// counted as losses, with their line number. Errors: `not_found`: there is no stack; `unreadable`.
[[nodiscard]] Result<PerfData> read_branch_text(const std::filesystem::path& path);

}  // namespace waymark::capture::perf
