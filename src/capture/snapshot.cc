#include "waymark/capture/snapshot.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "disk_access.h"
#include "snapshot_ini.h"
#include "text.h"
#include "waymark/capture/byte_stream.h"
#include "waymark/capture/ran_before.h"

namespace waymark::capture {
namespace {

namespace fs = std::filesystem;

// Far more than any real system has; the limit keeps a hostile snapshot.ini from occupying the reader for hours.
constexpr std::size_t max_devices = 4096;

/// Reads snapshot.ini, and through it the other ini files.
class SnapshotReader : SnapshotIni {
public:
    SnapshotReader(SnapshotParts& parts, const Ini& ini) : SnapshotIni(parts, ini) {}
    void read();

private:
    [[nodiscard]] std::optional<Ini> open(const IniEntry& entry, std::string_view what);
    void read_version();
    void read_devices();
    void read_clusters();
};

std::optional<Ini> SnapshotReader::open(const IniEntry& entry, std::string_view what) {
    if (entry.value.empty()) {
        problem(entry.line,
                fmt::format("'{}' names no file, but {} was expected. Name its ini file.", entry.key, what));
        return std::nullopt;
    }
    const fs::path path = resolve(entry, entry.value);
    auto text = parts_.files.text(path, max_ini_bytes);
    if (!text) {
        parts_.problems.add(ini_.file(), entry.line,
                            fmt::format("{} '{}' is left out: {}.", what, entry.value, text.error().message), {},
                            Problem::Kind::damage);
        return std::nullopt;
    }
    return Ini(path, *text, parts_.problems);
}

void SnapshotReader::read() {
    unknown_sections({"snapshot", "device_list", "clusters", "trace"});
    read_version();
    read_devices();
    read_clusters();
    const IniSection* trace = ini_.section("trace");
    if (trace != nullptr) {
        unknown_keys(*trace, {"metadata"}, false);
        if (const IniEntry* metadata = single(*trace, "metadata")) {
            if (const auto trace_ini = open(*metadata, "the trace description"))
                read_snapshot_trace(parts_, *trace_ini);
        } else {
            problem(trace->line, "[trace] has no key 'metadata', so there is no trace. Add the path of trace.ini.");
        }
    } else if (!parts_.capture.sources.empty()) {
        problem(0,
                "There is no section [trace], so there is no trace, although there are trace sources. Add it, with "
                "metadata= and the path of trace.ini.");
    }
}

void SnapshotReader::read_version() {
    const IniSection* snapshot = ini_.section("snapshot");
    if (snapshot == nullptr) {
        problem(0, "There is no section [snapshot]; it is read as version 1.0. Add it, with version=1.0.");
        return;
    }
    unknown_keys(*snapshot, {"version", "description"}, false);
    const IniEntry* version = single(*snapshot, "version");
    if (version == nullptr)
        problem(snapshot->line, "[snapshot] has no key 'version'; it is read as version 1.0. Add version=1.0.");
    else if (version->value != "1.0" && version->value != "1")
        problem(version->line, fmt::format("The snapshot has version '{}', but only 1.0 is known; it is read as 1.0. "
                                           "Check the following, or write version=1.0.",
                                           version->value));
    if (const IniEntry* description = single(*snapshot, "description")) parts_.capture.description = description->value;
}

void SnapshotReader::read_devices() {
    const IniSection* list = ini_.section("device_list");
    if (list == nullptr || list->entries.empty()) {
        problem(list == nullptr ? 0 : list->line,
                "[device_list] is missing or empty, so neither cores nor trace sources are known. List the device ini "
                "files "
                "in it, as device0=core.ini.");
        return;
    }
    std::map<std::string, unsigned> keys, paths;
    for (const IniEntry& entry : list->entries) {
        if (paths.size() >= max_devices) {
            problem(entry.line,
                    fmt::format("[device_list] has more than {} devices; the rest was ignored. Split the snapshot.",
                                max_devices));
            return;
        }
        if (const auto [first, added] = keys.try_emplace(text::lower(entry.key), entry.line); !added)
            problem(entry.line, fmt::format("Key '{}' appears again in [device_list] (first at line {}); both devices "
                                            "were read. Give each a different key.",
                                            entry.key, first->second));
        if (const auto [first, added] = paths.try_emplace(entry.value, entry.line); !added) {
            problem(entry.line, fmt::format("'{}' is listed again (first at line {}) and was read once. Remove one.",
                                            entry.value, first->second));
            continue;
        }
        if (const auto device = open(entry, "the device")) read_snapshot_device(parts_, *device, entry.key);
    }
}

void SnapshotReader::read_clusters() {
    const IniSection* clusters = ini_.section("clusters");
    if (clusters == nullptr) return;
    std::set<std::string> seen;
    for (const IniEntry& entry : clusters->entries) {
        if (!seen.insert(entry.key).second) {
            problem(entry.line,
                    fmt::format("Cluster '{}' appears again; the first one is used. Remove one.", entry.key));
            continue;
        }
        Cluster cluster{entry.key, {}};
        for (const std::string_view core : text::split(entry.value, ',')) {
            if (parts_.cores.count(std::string(core)) != 0)
                cluster.cores.emplace_back(core);
            else
                problem(entry.line,
                        fmt::format("Cluster '{}' names '{}', which is not a core of this snapshot; it was omitted.{}",
                                    entry.key, core, did_you_mean(core, names(parts_.capture.cores))));
        }
        parts_.capture.clusters.push_back(std::move(cluster));
    }
}

/// Reads everything that captures and sinks share; `parts.capture` does not have its problems yet.
Status read_parts(SnapshotParts& parts, const fs::path& path, const FileAccess& files) {
    Capture& capture = parts.capture;
    capture.path = path;
    auto text = files.text(path, max_ini_bytes);
    if (!text) return std::move(text.error());
    if (text->find('\0') != std::string::npos)
        return Error{Errc::bad_format,
                     fmt::format("{}: is a binary file, but the snapshot.ini of a snapshot folder was "
                                 "expected; name the folder or its snapshot.ini",
                                 path.string())};
    const Ini ini(path, *text, parts.problems);
    if (ini.sections().empty())
        return Error{Errc::bad_format, fmt::format("{}: contains no section, but [snapshot], [device_list] and [trace] "
                                                   "were expected; name the folder or its snapshot.ini",
                                                   path.string())};

    SnapshotReader(parts, ini).read();
    return Nothing{};
}

/// The snapshot.ini that a path names directly or by its folder.
Result<fs::path> file_of(const fs::path& path) {
    std::error_code ignored;
    if (!fs::is_directory(path, ignored)) return path;
    fs::path ini = snapshot_file(path);
    if (ini.empty())
        return Error{Errc::not_found, fmt::format("{}: this folder contains neither snapshot.ini nor contents.ini, so "
                                                  "it is not a snapshot; name the folder that has one",
                                                  path.string())};
    return ini;
}

constexpr std::string_view no_ini = "no ini file of a snapshot; name the folder or its snapshot.ini";

}  // namespace

Result<Capture> read_snapshot(const fs::path& path, const FileAccess& files) {
    SnapshotParts parts{files, path.parent_path()};
    WM_RETURN_IF_ERROR(read_parts(parts, path, files));
    Capture& capture = parts.capture;
    capture.problems = parts.problems.take();
    for (const Buffer& buffer : capture.buffers)
        for (std::string& sentence : missing_parts(buffer))
            capture.problems.push_back({parts.folder, 0, std::move(sentence), {}, Problem::Kind::part});
    // The ini file does not name this file, so that other readers are not confused by it.
    capture.modules = read_module_map(parts.folder, files, capture.problems);
    // Callers read the file again when they need it. Reading it here reports its errors early.
    static_cast<void>(read_ran_before(parts.folder, files, capture.problems));
    if (capture.cores.empty() && capture.sources.empty() && capture.buffers.empty() && capture.dumps.empty()) {
        std::string first = "it names no device and no trace buffer";
        if (!capture.problems.empty()) first = to_string(capture.problems.front());
        return Error{Errc::bad_format,
                     fmt::format("{}: nothing of this snapshot can be read; {} problem(s), the first: {}",
                                 path.string(), capture.problems.size(), first)};
    }
    return std::move(parts.capture);
}

fs::path snapshot_file(const fs::path& folder) {
    std::error_code none;
    for (const char* name : {"snapshot.ini", "contents.ini"})
        if (fs::exists(folder / name, none)) return folder / name;
    return {};
}

Result<Capture> read_snapshot(const fs::path& path) {
    WM_ASSIGN_OR_RETURN(const fs::path ini, file_of(path));
    WM_ASSIGN_OR_RETURN(Capture snapshot, read_snapshot(ini, DiskAccess(no_ini)));
    check_ran_before(snapshot);
    return snapshot;
}

Result<std::vector<SinkDevice>> read_snapshot_sinks(const fs::path& path) {
    WM_ASSIGN_OR_RETURN(const fs::path ini, file_of(path));
    const DiskAccess files(no_ini);
    SnapshotParts parts{files, ini.parent_path()};
    WM_RETURN_IF_ERROR(read_parts(parts, ini, files));
    return std::move(parts.sinks);
}

}  // namespace waymark::capture
