/// Shared code of the readers of a snapshot folder's ini files: snapshot.cc, snapshot_device.cc, snapshot_trace.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ini.h"
#include "waymark/capture/snapshot.h"
#include "waymark/capture/snapshot_sinks.h"

namespace waymark::capture {

/// A snapshot that is being read.
struct SnapshotParts {
    const FileAccess& files;
    std::filesystem::path folder;
    Capture capture{};
    ProblemList problems{};
    std::vector<SinkDevice> sinks{};
    std::set<std::string> devices{};                        ///< names of all devices, even of classes that are not kept
    std::map<std::string, std::size_t> cores{}, sources{};  ///< by name
};

/// One ini file of a snapshot. Each error in it becomes a problem of the snapshot.
class SnapshotIni {
protected:
    /// Both are borrowed.
    SnapshotIni(SnapshotParts& parts, const Ini& ini) : parts_(parts), ini_(ini) {}

    void problem(unsigned line, std::string message, const std::filesystem::path& lacks = {}) {
        parts_.problems.add(ini_.file(), line, std::move(message), lacks);
    }
    [[nodiscard]] std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& known) const {
        return parts_.problems.suggestion(ini_.file(), word, known);
    }
    const IniEntry* single(const IniSection& section, std::string_view key) {
        return ini_.single(section, key, parts_.problems);
    }
    void unknown_sections(const std::vector<std::string_view>& known);
    void unknown_keys(const IniSection& section, const std::vector<std::string_view>& known, bool others_allowed);
    [[nodiscard]] std::optional<std::uint64_t> number(const IniSection& section, const IniEntry& entry,
                                                      std::string_view consequence);
    /// The path of a file that an entry names.
    [[nodiscard]] std::filesystem::path resolve(const IniEntry& entry, std::string_view written);

    template <class T>
    [[nodiscard]] static std::vector<std::string_view> names(const std::vector<T>& things) {
        std::vector<std::string_view> result;
        for (const T& thing : things) result.emplace_back(thing.name);
        return result;
    }

    SnapshotParts& parts_;
    const Ini& ini_;
};

/// Reads the ini file of a device, which has this key in the list of devices, and adds the device and its memory dumps
/// to the parts.
void read_snapshot_device(SnapshotParts& parts, const Ini& ini, const std::string& key);

/// Reads trace.ini: buffers, the sources in each buffer, and the core that each source traces.
void read_snapshot_trace(SnapshotParts& parts, const Ini& ini);

}  // namespace waymark::capture
