/// Sentences on what is wrong with a capture, shared by the commands.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "waymark/capture/capture.h"
#include "waymark/core/types.h"
#include "waymark/flow/flow.h"
#include "waymark/pipeline/run.h"
#include "waymark/pipeline/session.h"

namespace waymark::cli {

/// `0x00008010`, as sentences and listings have it.
[[nodiscard]] inline std::string hex(Address address) { return fmt::format("{:#010x}", address.value); }

/// Sentences of one kind, which differ in numbers, names in quotes and places only, are one: from the fourth on they
/// are counted, and the first three places are named. The order of the first of each kind stays. For every command that
/// lists what is wrong.
[[nodiscard]] std::vector<std::string> gathered(const std::vector<std::string>& sentences);
/// The same for problems found while a capture was read.
[[nodiscard]] std::vector<std::string> gathered(const std::vector<capture::Problem>& problems);

/// A sentence about a capture, with its name before it: once, if the sentence begins with the name.
[[nodiscard]] std::string about(const std::string& capture, const std::string& sentence);

/// Prints the sentences, gathered, on standard error, as `kind`: `warning`, `note`, `error`.
void say_gathered(std::string_view kind, const std::vector<std::string>& sentences);

/// That a buffer's file was cut: it ends inside a frame, or holds fewer bytes than were written; empty: nothing speaks
/// for it. A stream with syncs ends anywhere.
[[nodiscard]] std::string file_was_cut(const pipeline::BufferReport& buffer);

/// What was lost at frame level, besides.
[[nodiscard]] std::vector<std::string> frame_trouble(const pipeline::BufferReport& buffer);

/// That a source fell silent inside a packet while others went on; empty: it did not.
[[nodiscard]] std::string sudden_silence(const pipeline::StreamReport& stream);

/// The capture says that it holds a part of the run only (capture::missing_parts).
[[nodiscard]] bool is_part_of_run(const pipeline::Session& session);

/// Whether bytes were lost at frame level: in damaged frames, or under trace IDs of no source.
[[nodiscard]] bool lost_in_frames(const pipeline::BufferReport& buffer);

}  // namespace waymark::cli
