/// Files in packages, and compressed kernel modules (.ko.xz, .ko.zst, .ko.gz): Android maps libraries directly from an
/// application's package (a zip file). Such a path contains `!/`: `base.apk!/lib/arm64-v8a/libx.so`
/// (docs/spec/perf-cs-etm.md, section 2).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/result.h"

namespace waymark::image {

/// The separator between the path of a package and the path of a file in it.
inline constexpr std::string_view in_package = "!/";

/// A file that is stored uncompressed in a package, so that it can be mapped.
struct PackedFile {
    std::string name;        ///< in the package
    std::uint64_t offset{};  ///< of its first byte, in the package
    std::uint64_t bytes{};
    friend bool operator==(const PackedFile&, const PackedFile&) = default;
};

/// All uncompressed files of a package, by offset; compressed ones are skipped. Errors: `bad_format`: not a zip file,
/// or it is damaged.
[[nodiscard]] Result<std::vector<PackedFile>> packed_files(const std::filesystem::path& package);

/// A place where the contents of a file can be opened.
struct Openable {
    std::filesystem::path path;
    std::shared_ptr<const void> copy{};  ///< the path is valid while this lives; null: the file's own path
};

/// The result is `path` itself, unless it names a file in a package or a compressed kernel module. Of such a file, a
/// copy is in memory while it is in use; recently used copies stay longer, up to 64 MiB together. Nothing is written to
/// disk. Pages of zeros in a module take no memory, and all modules in use take at most 1 GiB. Errors: `not_found`: the
/// package has no such file; `unsupported`: the file is compressed in the package, so it was never mapped from there,
/// and it is not unpacked, or the modules in use take all memory allowed for modules; `bad_format`: as `packed_files`,
/// the file exceeds the package, or a module is damaged or larger than 256 MiB; `unreadable`. Thread-safe.
[[nodiscard]] Result<Openable> openable(const std::filesystem::path& path);

}  // namespace waymark::image
