/// Program flow before the first A-sync of an ETMv4 or ETE stream: recovers it from the oldest trace in a wrapped
/// buffer (docs/recover.md, docs/spec/etm4.md, section 14).
#pragma once

#include <span>

#include "waymark/core/types.h"
#include "waymark/etm4/config.h"
#include "waymark/flow/blocks.h"
#include "waymark/follow/recover.h"
#include "waymark/isa/isa.h"

namespace waymark::etm4 {

/// Searches the head of a stream. `stream` begins at the beginning of the stream and includes its first A-sync, and the
/// Trace Info, context and address after it. `extents`: where `code` has bytes. `limits` bound time and memory,
/// whatever the bytes.
[[nodiscard]] follow::HeadRecovery recover_head(const Config& config, const isa::CodeReader& code,
                                                std::span<const follow::CodeExtent> extents, Bytes stream,
                                                const follow::RecoverLimits& limits = {});

/// Decodes the recovered stretches: for each a `TraceOn` with the reason `recovered`, followed by the output of the
/// decoders if they had known the state of the core; a gap between stretches and after the last, if it ends before the
/// A-sync. Exception level, Context ID and VMID are unknown until a packet gives them. P0 elements that are not
/// committed before the A-sync are not delivered; all others are.
void decode_head(const follow::HeadRecovery& head, const Config& config, const isa::CodeReader& code, Bytes stream,
                 flow::BatchWriter& out);

}  // namespace waymark::etm4
