/// Trace buffers, and what is between them and the sources, among the devices of a snapshot folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "waymark/capture/capture.h"
#include "waymark/core/result.h"

namespace waymark::capture {

/// A trace buffer or trace port as a device of a snapshot (class=trace_sink), or a component between it and the
/// sources, such as a funnel or a cross-trigger interface (class=trace_link).
struct SinkDevice {
    std::string name, type;
    std::vector<Register> registers;
    bool link = false;
    friend bool operator==(const SinkDevice&, const SinkDevice&) = default;
};
/// All of a snapshot, in the order of its device list. Errors: the errors of read_snapshot().
[[nodiscard]] Result<std::vector<SinkDevice>> read_snapshot_sinks(const std::filesystem::path& path);

/// write_snapshot() with these further devices. Errors: as there; `usage`: a name or type that the format cannot hold,
/// or two devices of one name.
[[nodiscard]] Status write_snapshot(const Capture& capture, const std::vector<SinkDevice>& sinks,
                                    const std::filesystem::path& folder);

}  // namespace waymark::capture
