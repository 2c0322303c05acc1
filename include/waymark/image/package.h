/// Files in packages, and compressed kernel modules (.ko.xz, .ko.zst, .ko.gz): Android maps libraries from where they
/// lie in an application's package (a zip file). A path says so with `!/`: `base.apk!/lib/arm64-v8a/libx.so`
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

/// Between the path of a package and that of a file in it.
inline constexpr std::string_view in_package = "!/";

/// A file that is stored in a package as it is, so that it can be mapped.
struct PackedFile {
    std::string name;        ///< in the package
    std::uint64_t offset{};  ///< of its first byte, in the package
    std::uint64_t bytes{};
    friend bool operator==(const PackedFile&, const PackedFile&) = default;
};

/// All stored files of a package, by offset; compressed ones are passed over. Errors: `bad_format`: no zip file, or it
/// is damaged.
[[nodiscard]] Result<std::vector<PackedFile>> packed_files(const std::filesystem::path& package);

/// Where the contents of a file can be opened.
struct Openable {
    std::filesystem::path path;
    std::shared_ptr<const void> copy{};  ///< the path is valid while this lives; null: it is the file's own
};

/// `path` itself, unless it names a file in a package or a compressed kernel module. Of such a file there is a copy in
/// memory while anybody has it; the last one used stays longer, and those before it up to 64 MiB together. Nothing is
/// written to any folder. Pages of zeros in a module take no memory, and all modules that are in use at most 1 GiB.
/// Errors: `not_found`: the package has no such file; `unsupported`: it is compressed there, so nothing ever mapped it,
/// and it is not unpacked; `bad_format`: as `packed_files`, the file exceeds the package, or a module is damaged or has
/// more than 256 MiB; `unsupported` also: the modules in use take all the memory that modules may take; `unreadable`.
/// Safe for several threads.
[[nodiscard]] Result<Openable> openable(const std::filesystem::path& path);

}  // namespace waymark::image
