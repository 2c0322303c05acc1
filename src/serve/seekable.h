/// Buffers that are read from the middle on.
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

/// All its files are plain ones, as they stand.
[[nodiscard]] bool is_seekable(const capture::Buffer& buffer);

/// The bytes of a buffer from a place on. Where a frame's first bytes are the source's own, a frame comes first that
/// says so. Precondition: is_seekable(). Errors: a file is not there any more, or shorter.
[[nodiscard]] Result<std::unique_ptr<capture::ByteStream>> open_at(const capture::Buffer& buffer, const Point& point,
                                                                   std::optional<coresight::TraceId> id);

/// The first `most` bytes of a buffer; once `stop` is true, no more of them. Errors: the errors of opening it.
[[nodiscard]] Result<std::unique_ptr<capture::ByteStream>> open_first(const capture::Buffer& buffer, std::uint64_t most,
                                                                      const std::atomic<bool>& stop);

}  // namespace waymark::serve
