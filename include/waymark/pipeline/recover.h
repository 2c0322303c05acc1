/// Decoding that begins before the first synchronisation point, if the program shows how (follow/recover.h).
#pragma once

#include <memory>
#include <vector>

#include "waymark/follow/recover.h"
#include "waymark/image/memory_map.h"
#include "waymark/pipeline/run.h"

namespace waymark::pipeline {

/// Where a memory map has bytes, for a search of the program.
[[nodiscard]] std::vector<follow::CodeExtent> code_extents(const image::MemoryMap& memory);

/// A flow consumer like `flow_consumer`, on one thread, that first searches for the flow of the stream's head, if the
/// protocol recovers_head(). The recovered flow is inserted at its place, after a `TraceOn` with the reason
/// `recovered`, instead of that part of the gap. The stream waits until Configuration::has_sync is true, but at most
/// for its first MiB. `sink` and `found`, which receives the result if there is one, are borrowed.
[[nodiscard]] std::unique_ptr<FlowConsumer> recovering_consumer(const StreamInfo& stream, flow::Sink& sink,
                                                                DecoderKind kind, follow::HeadRecovery& found);

}  // namespace waymark::pipeline
