/// Reads buffers from a place in the middle.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "waymark/capture/byte_stream.h"
#include "waymark/capture/capture.h"
#include "waymark/core/result.h"
#include "waymark/coresight/trace_id.h"
#include "waymark/serve/index.h"

namespace waymark::serve {

/// A decoder of the source that can begin at cuts, or null.
[[nodiscard]] std::unique_ptr<follow::Cutting> cutting_decoder(const pipeline::Source& source, flow::BatchWriter& out);

/// Whether all its files are ordinary, uncompressed files.
[[nodiscard]] bool is_seekable(const capture::Buffer& buffer);

/// The bytes of a buffer from a place on. If the first bytes of a frame belong to the source itself, they follow a
/// frame that contains the trace ID. Precondition: is_seekable(). Errors: a file no longer exists, or has become
/// shorter.
[[nodiscard]] Result<std::unique_ptr<capture::ByteStream>> open_at(const capture::Buffer& buffer, const Point& point,
                                                                   std::optional<coresight::TraceId> id);

/// The first `most` bytes of a buffer; the stream ends early when `stop` becomes true. Errors: the errors of opening
/// it.
[[nodiscard]] Result<std::unique_ptr<capture::ByteStream>> open_first(const capture::Buffer& buffer, std::uint64_t most,
                                                                      const std::atomic<bool>& stop);

}  // namespace waymark::serve
