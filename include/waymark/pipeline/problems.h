/// Problems of a capture, and other facts to know about it, as far as they are visible from reading its bytes and
/// counting its packets.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "waymark/coresight/trace_id.h"
#include "waymark/pipeline/run.h"
#include "waymark/pipeline/session.h"

namespace waymark::pipeline {

/// The bytes of a buffer with one trace ID.
struct IdBytes {
    coresight::TraceId id;
    std::uint64_t bytes{};
    const Source* source{};  ///< null: no source of the buffer has this ID
};
/// For a buffer in frames: the bytes with each ID that sources may have.
[[nodiscard]] std::vector<IdBytes> ids_in(const BufferReport& buffer, const Session& session);

/// Sentences about problems that are not in the session's own list. `report`: the report of a run whose consumers are
/// PacketCounters.
[[nodiscard]] std::vector<std::string> problems_in(const Session& session, const std::vector<const Source*>& selected,
                                                   const Report& report);

}  // namespace waymark::pipeline
