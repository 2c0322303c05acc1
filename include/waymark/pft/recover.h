/// Program flow before the first A-sync: the oldest trace in a wrapped buffer
/// (docs/spec/pft.md, 2.11).
///
/// Where packets begin follows from the end: every chain of packets that leads exactly to the A-sync is one of the
/// candidates, and the search begins where they have become one. Where execution stood is searched: every place in the
/// program is followed through the packets, and dies at the first one that contradicts its code. No place that may be
/// right is dropped unless another is a million times likelier: what lay on the return stack is any place behind a
/// call. What all paths that are left at the first I-sync behind an A-sync have in common is recovered; the rest is a
/// gap.
#pragma once

#include <span>

#include "waymark/core/types.h"
#include "waymark/flow/blocks.h"
#include "waymark/follow/recover.h"
#include "waymark/isa/isa.h"
#include "waymark/pft/config.h"
#include "waymark/pft/reference_decoder.h"

namespace waymark::pft {

using follow::CodeExtent;
using follow::HeadOutcome;
using follow::HeadRecovery;
using follow::HeadStretch;
using follow::judged_bytes;
using follow::least_confidence;
using follow::RecoverLimits;

/// Searches the head of a stream; `stream` begins where the stream does and holds its first A-sync and the I-sync
/// behind it. `extents`: where `code` has bytes, for a search must list them. Time and memory are bounded by `limits`,
/// whatever the bytes.
[[nodiscard]] HeadRecovery recover_head(const Config& config, const isa::CodeReader& code,
                                        std::span<const CodeExtent> extents, Bytes stream,
                                        const RecoverLimits& limits = {});

/// Decodes the recovered flow: for each stretch a `TraceOn` with the reason `recovered`, then what the decoders would
/// have given for it, had they known where they stood; a gap between stretches and behind the last, if it ends before
/// the sync. Context ID and VMID stay unknown until a packet carries them. All is delivered.
void decode_head(const HeadRecovery& head, const Config& config, const isa::CodeReader& code, Bytes stream,
                 flow::BatchWriter& out);

}  // namespace waymark::pft
