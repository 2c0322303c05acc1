/// Recovers program flow before the first A-sync: the oldest trace in a wrapped buffer (docs/spec/pft.md, 2.11).
///
/// The beginnings of packets are found from the end: every chain of packets that leads exactly to the A-sync is a
/// candidate, and the search begins at the place where all candidates have joined. The place of execution is searched:
/// every place in the program is followed through the packets, and dropped at the first packet that contradicts its
/// code. A place that may be right is dropped only if another one is a million times likelier. An unknown entry of the
/// return stack may be any place after a call. The common part of all remaining paths at the first I-sync after an
/// A-sync is recovered; the rest is a gap.
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

/// Searches the head of a stream. `stream` begins at the beginning of the stream and includes its first A-sync and the
/// I-sync after it. `extents`: where `code` has bytes. `limits` bound time and memory for any bytes.
[[nodiscard]] HeadRecovery recover_head(const Config& config, const isa::CodeReader& code,
                                        std::span<const CodeExtent> extents, Bytes stream,
                                        const RecoverLimits& limits = {});

/// Decodes the recovered flow: for each stretch a `TraceOn` with the reason `recovered`, followed by the output of the
/// decoders if they had known the state of the core; a gap between stretches and after the last one, if it ends before
/// the sync. Context ID and VMID are unknown until a packet gives them. Everything is delivered.
void decode_head(const HeadRecovery& head, const Config& config, const isa::CodeReader& code, Bytes stream,
                 flow::BatchWriter& out);

}  // namespace waymark::pft
