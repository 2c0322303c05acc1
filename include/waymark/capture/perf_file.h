/// perf.data in its forms of storage: a file, or a folder of several (docs/spec/perf-cs-etm.md, section 1.8).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "waymark/capture/byte_file.h"
#include "waymark/capture/perf_data.h"
#include "waymark/core/result.h"

namespace waymark::capture::perf {

struct PerfFile {
    /// All files in sequence; the first corresponds to a single file.
    std::shared_ptr<const ByteFile> file;
    /// Files with records only, `data.0` and so on, which follow the first file.
    struct Run {
        std::uint64_t offset{}, bytes{};
    };
    std::vector<Run> runs{};
    std::vector<Error> damage{};  ///< damage of compressed files
};

/// Whether it is a folder with a file `data` that begins like perf.data.
[[nodiscard]] bool is_perf_folder(const std::filesystem::path& path);
/// Opens a file, or such a folder. Errors: the errors of `open_byte_file`.
[[nodiscard]] Result<PerfFile> open_perf_file(const std::filesystem::path& path);

/// The same for the records of such a file or folder; offsets count from the beginning of the first file.
[[nodiscard]] Result<PerfData> read_perf_data(const PerfFile& file, Progress* progress = nullptr);

/// The contents of such a file or folder.
[[nodiscard]] Holds holds(const PerfFile& file);
[[nodiscard]] std::optional<std::uint32_t> auxtrace_type(const PerfFile& file);

}  // namespace waymark::capture::perf
