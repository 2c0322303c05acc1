/// Trace buffers among the devices of a snapshot folder, with their registers.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "waymark/capture/capture.h"
#include "waymark/core/result.h"

namespace waymark::capture {

/// A trace buffer as a device of a snapshot: class=trace_sink, or a type such as ETB or TMC-ETR.
struct SinkDevice {
    std::string name, type;
    std::vector<Register> registers;
    friend bool operator==(const SinkDevice&, const SinkDevice&) = default;
};
/// All trace buffers of a snapshot, in the order of its list. Errors: the errors of read_snapshot().
[[nodiscard]] Result<std::vector<SinkDevice>> read_snapshot_sinks(const std::filesystem::path& path);

}  // namespace waymark::capture
