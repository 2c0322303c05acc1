/// Problems of a capture, and facts to know about it, as far as reading its bytes and counting its packets shows them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "waymark/coresight/trace_id.h"
#include "waymark/pipeline/run.h"
#include "waymark/pipeline/session.h"

namespace waymark::pipeline {

/// Bytes of a buffer under one trace ID.
struct IdBytes {
    coresight::TraceId id;
    std::uint64_t bytes{};
    const Source* source{};  ///< null: no source of the buffer has this ID
};
/// Of a buffer in frames: the bytes under all IDs that sources may have.
[[nodiscard]] std::vector<IdBytes> ids_in(const BufferReport& buffer, const Session& session);

/// Sentences, besides the session's own problems. `report`: of a run with PacketCounter as consumers.
[[nodiscard]] std::vector<std::string> problems_in(const Session& session, const std::vector<const Source*>& selected,
                                                   const Report& report);

}  // namespace waymark::pipeline
