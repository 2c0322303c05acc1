/// Errors in Program Flow Trace and its description: the findings of `waymark doctor`, and sentences shared by all
/// commands. Findings have an offset, but no other place in the capture.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "waymark/flow/flow.h"
#include "waymark/pft/config.h"
#include "waymark/pft/likeness.h"
#include "waymark/protocol/protocol.h"

namespace waymark::pft {

/// Compares the registers of the description with the evidence in the bytes. The description is trusted unless the
/// bytes contradict it.
[[nodiscard]] protocol::Settled settle_on(const Recognised& recognised, const Config& described,
                                          const std::vector<protocol::Stretch>& stretches, std::string_view source);
/// Reports errors in the bytes.
[[nodiscard]] std::vector<protocol::CaptureFinding> health_of(const Config& config,
                                                              const std::vector<protocol::Stretch>& stretches);
/// Reports errors of a description that a program has proven. `proven` and `described` differ only in these errors.
[[nodiscard]] std::vector<protocol::CaptureFinding> differences_of(const Config& proven, const Config& described,
                                                                   std::string_view source);
[[nodiscard]] std::string sentence_of(const flow::Inconsistency& what);

}  // namespace waymark::pft
