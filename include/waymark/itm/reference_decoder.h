/// Decodes the messages of a whole stream in the passes of docs/spec/itm.md: bytes → packets (1 and 3), packets →
/// messages, messages → times (2). It shares no code with the parser and MessageDecoder; tests compare their results
/// with it.
#pragma once

#include <vector>

#include "waymark/core/types.h"
#include "waymark/itm/config.h"
#include "waymark/protocol/message.h"

namespace waymark::itm {

[[nodiscard]] std::vector<protocol::Message> reference_messages(Bytes stream, const Config& config);

}  // namespace waymark::itm
