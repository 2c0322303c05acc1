/// Snapshot folders: snapshot.ini, one ini file for each device, trace.ini, and binary files (docs/spec/pft.md, 7); in
/// Waymark's recordings also maps.txt (module_map.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "waymark/capture/capture.h"
#include "waymark/core/result.h"

namespace waymark::capture {

/// How the reader accesses files: on disk, or texts in memory for tests and fuzzing.
class FileAccess {
public:
    virtual ~FileAccess() = default;
    /// The whole file; fails when it holds more than `limit` bytes (`Errc::unsupported`), is missing (`not_found`) or
    /// cannot be read (`unreadable`).
    [[nodiscard]] virtual Result<std::string> text(const std::filesystem::path& path, std::uint64_t limit) const = 0;
    /// The file's size in bytes; fails if it is missing or not a file.
    [[nodiscard]] virtual Result<std::uint64_t> size(const std::filesystem::path& path) const = 0;
};

/// A longer ini file is refused: it cannot be part of a snapshot.
inline constexpr std::uint64_t max_ini_bytes = std::uint64_t{1} << 20;

/// The file that describes the snapshot in a folder: snapshot.ini, or contents.ini, the name in Arm DS; empty if there
/// is neither.
[[nodiscard]] std::filesystem::path snapshot_file(const std::filesystem::path& folder);

/// Reads a snapshot. `path` is the folder or its snapshot.ini. Everything readable is read; each error in the rest is a
/// sentence in `Capture::problems`, so one bad device does not hide the others. Binary files are not opened, only
/// measured. Errors:
/// - `not_found`: no such folder, or no snapshot.ini in it;
/// - `unreadable`: the operating system refused;
/// - `bad_format`: snapshot.ini contains no section, or none of its devices and no trace buffer could be read;
/// - `unsupported`: snapshot.ini is longer than `max_ini_bytes`.
[[nodiscard]] Result<Capture> read_snapshot(const std::filesystem::path& path);

/// The same with other files; `snapshot_ini` is the path of snapshot.ini in `files`.
[[nodiscard]] Result<Capture> read_snapshot(const std::filesystem::path& snapshot_ini, const FileAccess& files);

/// Writes the ini files of a capture into `folder`, which is created; the caller writes the binary files. Paths inside
/// `folder` are written relative to it, so the folder can be moved. Other paths are written relative to `folder` too.
/// Reading the folder again gives an equal capture, except for `path`, for file names that this function had to choose,
/// and for `problems`. OpenCSD's tools read the folder if it does without several files in one buffer, a source in
/// several buffers, stream numbers, and memory without a core. Errors: `usage`: a name, path or text that the format
/// cannot represent (it has no quoting: `;`, `#`, line breaks, and in lists commas), two things with one name, or a
/// broken link; `unreadable`: a file cannot be written.
[[nodiscard]] Status write_snapshot(const Capture& capture, const std::filesystem::path& folder);

}  // namespace waymark::capture
