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
/// All trace buffers of a snapshot, in the order of its device list. Errors: the errors of read_snapshot().
[[nodiscard]] Result<std::vector<SinkDevice>> read_snapshot_sinks(const std::filesystem::path& path);

/// write_snapshot() with these trace buffers as further devices. Errors: as there; `usage`: a name or type that the
/// format cannot hold, or two buffers of one name.
[[nodiscard]] Status write_snapshot(const Capture& capture, const std::vector<SinkDevice>& sinks,
                                    const std::filesystem::path& folder);

}  // namespace waymark::capture
