/// Decoding that begins before the first synchronisation point, where the program shows how (follow/recover.h).
#pragma once

#include <memory>
#include <vector>

#include "waymark/follow/recover.h"
#include "waymark/image/memory_map.h"
#include "waymark/pipeline/run.h"

namespace waymark::pipeline {

/// Where a memory map has bytes, for a search of the program.
[[nodiscard]] std::vector<follow::CodeExtent> code_extents(const image::MemoryMap& memory);

/// A flow consumer as `flow_consumer`, on one thread, that looks for the flow of the head of the stream first; of a
/// source whose protocol recovers_head(). What it finds is placed where it ran, after a `TraceOn` of the reason
/// `recovered`, in place of that part of the gap. Holds back the stream until Configuration::has_sync, and no more than
/// its first MiB. `sink` and `found`, which takes the result once there is one, are borrowed.
[[nodiscard]] std::unique_ptr<FlowConsumer> recovering_consumer(const StreamInfo& stream, flow::Sink& sink,
                                                                DecoderKind kind, follow::HeadRecovery& found);

}  // namespace waymark::pipeline
