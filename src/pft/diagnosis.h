/// What can be wrong with Program Flow Trace and its description: the findings of `waymark doctor`, and sentences that
/// all commands have. Findings are without place in the capture but for their offset.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "waymark/flow/flow.h"
#include "waymark/pft/config.h"
#include "waymark/pft/likeness.h"
#include "waymark/protocol/protocol.h"

namespace waymark::pft {

/// The registers of the description against what the bytes prove. What the bytes do not contradict is believed.
[[nodiscard]] protocol::Settled settle_on(const Recognised& recognised, const Config& described,
                                          const std::vector<protocol::Stretch>& stretches, std::string_view source);
/// What is wrong with the bytes.
[[nodiscard]] std::vector<protocol::CaptureFinding> health_of(const Config& config,
                                                              const std::vector<protocol::Stretch>& stretches);
/// What a description gets wrong that a program has proven: `proven` and `described` differ in that alone.
[[nodiscard]] std::vector<protocol::CaptureFinding> differences_of(const Config& proven, const Config& described,
                                                                   std::string_view source);
[[nodiscard]] std::string sentence_of(const flow::Inconsistency& what);

}  // namespace waymark::pft
