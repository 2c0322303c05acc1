/// Decoding that begins before the first A-sync, where the program tells how (pft/recover.h).
#pragma once

#include <memory>
#include <vector>

#include "waymark/pft/recover.h"
#include "waymark/pipeline/run.h"

namespace waymark::pipeline {

/// A flow consumer as `flow_consumer`, on one thread, that looks for the flow of the head of the stream first. What it
/// finds stands where it ran, behind a `TraceOn` of the reason `recovered`, in place of that part of the gap. Holds
/// back the stream up to 16 KiB behind its first A-sync (pft::judged_bytes), where the I-sync must lie, and no more
/// than its first MiB. `sink` and `found`, which takes the result once there is one, are borrowed.
[[nodiscard]] std::unique_ptr<Consumer> recovering_consumer(const StreamInfo& stream, flow::Sink& sink,
                                                            DecoderKind kind, pft::HeadRecovery& found);
/// Packets met by it so far, those of the head included.
[[nodiscard]] std::uint64_t recovered_packets(const Consumer& recovering_consumer);

}  // namespace waymark::pipeline
