/// A dump of a DPU's registers and one of its trace buffer → the folder that describes both.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "waymark/core/result.h"

namespace waymark::doctor {

/// A text whose first register is one of a DPU: `DP_TC`.
[[nodiscard]] bool is_dpu_registers(const std::string& path);

/// Makes the folder, with its dpu.ini and a copy of the buffer. Returns what was inferred, a sentence each. Errors:
/// `usage`: the folder holds something, or registers are missing without which nothing can be read, or the dump has
/// not the size that they say; `bad_format`, `unreadable`: the files.
[[nodiscard]] Result<std::vector<std::string>> write_dpu_dump(const std::string& registers, const std::string& dump,
                                                              const std::filesystem::path& folder);

}  // namespace waymark::doctor
