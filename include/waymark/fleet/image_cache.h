/// Copies of files by build ID on a local disk, for tasks whose --debug-dir is on a slow one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/fleet/manifest.h"

namespace waymark::fleet {

/// A folder in the form of a --debug-dir: `.build-id/xx/yyyy….debug` and `.build-id/xx/yyyy…/elf`. Many tasks may use
/// it at once: files are renamed into place, and a task keeps a file that it has open when another task removes it.
class ImageCache {
public:
    /// `most_bytes`: limit for all files; the least recently used files are removed first.
    ImageCache(std::filesystem::path folder, std::uint64_t most_bytes)
        : folder_(std::move(folder)), most_(most_bytes) {}

    /// Copies files that `sources` (folders of the same form) have and this cache lacks. Files that cannot be copied
    /// are skipped, since the cache is optional. A copy with a wrong build ID is replaced.
    void fetch(const std::vector<RanFile>& files, const std::vector<std::filesystem::path>& sources) const;

    /// Removes files until the others are within the limit.
    void trim() const;

private:
    std::filesystem::path folder_;
    std::uint64_t most_;
};

}  // namespace waymark::fleet
