/// Sentences about problems of a capture, shared by the commands.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "waymark/capture/capture.h"
#include "waymark/command_line/output.h"
#include "waymark/core/types.h"
#include "waymark/doctor/finding.h"
#include "waymark/flow/flow.h"
#include "waymark/listing/packets.h"
#include "waymark/pipeline/damage.h"
#include "waymark/pipeline/run.h"
#include "waymark/pipeline/session.h"
#include "waymark/pipeline/several.h"

namespace waymark::cli {

/// An address in the notation of sentences and listings: `0x00008010`.
[[nodiscard]] inline std::string hex(Address address) { return fmt::format("{:#010x}", address.value); }

using doctor::gathered;
using listing::about;

/// The reason why nothing was decoded, followed by `. waymark doctor CAPTURE says: …` with doctor's first error or
/// warning and its advice, unless the reason contains them. Nothing follows for standard input, and if doctor fails.
[[nodiscard]] std::string with_doctor(std::string reason, const std::string& capture,
                                      const std::vector<std::string>& images);

/// Prints the sentences on standard error, equal ones combined, as `kind`: `warning`, `note`, `error`.
void say_gathered(std::string_view kind, const std::vector<std::string>& sentences);

/// Prints which requested packet types were not found. `one`, `many`: the word for a packet. Returns `nothing` if no
/// requested type was found.
[[nodiscard]] ExitStatus say_types_not_found(const std::vector<std::string>& asked,
                                             const listing::PacketsListed& listed, std::string_view one,
                                             std::string_view many = {});

/// Prints warnings about losses below a listing, since the listing only shows single gaps. A cut of the buffer is an
/// error of reading; the listing itself shows how the trace begins and where a FIFO overflowed.
void say_damage(const std::vector<pipeline::Damage>& damage);
/// The same for packets of a unit that does not trace program flow.
void say_gaps(const listing::PacketsListed& listed);

/// Prints a warning for captures without any results, if other captures have results.
void say_left_out(const std::vector<pipeline::LeftOut>& captures);
/// The status of a command that succeeded with the other captures: `nothing` if any were left out.
[[nodiscard]] ExitStatus with_left_out(const std::vector<pipeline::LeftOut>& captures, ExitStatus status);

}  // namespace waymark::cli
