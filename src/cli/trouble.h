/// Sentences on what is wrong with a capture, shared by the commands.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "waymark/capture/capture.h"
#include "waymark/core/types.h"
#include "waymark/doctor/finding.h"
#include "waymark/flow/flow.h"
#include "waymark/listing/packets.h"
#include "waymark/pipeline/run.h"
#include "waymark/pipeline/session.h"

namespace waymark::cli {

/// `0x00008010`, as sentences and listings have it.
[[nodiscard]] inline std::string hex(Address address) { return fmt::format("{:#010x}", address.value); }

using doctor::gathered;

/// A sentence about a capture, with its name before it: once, if the sentence begins with the name.
[[nodiscard]] std::string about(const std::string& capture, const std::string& sentence);

/// Prints the sentences, gathered, on standard error, as `kind`: `warning`, `note`, `error`.
void say_gathered(std::string_view kind, const std::vector<std::string>& sentences);

/// Says which types of packets were asked for and not found; `one`, `many`: what the packets are called.
void say_types_not_found(const std::vector<std::string>& asked, const listing::PacketsListed& listed,
                         std::string_view one, std::string_view many = {});

/// The capture says that it holds a part of the run only (capture::missing_parts).
[[nodiscard]] bool is_part_of_run(const pipeline::Session& session);

/// Whether bytes were lost at frame level: in damaged frames, or under trace IDs of no source.
[[nodiscard]] bool lost_in_frames(const pipeline::BufferReport& buffer);

}  // namespace waymark::cli
