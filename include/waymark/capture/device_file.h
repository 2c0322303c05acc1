/// One device of a snapshot folder, read alone, without the folder.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "waymark/capture/capture.h"
#include "waymark/capture/snapshot_sinks.h"

namespace waymark::capture {

/// The ini file of a device.
struct DeviceFile {
    std::optional<Source> source{};  ///< class=trace_source, with its registers
    std::optional<SinkDevice> sink{};
    std::vector<Problem> problems{};  ///< of the device and its registers
};

/// Reads the text of a device's ini file (docs/spec/pft.md, 7.5), such as `source_0.ini`. `file`: its name in messages.
/// Memory dumps are not opened. nullopt: the text has no section [device], so it is no such file.
[[nodiscard]] std::optional<DeviceFile> read_device_file(std::string_view text, const std::filesystem::path& file);

}  // namespace waymark::capture
