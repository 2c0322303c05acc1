/// Copies of files by build ID on a disk of this machine, for tasks whose --debug-dir is on a slow one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/fleet/manifest.h"

namespace waymark::fleet {

/// A folder as a --debug-dir: `.build-id/xx/yyyy….debug` and `.build-id/xx/yyyy…/elf`. Many tasks may use it at once:
/// files are renamed into place, and a task that has one open keeps it when another removes it.
class ImageCache {
public:
    /// `most_bytes`: of all files; what was not used for longest is removed first.
    ImageCache(std::filesystem::path folder, std::uint64_t most_bytes)
        : folder_(std::move(folder)), most_(most_bytes) {}

    /// Copies the files that `sources` (folders of the same form) have and this cache lacks. What cannot be
    /// copied is left out: a cache is never needed. A copy that does not have its build ID is replaced.
    void fetch(const std::vector<RanFile>& files, const std::vector<std::filesystem::path>& sources) const;

    /// Removes files until the rest is within the limit.
    void trim() const;

private:
    std::filesystem::path folder_;
    std::uint64_t most_;
};

}  // namespace waymark::fleet
