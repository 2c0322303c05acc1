/// Sentences on what is wrong with a capture, shared by the commands.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "output.h"
#include "waymark/capture/capture.h"
#include "waymark/core/types.h"
#include "waymark/doctor/finding.h"
#include "waymark/flow/flow.h"
#include "waymark/listing/packets.h"
#include "waymark/pipeline/damage.h"
#include "waymark/pipeline/run.h"
#include "waymark/pipeline/session.h"
#include "waymark/pipeline/several.h"

namespace waymark::cli {

/// `0x00008010`, as sentences and listings have it.
[[nodiscard]] inline std::string hex(Address address) { return fmt::format("{:#010x}", address.value); }

using doctor::gathered;

/// A sentence about a capture, with its name before it: once, if the sentence begins with the name.
[[nodiscard]] std::string about(const std::string& capture, const std::string& sentence);

/// Behind the reason why nothing was decoded: `. waymark doctor CAPTURE says: …`, the first error or warning and what
/// to do. Nothing for standard input, and where doctor itself fails.
[[nodiscard]] std::string doctor_says(const std::string& capture, const std::vector<std::string>& images);

/// Prints the sentences, gathered, on standard error, as `kind`: `warning`, `note`, `error`.
void say_gathered(std::string_view kind, const std::vector<std::string>& sentences);

/// Says what a listing of packets lacks: which types were asked for and not found. `one`, `many`: what the packets are
/// called. The status: `nothing` if none of the types was found.
[[nodiscard]] ExitStatus say_types_not_found(const std::vector<std::string>& asked,
                                             const listing::PacketsListed& listed, std::string_view one,
                                             std::string_view many = {});

/// Warnings of what was lost, below a listing, which shows single gaps alone. A buffer that was cut is an error of
/// reading, and how a trace begins and where a FIFO overflowed is in the listing.
void say_damage(const std::vector<pipeline::Damage>& damage);
/// The same of packets of a unit that is no trace macrocell.
void say_gaps(const listing::PacketsListed& listed);

/// Warns of captures that gave nothing, where others gave something.
void say_left_out(const std::vector<pipeline::LeftOut>& captures);
/// The status of a command that did well with the other captures: `nothing` if there are such ones.
[[nodiscard]] ExitStatus with_left_out(const std::vector<pipeline::LeftOut>& captures, ExitStatus status);

}  // namespace waymark::cli
